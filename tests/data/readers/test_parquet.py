import sys

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from sarb.data import load
from sarb.data.readers.parquet import cell_text
from sarb.data.readers.table import load_table
from sarb.errors import DataError

NAMES = ["a.jpg", "b.jpg", "c.jpg"]


@pytest.fixture
def table(tmp_path):
    """Return a function that writes columns (name, array) beside three image names."""

    def write(*columns, names=NAMES):
        path = tmp_path / "labels.parquet"
        arrays = [arrow.array(names), *(column for _, column in columns)]
        parquet.write_table(
            arrow.Table.from_arrays(arrays, ["file_name", *(name for name, _ in columns)]), path
        )
        return path

    return write


@pytest.mark.parametrize(
    ("column", "encoding", "expected", "spelled"),
    [
        (arrow.array([1, 0, None], arrow.int8()), "binary", [1, -1, 0], ("1", "0", "")),
        (arrow.array([1, -1, 0], arrow.int64()), "signed", [1, -1, 0], ("1", "-1", "0")),
        (arrow.array([1, 0, 1], arrow.uint8()), "binary", [1, -1, 1], ("1", "0", "")),
        (arrow.array([1.0, float("nan"), None]), "binary", [1, 0, 0], ("1.0", "0.0", "")),
        (
            arrow.array(np.array([1, 0, -1], np.float16)),
            "minus_one_unknown",
            [1, -1, 0],
            ("1.0", "0.0", "-1.0"),
        ),
        (arrow.array([1.0, -1.0, 0.0], arrow.float32()), "signed", [1, -1, 0], ("1.0", "-1.0", "0.0")),
        (arrow.array([True, False, None]), None, [1, -1, 0], ("True", "False", "")),
        (arrow.array(["yes", "no", "?"]), None, [1, -1, 0], ("yes", "no", "?")),
        (arrow.array(["yes", "no", None], arrow.large_string()), None, [1, -1, 0], ("yes", "no", "")),
        (arrow.array(["yes", None, "yes"]).dictionary_encode(), None, [1, 0, 1], ("yes", "no", "")),
        (arrow.array([1, 0, None]).dictionary_encode(), "binary", [1, -1, 0], ("1", "0", "")),
        (arrow.array([b"yes", b"no", b""], arrow.binary()), None, [1, -1, 0], ("yes", "no", "")),
        (
            arrow.array(["1.00", "0.00", None]).cast(arrow.decimal128(3, 2)),
            "binary",
            [1, -1, 0],
            ("1.00", "0.00", ""),
        ),
        (arrow.nulls(3), None, [0, 0, 0], ("present", "absent", "")),
    ],
)
def test_typed_columns(table, column, encoding, expected, spelled):
    data = load_table(table(("x", column)), encoding=encoding)
    assert data.train.labels.values.ravel().tolist() == expected
    assert tuple(data.notes["codes"].values()) == spelled
    assert data.train.labels.paths == tuple(NAMES)
    assert data.train.lines.tolist() == [1, 2, 3]


def test_numbers_need_an_encoding_and_show_the_readings(table):
    with pytest.raises(DataError) as error:
        load(table(("x", arrow.array([1, 0, 0]))), check_files=False)
    assert "-o encoding=binary: 1 present, 2 absent, 0 unknown" in str(error.value)


def test_bad_values_have_row_and_column(table):
    path = table(("x", arrow.array([1.0, 0.5, 0.0])), ("y", arrow.array(["1", "0", "maybe"])))
    with pytest.raises(DataError) as error:
        load(path, encoding="binary", check_files=False)
    assert "labels.parquet: 2 problems" in str(error.value)
    assert "line 2, column 'x': value '0.5'; expected '1', '0' or blank (encoding binary)" in str(error.value)
    assert "line 3, column 'y': value 'maybe'" in str(error.value)


def test_nested_columns_are_refused_unless_they_are_left_out(table):
    boxes = arrow.array([[1, 2], [], None])
    path = table(("x", arrow.array(["yes", "no", "?"])), ("boxes", boxes))
    with pytest.raises(DataError, match=r"column 'boxes': contains list<.*>; .* -o ignore=boxes"):
        load_table(path)
    assert load_table(path, ignore="boxes").train.labels.values.ravel().tolist() == [1, -1, 0]
    image = arrow.array([{"bytes": b"", "path": name} for name in NAMES])
    with pytest.raises(DataError, match="column 'image': contains struct<"):
        load_table(table(("x", arrow.array(["yes"] * 3)), ("image", image)))


def test_two_columns_of_one_name(table):
    ones = arrow.array(["yes"] * 3)
    with pytest.raises(DataError, match="column 'x' occurs twice, as columns 2 and 3"):
        load_table(table(("x", ones), ("x", ones)))


def test_names_with_dots_and_bytes_that_are_no_text(table):
    assert load_table(
        table(("a.b", arrow.array(["yes"] * 3)), ("a", arrow.array(["no"] * 3)))
    ).categories == (
        "a.b",
        "a",
    )
    with pytest.raises(DataError, match=r"labels\.parquet: not a readable Parquet file"):
        load_table(table(("x", arrow.array([b"\xff", b"", b""], arrow.binary()))))


def test_split_words_and_missing_names(table):
    words = arrow.array(["train", "test", "eval"])
    with pytest.raises(
        DataError, match="line 3, column 'split': value 'eval'; expected train, test or valid"
    ):
        load_table(table(("split", words), ("x", arrow.array(["yes"] * 3))))
    with pytest.raises(DataError, match="line 2, column 'file_name': empty"):
        load_table(table(("x", arrow.array(["yes"] * 3)), names=["a.jpg", None, "c.jpg"]))


def test_files_that_are_no_parquet(table, tmp_path):
    path = table(("x", arrow.array([1, 0, 1])))
    whole = path.read_bytes()
    for content in (
        b"",
        b"file_name,x\na.jpg,1\n",
        whole[: len(whole) // 2],
        whole[:-9] + b"\0" * 5 + whole[-4:],
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"labels\.parquet: not a readable Parquet file \("):
            load_table(path, encoding="binary")


def test_without_pyarrow(table, monkeypatch):
    path = table(("x", arrow.array([1, 0, 1])))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        DataError, match=r"labels\.parquet: Parquet files need pyarrow: pip install 'sarb\[table\]'"
    ):
        load_table(path, encoding="binary")


def test_many_batches(tmp_path):
    count = 25_000
    codes = np.random.RandomState(0).randint(-1, 2, count).astype(np.int8)
    columns = {"file_name": [f"{number}.jpg" for number in range(count)], "x": codes}
    parquet.write_table(arrow.table(columns), tmp_path / "labels.parquet")
    data = load_table(tmp_path / "labels.parquet", encoding="signed")
    assert np.array_equal(data.train.labels.values[:, 0], codes)
    assert data.train.lines.tolist() == list(range(1, count + 1))


def test_cell_text():
    cells = [None, float("nan"), 1, 1.0, True, "x", -1]
    assert [cell_text(cell) for cell in cells] == ["", "", "1", "1.0", "True", "x", "-1"]
