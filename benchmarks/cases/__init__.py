"""One file per part of the package; each has ``cases(...) -> list[Case]`` and may take ``quick`` and
``coco256``.
"""
