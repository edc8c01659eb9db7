"""``sarb serve``: a page and a JSON API to try a model on photos and to review the labels nobody knows yet.

:mod:`~sarb.serve.app` holds the routes, :mod:`~sarb.serve.guard` what is refused before them,
:mod:`~sarb.serve.recogniser` and :mod:`~sarb.serve.heat` what the model says and where it looked,
:mod:`~sarb.serve.desk` the review, on top of :mod:`~sarb.serve.table` (the labels),
:mod:`~sarb.serve.journal` (every answer, durable) and :mod:`~sarb.serve.saver` (the CSV).
"""
