import pytest

from sarb.data.check.problems import Problems, gather
from sarb.data.parse.rows import first_columns, full_rows, other_delimiter, split_of
from sarb.errors import DataError


def test_rows_that_do_not_fit_are_noted():
    rows = iter([(2, ["a", "1"]), (3, ["b"]), (4, ["c", "0", ""])])
    with gather() as found:
        problems = Problems("a.csv")
        assert list(full_rows(problems, rows, 2)) == [(2, ["a", "1"])]
        problems.raise_any()
    assert [(finding.line, finding.kind) for finding in found.shown] == [(3, "bad-row"), (4, "bad-row")]


def test_the_first_of_equal_columns():
    assert first_columns(["x", "y", "x"]) == {"x": 0, "y": 1}


@pytest.mark.parametrize(
    ("header", "option"),
    [("a;b", "delimiter=';'"), ("a\tb", "delimiter=tab"), ("a|b", "delimiter='|'"), ("a b", None)],
)
def test_another_delimiter(header, option):
    with gather() as found:
        mark = other_delimiter(Problems("a.csv"), [header])
        assert other_delimiter(Problems("a.csv"), [header, "c"]) is None
    assert mark == (None if option is None else header[1])
    assert [f"add -o {option}" in finding.message for finding in found.shown] == [True] * (option is not None)


def test_words_of_splits():
    problems = Problems("a.csv")
    words = [split_of(problems, word, 2) for word in ("Train", " val ", "testing")]
    assert words == ["train", "valid", "test"] and not problems.count
    assert split_of(problems, "tset", 3, "part") == ""
    with pytest.raises(
        DataError, match=r"line 3, column 'part': value 'tset'; expected .* Did you mean 'test'"
    ):
        problems.raise_any()
