"""Documented numbers of published data sets, and a warning if a file does not match them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sarb.data.check.problems import Problems
from sarb.labels import LabelMatrix

#: how many categories a warning lists
SHOWN = 3


@dataclass(frozen=True)
class Official:
    """Documented numbers of one file.

    Args:
        name: name of the data set, for the message.
        images: number of images.
        categories: number of categories; 0 if not documented.
        annotations: number of annotated objects; 0 if not documented.
        positives: (C,) number of images that show each category, in the reader's order; empty if not
            documented.
    """

    name: str
    images: int
    categories: int = 0
    annotations: int = 0
    positives: tuple[int, ...] = ()


#: number of train2014 images that show each category, by ascending id. Single source: a constant in public
#: training code that does not name its data set. We inferred that it is train2014 in this order: its sum
#: (241,035), its first and its smallest values match. We found no such table for val2014, so it is not
#: checked.
_COCO_TRAIN_2014 = (
    45174,  2287,  8606,  2442,  2243,  2791,  2464,  4321,  2098,  2893,
     1205,  1214,   481,  3844,  2241,  2818,  3041,  2068,  1105,  1389,
     1518,   668,  1324,  1798,  3924,  2749,  4861,  2667,  1631,  1511,
     2209,  1170,  2986,  1625,  1804,  1884,  2511,  2343,  2368,  5968,
     1771,  6518,  2537,  3097,  2493,  5028,  1618,  1171,  1645,  1216,
     1340,  1186,   821,  2202,  1062,  2080,  8950,  3170,  3084,  2539,
     8378,  2317,  3191,  2475,  1290,  2180,  1471,  3322,  1089,  2003,
      151,  3291,  1671,  3734,  3159,  2530,   673,  1510,   128,   700,
)  # fmt: skip

#: (file, option images) -> numbers. The numbers of annotated images are from the literature.
COCO = {
    ("instances_train2014.json", "all"): Official("COCO train2014", 82_783, 80, 604_907, _COCO_TRAIN_2014),
    ("instances_val2014.json", "all"): Official("COCO val2014", 40_504, 80, 291_875),
    ("instances_train2014.json", "annotated"): Official(
        "COCO train2014, annotated images", 82_081, 80, 604_907, _COCO_TRAIN_2014
    ),
    ("instances_val2014.json", "annotated"): Official("COCO val2014, annotated images", 40_137, 80, 291_875),
}

LVIS = {
    "lvis_v1_train.json": Official("LVIS v1 train", 100_170, 1_203, 1_270_141),
    "lvis_v1_val.json": Official("LVIS v1 val", 19_809, 1_203, 244_707),
}

#: list -> numbers of VOC 2007. An image shows a category if at least one of its objects is not difficult.
VOC_2007 = {
    "trainval": Official("VOC 2007 trainval", 5_011, 20, 0, (
         238,  243,  330,  181,  244,  186,  713,  337,  445,  141,
         200,  421,  287,  245, 2008,  245,   96,  229,  261,  256,
    )),
    "test": Official("VOC 2007 test", 4_952, 20, 0, (
         204,  239,  282,  172,  212,  174,  721,  322,  417,  127,
         190,  418,  274,  222, 2007,  224,   97,  223,  259,  229,
    )),
}  # fmt: skip

VISUAL_GENOME = {
    "image_data.json": Official("Visual Genome", 108_077),
    "train_list_500.txt": Official("the published training list of VG-500 and VG-200", 82_904),
    "test_list_500.txt": Official("the published test list of VG-500 and VG-200", 10_000),
}


def compare(
    file: Path,
    official: Official | None,
    images: int,
    labels: LabelMatrix | None = None,
    annotations: int = 0,
) -> None:
    """Warn once if a file does not have the documented numbers.

    Args:
        file: file to name in the warning.
        official: documented numbers; None if there are none.
        images: number of images in the file.
        labels: labels in which to count categories and their images.
        annotations: number of annotated objects in the file.
    """
    if official is None:
        return
    categories = len(labels.categories) if labels is not None else 0
    differences = [
        f"{count:,} {things} (documented: {expected:,})"
        for things, count, expected in (
            ("images", images, official.images),
            ("annotations", annotations, official.annotations),
            ("categories", categories, official.categories),
        )
        if expected and count != expected
    ]
    if labels is not None and categories == len(official.positives):
        differences += _category_differences(labels, official)
    if differences:
        problems = Problems(file)
        problems.add(
            f"is not {official.name} as published: {'; '.join(differences)}. "
            "Results cannot be compared with published ones",
            kind="official-size",
            level="warning",
            value=str(images),
            expected=str(official.images),
        )
        problems.raise_any()


def _category_differences(labels: LabelMatrix, official: Official) -> list[str]:
    """Describe the categories that have a different number of images."""
    expected = np.array(official.positives)
    counts = labels.positives
    wrong = np.flatnonzero(counts != expected).tolist()
    few = ", ".join(
        f"'{labels.categories[c]}' {counts[c]:,} (documented: {expected[c]:,})" for c in wrong[:SHOWN]
    )
    more = f" and {len(wrong) - SHOWN} more categories" if len(wrong) > SHOWN else ""
    return [f"images showing {few}{more}"] if wrong else []
