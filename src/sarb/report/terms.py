"""The abbreviations of the paper in one short phrase each, for the console and the pages."""

from __future__ import annotations

#: abbreviation -> what it means
TERMS = {
    "mAP": "average precision, averaged over the categories",
    "OP, OR, OF1": "precision, recall and F1 of all labels together",
    "CP, CR, CF1": "precision and recall averaged over the categories, and their F1",
    "ILRB": "instance-level blending: an unknown label is filled from another image of the batch",
    "PLRB": "prototype-level blending: an unknown label is filled from a prototype of the category",
}
#: of the metrics alone
METRICS = ("mAP", "OP, OR, OF1", "CP, CR, CF1")


def explained(*names: str) -> str:
    """Lines ``name: phrase``."""
    return "\n".join(f"{name}: {TERMS[name]}" for name in names)


def by_whom(column: str) -> str:
    """Who completed the labels that a column of ``log.csv`` counts: ``completed_ilrb`` -> ``ILRB``."""
    name = column.removeprefix("completed_")
    return name.upper() if name.upper() in TERMS else name
