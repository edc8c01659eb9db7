"""One file per part of the package with ``cases(...) -> list[Case]``; options: ``quick``, ``coco256``."""
