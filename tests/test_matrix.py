"""Matrices in npz files: what comes back, what is refused, and no more memory than the file can hold."""

import io
import zipfile

import numpy as np
import pytest

from sarb.errors import DataError
from sarb.labels import LabelMatrix
from sarb.matrix import packed, unpacked
from sarb.scores import Scores

LOGITS = np.array([[0.5, -1.0]], np.float32)


def test_what_was_packed_comes_back(tmp_path):
    (tmp_path / "m.npz").write_bytes(packed("logits", LOGITS, ["a", "b"], ["ä.jpg"]))
    array, categories, paths = unpacked(tmp_path / "m.npz", "logits", "f")
    assert np.array_equal(array, LOGITS) and categories == ["a", "b"] and paths == ["ä.jpg"]
    Scores(np.zeros((0, 2)), ["a", "b"], []).save(tmp_path / "none.npz")
    assert len(Scores.load(tmp_path / "none.npz")) == 0


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{"logits": LOGITS, "categories": ["a", "b"], "paths": ["1.jpg"], **arrays})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read"),
        (b"rubbish", "cannot read"),
        (archive()[:-10], "cannot read"),
        (archive(paths=["1", "2"]), "2 paths and 2 categories"),
        (archive(logits=np.zeros(2)), "must have 2 dimensions"),
        (archive(logits=np.zeros((1, 2), complex)), "kind f"),
        (archive(logits=np.array([[1, None]])), "kind f"),
        (archive(categories=np.array([1, 2])), "kind U"),
        (archive(categories=["a", "\ud800"]), "cannot read"),
        (archive(categories=["a", "a"]), "duplicate category"),
        (archive(logits=np.array([[np.nan, 0]])), "not finite"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(DataError, match=message):
        Scores.load(tmp_path / "m.npz")


def test_labels_name_their_file(tmp_path):
    (tmp_path / "m.npz").write_bytes(packed("values", np.array([[7, 0]]), ["a", "b"], ["1.jpg"]))
    with pytest.raises(DataError, match=r"m\.npz: .*7"):
        LabelMatrix.load(tmp_path / "m.npz")


@pytest.mark.parametrize("shape", [(10**9,), (10**6, 10**6), (-1,)])
def test_a_header_cannot_ask_for_more_than_the_file_holds(tmp_path, shape):
    with zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("categories", "paths", "logits"):
            with file.open(f"{name}.npy", "w") as stream:
                header = {
                    "descr": "<U100" if name != "logits" else "<f4",
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(DataError, match=r"m\.npz"):
        Scores.load(tmp_path / "m.npz")
