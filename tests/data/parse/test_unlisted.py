import pytest

from sarb.data.check.problems import Problems
from sarb.data.parse.unlisted import check_unlisted, rest_label
from sarb.errors import ConfigError, DataError


@pytest.mark.parametrize(("word", "label"), [("absent", -1), ("unknown", 0)])
def test_a_declared_meaning(word, label):
    problems = Problems("a.csv")
    assert rest_label(problems, word, 3, 4) == label
    assert problems.count == 0


def test_both_readings_with_counts():
    problems = Problems("a.csv")
    assert rest_label(problems, None, 3, 4, 5) == 0
    with pytest.raises(DataError) as error:
        problems.raise_any()
    assert str(error.value) == (
        "a.csv: declare what it means if a category is not listed for an image:\n"
        "  -o unlisted=absent: 3 present, 4 absent, 5 unknown\n"
        "  -o unlisted=unknown: 3 present, 0 absent, 9 unknown"
    )


def test_a_wrong_word():
    check_unlisted(None)
    with pytest.raises(ConfigError, match="value of option unlisted: 'present'"):
        check_unlisted("present")
