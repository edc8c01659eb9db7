import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sarb
from sarb.errors import ConfigError
from sarb.labelling.calibration import calibrate
from sarb.labelling.reliability import base_rates
from sarb.labelling.suggestion import SMOOTHING, _before, entropy, suggest, told, usual_budget
from sarb.labels import LabelMatrix
from sarb.scores import Scores
from tests.labelling.made_scores import make


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 40), st.floats(0, 1))
def test_obeys_the_budget_and_asks_only_what_is_unknown(seed, budget, known):
    scores, labels, _, _ = make(8, [1.0, 0.5, 2.0], [0.0, -1.0, 0.0], known=known, seed=seed)
    found = suggest(scores, labels, budget)
    assert len(found) == min(budget, (~labels.known).sum())
    assert not labels.known[found.row, found.column].any()
    asked = list(zip(found.row, found.column, strict=True))
    assert len(set(asked)) == len(asked)
    worth = [question.score for question in found.questions]
    assert worth == sorted(worth, reverse=True)
    again = suggest(scores, labels, budget)
    assert found.questions == again.questions


def slow_scores(p, labels, finds, uncertainty, cooccurrence, rarity, diversity):
    """The worth of every unknown entry, by the definition."""
    values, gain = labels.values, told(labels)
    entries = list(zip(*np.nonzero(values == 0), strict=True))
    w = {e: finds * p[e] + uncertainty * entropy(p)[e] + cooccurrence * gain[e] for e in entries}
    first = {}
    for e in entries:
        better = [o for o in entries if o[1] == e[1] and (w[o], -o[0]) > (w[e], -e[0])]
        kind, chance = (-1, 1 - p) if p[:, e[1]].mean() > 0.5 else (1, p)
        n = (values[:, e[1]] == kind).sum() + sum(chance[o] for o in better)
        first[e] = w[e] / (1 + n / rarity)
    return {
        e: first[e]
        / (1 + diversity * sum(o[0] == e[0] and (first[o], -o[1]) > (first[e], -e[1]) for o in entries))
        for e in entries
    }


def test_against_a_slow_loop():
    scores, labels, _, _ = make(12, [1.0, 0.5, 2.0, 1.0], [0.0, -1.0, 0.0, -2.0], known=0.4)
    scores = Scores(scores.logits + np.array([0, 0, 3, 0]), labels.categories, labels.paths)
    assert scores.probabilities.mean(0)[1] < 0.5 < scores.probabilities.mean(0)[2]
    weights = {"finds": 0.8, "uncertainty": 0.6, "cooccurrence": 0.4, "rarity": 3.0, "diversity": 0.3}
    expected = slow_scores(scores.probabilities, labels, **weights)
    found = suggest(scores, labels, 1000, **weights)
    assert len(found) == len(expected)
    for i, j, question in zip(found.row, found.column, found.questions, strict=True):
        assert question.score == pytest.approx(expected[i, j])


def test_told_against_a_slow_loop():
    _, labels, _, _ = make(20, [1.0, 0.5, 2.0], [0.0, -1.0, 0.0], known=0.6)
    graph, rate = labels.cooccurrence(smoothing=SMOOTHING), base_rates(labels)
    slow = np.array(
        [
            [
                sum(abs(graph[c, j] - rate[j]) for j in range(3) if j != c and labels.values[i, j] == 0)
                for c in range(3)
            ]
            for i in range(20)
        ]
    )
    np.testing.assert_allclose(told(labels), slow / slow.max(), atol=1e-5)


def test_before():
    group, value = np.array([1, 0, 1, 1, 0]), np.array([1.0, 5.0, 3.0, 2.0, 9.0])
    assert _before(group, value, np.array([1.0, 2, 3, 4, 5])).tolist() == [7.0, 5.0, 0.0, 3.0, 0.0]
    assert _before(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)).tolist() == []


def test_rare_categories_come_first():
    labels = LabelMatrix([[1, 1], [1, -1], [1, -1], [1, -1], [0, 0]], ["common", "rare"])
    found = suggest(Scores(np.zeros((5, 2)), ["common", "rare"]), labels, 2)
    assert [question.label for question in found.questions] == ["rare", "common"]
    assert "1 known positive of rare" in found.questions[0].reason


def test_where_most_are_present_the_absent_ones_are_rare():
    values = np.array([[1, -1], [1, -1], [1, 1], [1, 1], [0, 0]])
    labels = LabelMatrix(values, ["always", "often"])
    found = suggest(Scores(np.full((5, 2), 0.1), labels.categories), labels, 2)
    assert [question.label for question in found.questions] == ["always", "often"]


def test_open_answers_come_before_likely_ones():
    labels = LabelMatrix(np.zeros((3, 1)), ["a"])
    found = suggest(Scores([[4.0], [0.0], [-4.0]], ["a"]), labels, 1)
    assert found.row.tolist() == [1]


@pytest.mark.parametrize(("images", "expected"), [(10, 10), (60, 50), (8000, 80), (300_000, 2000)])
def test_the_default_budget(images, expected):
    labels = LabelMatrix(np.zeros((images, 1)), ["a"])
    assert usual_budget(labels) == expected
    if images < 100:
        assert len(suggest(Scores(np.zeros((images, 1)), ["a"], labels.paths), labels)) == expected


def test_images_are_spread():
    labels = LabelMatrix(np.zeros((2, 3)), list("abc"))
    scores = Scores([[1.0, 0.9, 0.8], [0.7, 0.6, 0.5]], list("abc"))
    options = {"finds": 1.0, "uncertainty": 0.0, "cooccurrence": 0.0, "rarity": np.inf}
    assert suggest(scores, labels, 2, diversity=0, **options).row.tolist() == [0, 0]
    assert suggest(scores, labels, 2, diversity=1, **options).row.tolist() == [0, 1]


def test_finds_more_positives_in_rare_categories_than_chance():
    slope, offset = np.full(30, 1.0), np.linspace(-5, 0, 30)
    scores, labels, truth, _ = make(600, slope, offset, known=0.05)
    found = suggest(scores, labels, 300, calibration=calibrate(scores, labels))
    shown = truth.values[found.row, found.column] > 0
    assert shown.mean() > 2 * (truth.values > 0).mean()
    assert (np.bincount(found.column, minlength=30) > 0).sum() >= 20


def test_table(tmp_path):
    scores, labels, _, _ = make(8, [1.0, 0.5], [0.0, -1.0], known=0.3)
    text = sarb.suggest(scores, labels, 3).to_csv(tmp_path / "ask.csv")
    assert (tmp_path / "ask.csv").read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == ["file_name", "label", "score", "reason"] and len(rows) == 3
    assert all("probability" in row["reason"] for row in rows)


@pytest.mark.parametrize(
    ("name", "value"), [("budget", -1), ("finds", -1.0), ("rarity", 0.0), ("diversity", np.nan)]
)
def test_refusals(name, value):
    scores, labels, _, _ = make(4, [1.0], [0.0], known=0.0)
    with pytest.raises(ConfigError, match=name):
        suggest(scores, labels, **{"budget": 1, name: value})
