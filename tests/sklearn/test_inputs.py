"""What users of scikit-learn pass as X and y: every kind, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
from PIL import Image

import sarb
from sarb.sklearn.inputs import InputError, MemoryDataset, labelled, pictures, read_labels

SIGNED = np.array([[1, -1, 0], [0, 1, -1]])


class Frame:
    """What the estimator uses of a pandas DataFrame, which the tests do not need."""

    def __init__(self, columns, values):
        self.columns, self.values = columns, np.array(values, dtype=object)

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_memory_dataset():
    random = np.random.RandomState(0)
    arrays, labels = random.randint(0, 256, (24, 8, 8, 3)).astype(np.uint8), random.randint(-1, 2, (24, 3))
    whole = labelled(arrays, labels, "signed", None)
    assert isinstance(whole, MemoryDataset)
    part = whole.take([3, 1])
    assert part.labels.paths == ("image 3", "image 1")
    np.testing.assert_array_equal(part.paths[0], arrays[3])
    image, row = part[1]
    np.testing.assert_array_equal(image, arrays[1])
    np.testing.assert_array_equal(row, labels[1])
    rest, held = whole.split(0.25, seed=0)
    assert [len(rest.images), len(held.images)] == [18, 6]
    changed = arrays.copy()
    changed[5, 0, 0, 0] ^= 1
    marks = [
        labelled(X, labels, "signed", None).fingerprint()
        for X in (arrays, list(arrays), changed, arrays[::-1])
    ]
    assert marks[0] == marks[1] and len(set(marks)) == 3


WRONG_X = {
    "one path": ("a.jpg", "got str; a single picture goes into a list"),
    "one image": (Image.new("RGB", (4, 4)), "got Image; a single picture goes into a list"),
    "one array": (np.zeros((4, 4, 3), np.uint8), r"shape \(4, 4, 3\); expected N paths"),
    "nothing": ([], "0 pictures"),
    "numbers": ([1.5], r"X\[0\] is float; expected a path, a Pillow image or an array"),
    "bytes": (["a.jpg", b"b.jpg"], r"X\[1\] is bytes"),
    "table": (np.zeros((5, 4)), r"shape \(5, 4\); expected N paths, shape \(N,\), or N pictures"),
    "floats": (np.zeros((5, 4, 4, 3)), r"X\[0\] has pixels of float64, which have no agreed range.*255"),
    "sparse": (scipy.sparse.csr_array(np.eye(3)), "a sparse csr_array"),
}


@pytest.mark.parametrize("kind", WRONG_X)
def test_wrong_pictures(kind):
    X, message = WRONG_X[kind]
    with pytest.raises(ValueError, match=message) as caught:
        pictures(X)
    assert isinstance(caught.value, sarb.DataError)


KINDS_OF_Y = {
    "signed": (SIGNED, "signed"),
    "lists": (SIGNED.tolist(), "signed"),
    "floats": (SIGNED.astype(float), "signed"),
    "binary": (np.array([[1, 0, np.nan], [np.nan, 1, 0]]), "binary"),
    "with None": (np.array([[1, 0, None], [None, 1, 0]]), "binary"),
    "minus_one_unknown": (np.array([[1, 0, -1], [-1, 1, 0]]), "minus_one_unknown"),
    "words": (np.array([["yes", "no", "?"], ["?", "yes", "no"]]), None),
    "truth values with None": (np.array([[True, False, None], [None, True, False]]), None),
    "matrix": (sarb.LabelMatrix(SIGNED, ["a", "b", "c"]), None),
    "frame": (Frame(["a", "b", "c"], [[1, 0, np.nan], [np.nan, 1, 0]]), "binary"),
    "sparse": (scipy.sparse.csr_array(SIGNED), "signed"),
}


@pytest.mark.parametrize("kind", KINDS_OF_Y)
def test_every_kind_of_y(kind):
    y, encoding = KINDS_OF_Y[kind]
    found = read_labels(y, encoding, None)
    np.testing.assert_array_equal(found.values, SIGNED)
    named = kind in ("matrix", "frame")
    assert found.categories == (("a", "b", "c") if named else ("category 0", "category 1", "category 2"))


@pytest.mark.parametrize("encoding", [None, "binary", "signed"])
def test_truth_values_have_one_reading(encoding):
    assert read_labels(np.array([[True, False]]), encoding, ["a", "b"]).values.tolist() == [[1, -1]]


WRONG_Y = {
    "strange": (
        [[1, 0], [7, 0]],
        "signed",
        "line 2, column 'category 0': value '7'; expected '1', '-1' or '0' \\(encoding signed\\)",
    ),
    "NaN in signed": ([[1, np.nan]], "signed", "column 'category 1': value ''"),
    "flat": ([1, 0], "binary", r"images × categories\), got shape \(2,\)"),
    "none": (None, "binary", "y is None"),
    "encoding": ([[1, 0]], "binry", "Did you mean 'binary'"),
}


@pytest.mark.parametrize("kind", WRONG_Y)
def test_wrong_y(kind):
    y, encoding, message = WRONG_Y[kind]
    with pytest.raises(InputError, match=message):
        read_labels(y, encoding, None)
