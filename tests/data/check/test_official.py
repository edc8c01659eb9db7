import numpy as np
import pytest

from sarb.data.check.official import COCO, LVIS, VISUAL_GENOME, VOC_2007, Official, compare
from sarb.data.check.problems import DataWarning, gather
from sarb.labels import LabelMatrix

FILE = "labels.json"
LABELS = LabelMatrix([[1, -1, 0], [1, 1, -1]], ["cat", "dog", "tree"])


def message(official, images=2, labels=LABELS, annotations=5):
    with gather() as found:
        compare(FILE, official, images, labels, annotations)
    texts = [finding.message for finding in found.of("warning")]
    assert len(texts) < 2 and all(finding.file == FILE for finding in found.shown)
    return texts[0] if texts else None


def test_documented_tables():
    train = COCO["instances_train2014.json", "all"]
    val = COCO["instances_val2014.json", "all"]
    assert (train.images + val.images, train.annotations + val.annotations) == (123_287, 896_782)
    assert (len(train.positives), sum(train.positives), max(train.positives)) == (80, 241_035, 45_174)
    annotated = COCO["instances_train2014.json", "annotated"]
    assert (annotated.images, annotated.positives) == (82_081, train.positives)
    assert COCO["instances_val2014.json", "annotated"].images == 40_137
    sums = {
        name: (official.images, len(official.positives), sum(official.positives))
        for name, official in VOC_2007.items()
    }
    assert sums == {"trainval": (5_011, 20, 7_306), "test": (4_952, 20, 7_013)}
    assert [(item.images, item.categories) for item in LVIS.values()] == [(100_170, 1_203), (19_809, 1_203)]
    assert [item.images for item in VISUAL_GENOME.values()] == [108_077, 82_904, 10_000]


def test_nothing_is_said_when_all_is_as_documented_or_nothing_is_documented():
    assert message(Official("X", 2, 3, 5, (2, 1, 0))) is None
    assert message(Official("X", 2)) is None
    assert message(None) is None


@pytest.mark.parametrize(
    ("official", "text"),
    [
        (Official("X", 3), "2 images (documented: 3)"),
        (Official("X", 2, 0, 1_000), "5 annotations (documented: 1,000)"),
        (Official("X", 2, 4, 0, (1, 1, 1, 1)), "3 categories (documented: 4)"),
        (Official("X", 2, 3, 0, (2, 2_000, 0)), "images showing 'dog' 1 (documented: 2,000)"),
        (
            Official("X", 1, 3, 0, (2, 1, 1)),
            "2 images (documented: 1); images showing 'tree' 0 (documented: 1)",
        ),
    ],
)
def test_what_differs(official, text):
    assert (
        message(official) == f"is not X as published: {text}. Results cannot be compared with published ones"
    )


def test_many_categories_are_one_warning():
    labels = LabelMatrix(np.full((2, 30), -1), [f"c{number}" for number in range(30)])
    with pytest.warns(DataWarning) as found:
        compare(FILE, Official("X", 2, 30, 0, (7,) * 30), 2, labels)
    assert len(found) == 1
    few = "'c0' 0 (documented: 7), 'c1' 0 (documented: 7), 'c2' 0 (documented: 7)"
    assert f"showing {few} and 27 more categories" in str(found[0].message)


def test_images_alone():
    assert "9 images (documented: 2)" in message(Official("X", 2, 3, 0, (1, 1, 1)), images=9, labels=LABELS)
    assert message(Official("X", 2), labels=None) is None
