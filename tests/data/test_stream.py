import json

import pytest

from sarb.data.stream import elements
from sarb.errors import DataError

NESTED = [
    {"a": [1, 2, {"b": "x" * 90}]}, 1234567, -1.5e-7, "quote \" \\ ] } ,", None, True, [], {},
    "ünï\U0001f600", [[["deep"]]],
]  # fmt: skip


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_equals_json_load_however_it_is_cut(tmp_path, chunk, ascii_only, indent):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(NESTED, ensure_ascii=ascii_only, indent=indent), encoding="utf-8")
    assert [element for key, element in elements(path, chunk=chunk) if key == ""] == NESTED


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_an_object_yields_only_the_wanted_arrays(tmp_path, chunk):
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps({"info": {"x": [1, 2]}, "a": [1, 22], "b": ["skip"], "n": 12.5, "c": [], "d": [{"e": 3}]})
    )
    assert list(elements(path, ("a", "c", "d", "n"), chunk)) == [("a", 1), ("a", 22), ("d", {"e": 3})]


@pytest.mark.parametrize("text", ["[]", " [ ] \n", "{}", "\ufeff[]"])
def test_empty_values(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    assert list(elements(path)) == []


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('[1,\n 2,\n  oops, 3]', 3, 3),
        ('[{"a": 1},\n{"a" 2}]', 2, 6),
        ("[1 2]", 1, 4),
        ("[1,\n2", 2, 2),
        ('[1,\n"abc', 2, 1),
        ("[1]\nx", 2, 1),
        ('{"a": [1],\n b: 2}', 2, 2),
        ("{1: 2}", 1, 3),
        ("hello", 1, 1),
        ("", 1, 1),
        ("[1,]", 1, 4),
    ],
)  # fmt: skip
def test_faults_name_line_and_column(tmp_path, chunk, text, line, column):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"bad\.json, line {line}, column {column}: not valid JSON"):
        list(elements(path, ("a",), chunk))


def test_a_fault_at_the_start_does_not_read_the_whole_file(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("[oops, " + "1, " * 100_000 + "1]")
    with pytest.raises(DataError, match="line 1, column 2"):
        next(elements(path, chunk=100))


def test_unreadable_files(tmp_path):
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        list(elements(tmp_path / "none.json"))
    (tmp_path / "latin.json").write_bytes(b'["caf\xe9"]')
    with pytest.raises(DataError, match="not UTF-8"):
        list(elements(tmp_path / "latin.json"))
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(DataError, match="nested too deeply"):
        list(elements(tmp_path / "deep.json"))
