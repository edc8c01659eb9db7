import json

import pytest

from sarb.data.check.problems import gather
from sarb.data.parse.element import Element
from sarb.data.parse.stream import elements, members
from sarb.errors import DataError

NESTED = [
    {"a": [1, 2, {"b": "x" * 90}]},
    1234567,
    -1.5e-7,
    'quote " \\ ] } ,',
    None,
    True,
    [],
    {},
    "ünï\U0001f600",
    [[["deep"]]],
]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_equals_json_load_however_it_is_cut(tmp_path, chunk, ascii_only, indent):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(NESTED, ensure_ascii=ascii_only, indent=indent), encoding="utf-8")
    assert [element.value for element in elements(path, chunk=chunk)] == NESTED


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_an_object_yields_only_the_wanted_arrays(tmp_path, chunk):
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps({"info": {"x": [1, 2]}, "a": [1, 22], "b": ["skip"], "n": 12.5, "c": [], "d": [{"e": 3}]})
    )
    found = [(element.key, element.value) for element in elements(path, ("a", "c", "d", "n"), chunk)]
    assert found == [("a", 1), ("a", 22), ("d", {"e": 3})]


@pytest.mark.parametrize("text", ["[]", " [ ] \n", "{}", "\ufeff[]"])
def test_empty_values(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    assert list(elements(path)) == []


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("[1,\n 2,\n  oops, 3]", 3, 3),
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
        ('{"a": [1],\n"a": [2]}', 2, 4),
        ('[1,\n"a\x00b"]', 2, 3),
        ("[1,\n\x00]", 2, 1),
        ('["ok",\n["\\ud800"]]', 2, 3),
        ('["ok",\n{"\\uDfff": 1}]', 2, 3),
        ("[1,\n[" + "7" * 5000 + "]]", 2, 2),
        ("[1,\n" + "-" + "7" * 5000 + "]", 2, 2),
    ],
)
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
    with pytest.raises(DataError, match=r"latin\.json, line 1: not UTF-8 text \(byte 0xe9\)"):
        list(elements(tmp_path / "latin.json"))
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        list(elements(tmp_path))
    (tmp_path / "deep.json").write_text("[" * 200_000)
    with pytest.raises(DataError, match="nested too deeply"):
        list(elements(tmp_path / "deep.json"))


@pytest.mark.parametrize("chunk", [1, 2, 5, 64, 1 << 20])
def test_lines_and_numbers(tmp_path, chunk):
    path = tmp_path / "a.json"
    path.write_text('{"x": [[\n1]],\n"a": [1,\n\n {"b":\n 2}, 3],\r\n "b": [4\n]\n}')
    assert list(elements(path, ("a", "b"), chunk)) == [
        Element("a", 1, 0, 3),
        Element("a", {"b": 2}, 1, 5),
        Element("a", 3, 2, 6),
        Element("b", 4, 0, 7),
    ]
    assert [(item.key, item.number, item.line) for item in members(path, chunk)] == [
        ("x", 0, 1),
        ("a", 1, 3),
        ("b", 2, 7),
    ]
    assert [item.value for item in members(path, chunk)] == [[[1]], [1, {"b": 2}, 3], [4]]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_the_line_of_a_wrong_byte(tmp_path, chunk):
    path = tmp_path / "a.json"
    for before in range(5):
        path.write_bytes(b"[1,\n" * 1 + b'"\xc3\xa9",\n' * before + b'"\xc3"]')
        with pytest.raises(
            DataError, match=rf"a\.json, line {before + 2}: not UTF-8 text \(byte 0xc3\)"
        ) as error:
            list(elements(path, chunk=chunk))
        assert (error.value.findings[0].kind, error.value.findings[0].line) == ("not-utf8", before + 2)
    path.write_bytes(b'["a",\n"\xe2\x82')  # the file ends within a character
    with pytest.raises(DataError, match=r"a\.json, line 2: not UTF-8 text"):
        list(elements(path, chunk=chunk))
    path.write_text("[1]", encoding="utf-16")
    with pytest.raises(DataError, match=r"a\.json, line 1: not UTF-8 text \(byte 0xff\)"):
        list(elements(path, chunk=chunk))


def test_a_byte_order_mark_is_noted(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("[1]", encoding="utf-8-sig")
    with gather() as found:
        assert list(elements(path)) == [Element("", 1, 0, 1)]
    assert [(finding.level, finding.kind, finding.line) for finding in found.shown] == [("note", "bom", 1)]


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_constants_pairs_and_repeated_inner_keys(tmp_path, chunk):
    path = tmp_path / "a.json"
    path.write_text('[NaN, -Infinity, 1e999, "\\ud83d\\ude00", "\\\\ud800", {"a": 1, "a": 2}]')
    values = [element.value for element in elements(path, chunk=chunk)]
    assert repr(values) == "[nan, -inf, inf, '\U0001f600', '\\\\ud800', {'a': 2}]"


def test_members_of_an_array_or_nothing(tmp_path):
    path = tmp_path / "a.json"
    for text, message in (
        ("[1]", "line 1, column 1: .*not an array"),
        ("5", "expected a JSON"),
        ("{} x", "extra text"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            list(members(path))
