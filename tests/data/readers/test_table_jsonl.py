"""The wide table as JSON lines."""

import json

import pytest

from sarb.data.readers.table import load_table
from sarb.errors import DataError


@pytest.fixture
def table(tmp_path):
    def write(text, encoding="utf-8"):
        (tmp_path / "labels.jsonl").write_bytes(text.encode(encoding))
        return tmp_path / "labels.jsonl"

    return write


def rows(*objects):
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_typed_cells(table):
    path = table(rows({"file_name": "a", "x": 1, "y": 0.0}, {"file_name": "b", "x": None, "y": "1"}))
    data = load_table(path, encoding="binary")
    assert data.train.labels.values.tolist() == [[1, -1], [0, 1]]
    words = table(
        rows({"file_name": "a", "x": True}, {"file_name": "b", "x": False}, {"file_name": "c", "x": None})
    )
    assert load_table(words).train.labels.values.tolist() == [[1], [-1], [0]]
    assert load_table(words).notes["codes"] == {"present": "True", "absent": "False", "unknown": ""}


def test_numbers_keep_their_spelling_and_nan_is_blank(table):
    data = load_table(
        table('{"file_name": "a", "x": 1e0, "y": NaN}\n{"file_name": "b", "x": -0.0, "y": 1}\n'),
        encoding="binary",
    )
    assert data.train.labels.values.tolist() == [[1, 0], [-1, 1]]
    assert data.notes["codes"]["absent"] == "-0.0"


def test_keys_in_any_order_missing_keys_and_blank_lines(table):
    text = '\ufeff{"file_name": "a", "x": "yes"}\r\n\r\n{"y": "no", "x": "no", "file_name": "b", "split": "test"}\n'
    with pytest.raises(DataError, match="line 1, column 'split': value ''; expected train, test or valid"):
        load_table(table(text))
    data = load_table(table(text.replace('"split": "test"', '"z": "?"')))
    assert data.categories == ("x", "y", "z")
    assert data.train.labels.values.tolist() == [[1, 0, 0], [-1, -1, 0]]
    assert data.train.lines.tolist() == [1, 3]


def test_a_name_of_numbers_and_unicode(table):
    data = load_table(
        table('{"file_name": 5, "\\u00e9\\ud83d\\ude00": "yes"}\n{"file_name": "a\u2028b", "é😀": "no"}\n')
    )
    assert (data.categories, data.train.labels.paths) == (("é😀",), ("5", "a\u2028b"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2, column 2: not valid JSON: Expecting property name"),
        ("[1]", "line 2: expected an object {…} on every line"),
        ("7", "line 2: expected an object"),
        (
            '{"file_name": "b", "x": [1]}',
            "line 2, column 'x': contains a list or an object; expected one code",
        ),
        ('{"file_name": "b", "x": {"y": 1}}', "-o ignore=x"),
        (
            '{"file_name": "b", "x": "yes", "x": "no"}',
            "line 2: not valid JSON: 'x' occurs twice in one object",
        ),
        (
            '{"file_name" : "b", "x"  : "yes", "x"\t: "no"}',
            "line 2: not valid JSON: 'x' occurs twice in one object",
        ),
        ('{"file_name": "\\ud800", "x": "yes"}', "line 2: not valid JSON: 'utf-8' codec can't encode"),
        ('{"file_name": "b", "x": ' + "9" * 5000 + "}", "line 2, column 'x': value '999"),
        ('{"file_name": "b", "x": ' + "[" * 100_000, "line 2: not valid JSON: nested too deeply"),
        ('{"file_name": "b", "x": 1e999}', "line 2, column 'x': value '1e999'"),
    ],
)
def test_bad_lines(table, line, message):
    with pytest.raises(DataError, match=r"labels\.jsonl") as error:
        load_table(table(f'{{"file_name": "a", "x": "yes"}}\n{line}\n'))
    assert message in str(error.value)


def test_a_nested_column_can_be_left_out(table):
    path = table(
        rows({"file_name": "a", "x": "yes", "boxes": [[1, 2]]}, {"file_name": "b", "x": "no", "boxes": {}})
    )
    assert load_table(path, ignore="boxes").train.labels.values.tolist() == [[1], [-1]]
    with pytest.raises(DataError, match=r"option ignore: there is no column 'boxs'. Did you mean 'boxes'"):
        load_table(table(rows({"file_name": "a", "x": "yes", "boxes": 1})), ignore="boxs")


def test_charsets_and_empty_files(table):
    text = '{"file_name": "é", "x": "yes"}\n'
    assert load_table(table(text, "utf-16"), charset="utf-16").train.labels.paths == ("é",)
    with pytest.raises(DataError, match=r"labels\.jsonl: not ascii text"):
        load_table(table(text), charset="ascii")
    with pytest.raises(DataError, match="the file is empty"):
        load_table(table("\n\n"))
