"""Real faults, seeded: processes that are killed, full disks, damaged files, hostile input.

Each module with faults has a list ``KINDS``. ``make test`` runs the first few cases of each kind
(``test_short.py``), ``make faults`` all of them (``python -m tests.faults``); see :mod:`tests.faults.bench`.
"""
