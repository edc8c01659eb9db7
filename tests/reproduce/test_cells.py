"""What tells one cell from another, and its line of results.csv."""

import itertools

import numpy as np
import pytest

from sarb.errors import ConfigError
from sarb.reproduce.cells import Cell, Plan, fingerprint, steadiness


def plan(**changes):
    return Plan(**{"source": "demo", "out": "grid", "recipe": "small", **changes})


def test_an_assignment_is_for_all_rows_or_for_those_its_pattern_fits():
    made = plan(assignments=("lr=0.1", "Ours*:method.start=0.3", "Ours: epochs=3", "words=C:/glove.txt"))
    assert made.assignments_of("SSGRL") == ["lr=0.1", "words=C:/glove.txt"]
    assert made.assignments_of("Ours") == ["lr=0.1", "method.start=0.3", "epochs=3", "words=C:/glove.txt"]
    assert made.assignments_of("Ours ILRB") == ["lr=0.1", "method.start=0.3", "words=C:/glove.txt"]


def test_the_setup_changes_with_every_setting_but_not_with_what_cannot_change_numbers():
    first = plan().setup("Ours")
    others = [
        plan(assignments=("lr=0.1",)),
        plan(given={"epochs": 3}),
        plan(valid=0.1),
        plan(threads=2),
        plan(recipe="gpu"),
        plan(assignments=("Ours:method.start=0.3",)),
    ]
    assert len({first, *(other.setup("Ours") for other in others)}) == 7
    assert plan(assignments=("Ours:method.start=0.3",)).setup("SSGRL") == plan().setup("SSGRL")
    assert plan(given={"workers": 3}, out="elsewhere", keep_models=True).setup("Ours") == first
    assert plan().folder(Cell("Ours w/ SAM", 0.1, 2)).name.startswith("ours-w-sam-10-seed2-")


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        plan(assignments=("Our:lr=1", "Ours:method.strat=1", "data.size=64")).check(["Ours", "SSGRL"])
    text = str(caught.value)
    assert "no row fits 'Our'" in text and "Did you mean 'start'" in text and "-o key=value" in text


def test_steadiness_is_of_the_second_half():
    losses = [9.0, 1.0, 8.0, 0.0, 2.0, 3.0, 2.0, 5.0]
    half = losses[4:]
    changes = [later - earlier for earlier, later in itertools.pairwise(half)]
    mean = sum(changes) / 3
    expected = (sum((change - mean) ** 2 for change in changes) / 3) ** 0.5
    assert steadiness(losses) == (pytest.approx(3.0), pytest.approx(expected))
    assert steadiness([1.0, 2.0]) == steadiness([]) == (None, None)


def test_data_are_told_apart_by_their_labels(squares_data):
    first = fingerprint(squares_data)
    assert fingerprint(squares_data) == first != fingerprint(squares_data.hide(0.5, 0))
    assert np.any(squares_data.test.labels.values)
