import numpy as np
import pytest

from sarb.data import load
from sarb.data.check.problems import gather
from sarb.data.readers.npy import load_npy
from sarb.errors import DataError


@pytest.fixture
def table(tmp_path):
    """Return a function that writes an array, and one image name per row."""

    def write(array, names=None):
        np.save(tmp_path / "labels.npy", np.asarray(array))
        names = [f"{row}.jpg" for row in range(len(np.atleast_1d(array)))] if names is None else names
        (tmp_path / "labels.files.txt").write_text("".join(f"{name}\n" for name in names))
        return tmp_path / "labels.npy"

    return write


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float16, np.float32, np.float64, ">i4"])
def test_numbers(table, kind):
    data = load_npy(table(np.array([[1, -1, 0], [0, 1, 1]], kind)), encoding="signed")
    assert data.train.labels.values.tolist() == [[1, -1, 0], [0, 1, 1]]
    assert data.categories == ("category 0", "category 1", "category 2")
    assert data.train.labels.paths == ("0.jpg", "1.jpg")
    assert data.train.lines.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("array", "encoding", "expected", "spelled"),
    [
        ([[1.0, np.nan], [0.0, -0.0]], "binary", [[1, 0], [-1, -1]], ["1.0", "0.0", ""]),
        (np.array([[1, 0]], np.uint8), "binary", [[1, -1]], ["1", "0", ""]),
        ([[True, False]], None, [[1, -1]], ["True", "False", ""]),
        (np.asfortranarray([[1, 0], [-1, 1]]), "minus_one_unknown", [[1, -1], [0, 1]], ["1", "0", "-1"]),
    ],
)
def test_blanks_and_truth_values(table, array, encoding, expected, spelled):
    data = load_npy(table(array), encoding=encoding)
    assert data.train.labels.values.tolist() == expected
    assert list(data.notes["codes"].values()) == spelled


def test_numbers_need_an_encoding_and_show_the_readings(table):
    with pytest.raises(DataError) as error:
        load_npy(table([[1, 0], [0, 0]]))
    assert "-o encoding=signed: 1 present, 0 absent, 3 unknown" in str(error.value)
    assert "-o encoding=binary: 1 present, 3 absent, 0 unknown" in str(error.value)


def test_bad_numbers_have_row_and_column(table):
    with pytest.raises(DataError) as error:
        load(table([[1, 2], [0, 7]]), encoding="binary", check_files=False)
    assert "labels.npy: 2 problems" in str(error.value)
    assert "line 1, column 'category 1': value '2'; expected '1', '0' or blank (encoding binary)" in str(
        error.value
    )
    assert "line 2, column 'category 1': value '7'" in str(error.value)


def test_a_matrix_of_scores_is_counted_but_not_spelled_out(table):
    scores = np.random.RandomState(0).rand(2000, 3)
    with pytest.raises(DataError, match="6,000 problems") as error:
        load(table(scores), encoding="binary", check_files=False)
    assert f"line 1, column 'category 0': value '{scores[0, 0]}'" in str(error.value)
    assert "… and 5,980 more" in str(error.value)


def test_names_beside_and_by_option(table, tmp_path):
    path = table([[1, 0], [0, 1]])
    (tmp_path / "labels.files.txt").rename(tmp_path / "files.txt")
    (tmp_path / "categories.txt").write_text("cat\nhot dog\n")
    (tmp_path / "labels.splits.txt").write_text("Train\nval\n")
    data = load_npy(path, encoding="binary")
    assert (data.categories, data.valid.labels.paths) == (("cat", "hot dog"), ("1.jpg",))
    (tmp_path / "labels.categories.txt").write_text("a\nb\n")
    assert load_npy(path, encoding="binary").categories == ("a", "b")
    (tmp_path / "other.txt").write_text("test\ntrain\n")
    (tmp_path / "names.txt").write_text(" x.jpg\ny.jpg\n")
    data = load_npy(
        path, encoding="binary", categories="c,d", files="names.txt", splits=str(tmp_path / "other.txt")
    )
    assert (data.categories, data.train.labels.paths, data.test.labels.paths) == (
        ("c", "d"),
        ("y.jpg",),
        (" x.jpg",),
    )
    with pytest.raises(DataError, match=r"option files: no such file none.txt"):
        load_npy(path, encoding="binary", files="none.txt")
    (tmp_path / "labels.splits.txt").write_text("train\ntset\n")
    with pytest.raises(DataError, match=r"labels\.splits\.txt, line 2: value 'tset'.*Did you mean 'test'"):
        load_npy(path, encoding="binary")


