"""Schemas: a wrong value is named with its place, and no text makes the parser fail in another way."""

import json

import pytest

from sarb.errors import DataError
from sarb.runs.checks import (
    any_of,
    anything,
    choice,
    flag,
    names,
    nothing,
    number,
    parse,
    read_checked,
    rows,
    table,
    text,
    whole,
)

SCHEMA = table(
    {"size": whole(1, 9), "rows": rows(table({"share": number(0, 1)}), 3), "kind": choice("a", "b")},
    needed=("size",),
)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "the content must be an object"),
        ({}, "an object with the field 'size'"),
        ({"size": 10}, "'size' must be a whole number from 1 to 9, got 10"),
        ({"size": True}, "'size' must be a whole number"),
        ({"size": 2.0}, "'size' must be a whole number"),
        (
            {"size": 1, "rows": [{"share": 0}, {"share": 2}]},
            r"'rows\[1\].share' must be a number from 0 to 1",
        ),
        ({"size": 1, "rows": [{"share": float("nan")}]}, r"'rows\[0\].share'"),
        ({"size": 1, "rows": [{}] * 4}, "'rows' must be a list of 0 to 3 items"),
        ({"size": 1, "kind": "c"}, "'kind' must be one of a, b, got \"c\""),
        ({"size": 1, "kind": ["a"]}, "'kind' must be one of"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path, value, message):
    (tmp_path / "file.json").write_text(json.dumps(value))
    with pytest.raises(DataError, match=rf"file\.json: .*{message}"):
        read_checked(tmp_path / "file.json", SCHEMA, 10_000)


def test_what_fits_comes_back(tmp_path):
    value = {"size": 3, "rows": [{"share": 0.5}], "kind": "a", "more": [1, {"x": None}]}
    (tmp_path / "file.json").write_text(json.dumps(value))
    assert read_checked(tmp_path / "file.json", SCHEMA, 10_000) == value


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (flag, 1),
        (nothing, 0),
        (number(), "1"),
        (number(), True),
        (number(), 1e308),
        (number(), 10**400),
        (text(3), "long"),
        (text(), "a\0b"),
        (text(9, "[a-z]+"), "A"),
        (names(3), ["a", "a"]),
        (names(3), []),
        (names(3), [""]),
        (any_of("a or b", nothing, flag), 3),
        (anything, [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]),
    ],
)
def test_each_word_refuses(check, wrong):
    with pytest.raises(ValueError, match=r"'field.*must be"):
        check(wrong, "field")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"1" * 5_000,
        b'{"a": 1, "a": 2}',
        b"\xff",
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
    ],
)
def test_no_text_makes_the_parser_fail_in_another_way(content):
    with pytest.raises(ValueError, match=r"."):
        parse(content)


def test_a_file_that_is_too_large_or_missing_is_named(tmp_path):
    (tmp_path / "file.json").write_text("[" + " " * 100 + "]")
    with pytest.raises(DataError, match=r"file\.json: .*at most 50"):
        read_checked(tmp_path / "file.json", anything, 50)
    with pytest.raises(DataError, match=r"none\.json: .*No such file"):
        read_checked(tmp_path / "none.json", anything, 50)
