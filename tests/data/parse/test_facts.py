import pytest

import sarb.data.parse.facts
from sarb.data.check.problems import Problems, gather
from sarb.data.parse.facts import Facts
from sarb.errors import DataError


def facts(declared=None):
    return Facts(Problems("a.csv"), declared)


def test_categories_that_occur_are_in_alphabetical_order():
    found = facts()
    a, b = found.image("a.jpg", "train", 2), found.image("b.jpg", "test", 3)
    assert (found.image("a.jpg"), a, b) == (0, 0, 1)
    found.say(a, "dog", 1, 2)
    found.say(b, "cat", 1, 3)
    found.say(b, "cat", 1, 4)
    found.say(a, "cat", -1, 5)
    values, categories = found.matrix(rest=0)
    assert (values.tolist(), categories) == ([[-1, 1], [1, 0]], ["cat", "dog"])
    assert (found.names, found.splits, found.lines) == (["a.jpg", "b.jpg"], ["train", "test"], [2, 3])
    assert facts().matrix(rest=-1)[0].shape == (0, 0)


def test_declared_categories_keep_their_order_and_strangers_are_problems():
    found = facts(["tree", "dog", "cat"])
    row = found.image("a.jpg")
    found.say(row, "dog", 1, 2)
    found.say(row, "dgo", 1, 3)
    found.say(row, "dgo", 1, 9)
    values, categories = found.matrix(rest=-1)
    assert (values.tolist(), categories) == ([[-1, 1, -1]], ["tree", "dog", "cat"])
    with pytest.raises(
        DataError, match=r"line 3: unknown category 'dgo' \(2 times, first here\)\. Did you mean 'dog'"
    ):
        found.problems.raise_any()


def contradiction():
    found = facts()
    row, other = found.image("a.jpg"), found.image("b.jpg")
    for line, label in ((2, 1), (3, -1), (4, 1)):
        found.say(row, "dog", label, line)
    found.say(other, "dog", -1, 5)
    return found


def test_contradictions_name_both_lines():
    found = contradiction()
    with gather() as gathered:
        values, _ = found.matrix(rest=0)
        found.problems.raise_any()
    assert values.tolist() == [[0], [-1]]
    assert [str(finding) for finding in gathered.shown] == [
        "a.csv, line 4: 'a.jpg': 'dog' is absent on line 3 but present on line 4"
    ]
    assert contradiction().matrix(rest=0, conflict=0)[0].tolist() == [[0], [-1]]
    assert contradiction().matrix(rest=0, conflict=1)[0].tolist() == [[1], [-1]]


def test_a_matrix_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(sarb.data.parse.facts, "MOST_ENTRIES", 1)
    found = contradiction()
    with pytest.raises(DataError, match=r"2 images × 1 categories do not fit in memory.*-o categories=FILE"):
        found.matrix(rest=0)