def test_counts_that_do_not_fit(table, tmp_path):
    path = table([[1, 0, 1], [0, 1, 1]], ["a.jpg"])
    with pytest.raises(DataError, match=r"labels\.npy: has 2 rows, but .*labels\.files\.txt has 1 names$"):
        load_npy(path, encoding="binary")
    path = table([[1, 0, 1], [0, 1, 1]], ["a.jpg", "b.jpg", "c.jpg"])
    with pytest.raises(
        DataError, match=r"has 2 rows, but .* has 3 names; array.T would match labels\.files\.txt"
    ):
        load_npy(path, encoding="binary")
    path = table([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(DataError, match=r"has 3 columns, but cat,dog has 2 names"):
        load_npy(path, encoding="binary", categories="cat,dog")
    (tmp_path / "labels.splits.txt").write_text("train\n")
    with pytest.raises(DataError, match=r"has 2 rows, but .*labels\.splits\.txt has 1 names"):
        load_npy(path, encoding="binary")
    (tmp_path / "labels.files.txt").unlink()
    with pytest.raises(
        DataError,
        match=r"the image names are missing; write all 2, .* -o files=FILE",
    ):
        load_npy(path, encoding="binary")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[1, "x"]], object), "it contains Python objects, which can run code"),
        ([1, 0, 1], "has shape (3,); expected (images, categories)"),
        (np.zeros((2, 2, 2)), "has shape (2, 2, 2)"),
        (np.int8(1), "has shape ()"),
        ([["yes", "no"]], "contains <U3; expected integers"),
        ([[1j, 0]], "contains complex128"),
        (np.zeros((2, 0)), "expected (images, categories)"),
    ],
)
def test_arrays_that_are_not_labels(table, array, message):
    with pytest.raises(DataError, match=r"labels\.npy") as error:
        load_npy(table(array), encoding="binary")
    assert message in str(error.value)


def test_files_that_are_no_array(table, tmp_path):
    path = table([[1, 0], [0, 1]])
    whole = path.read_bytes()
    for content in (
        b"",
        b"hello",
        whole[:-3],
        whole[:20],
        b"\x80\x04]q\0.",
        whole.replace(b"(2, 2)", b"(9, 9999999999)"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"labels\.npy: not a readable \.npy file"):
            load_npy(path, encoding="binary")
    np.savez(tmp_path / "labels.npz", a=[[1]])
    path.write_bytes((tmp_path / "labels.npz").read_bytes())
    with pytest.raises(DataError, match="an archive of arrays"):
        load_npy(path, encoding="binary")


def test_gathered(table):
    with gather() as findings:
        data = load_npy(table([[1, 5], [0, 1], [1, 1]], ["a.jpg", "a.jpg", "b.jpg"]), encoding="binary")
    assert data.train.labels.values.tolist() == [[1, 0], [1, 1]]
    assert dict(findings.counts) == {("error", "bad-value"): 1, ("error", "conflicting-rows"): 1}


def test_blocks(table, monkeypatch):
    monkeypatch.setattr("sarb.data.readers.npy.BLOCK", 7)
    codes = np.random.RandomState(0).randint(-1, 2, (100, 5))
    assert np.array_equal(load_npy(table(codes), encoding="signed").train.labels.values, codes)
