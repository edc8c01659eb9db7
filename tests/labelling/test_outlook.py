from dataclasses import replace

import numpy as np
import pytest

from sarb.labelling.outlook import HONESTY, LEAST, PER_DOUBLING, Outlook, learning_slope, outlook
from sarb.labelling.suggestion import suggest
from sarb.labels import LabelMatrix
from sarb.scores import Scores
from tests.labelling.made_scores import make


def slow(p, values, asked):
    """The outlook by its definition: present answers, those of random questions, doublings."""
    entries = [(i, j) for i in range(len(values)) for j in range(values.shape[1]) if values[i, j] == 0]
    share = len(asked) / len(entries)
    doublings = []
    for category in range(values.shape[1]):
        tells = {e: 4 * p[e] * (1 - p[e]) for e in entries if e[1] == category}
        known = (values[:, category] != 0).sum() * (sum(tells.values()) / len(tells) if tells else 0.0)
        questions = sum(tells[e] for e in asked if e[1] == category)
        by_chance = share * sum(tells.values())
        doublings.append(np.log2((1 + known + questions) / (1 + known + by_chance)))
    return sum(p[e] for e in asked), share * sum(p[e] for e in entries), np.mean(doublings)


def test_against_a_slow_loop():
    scores, labels, _, _ = make(15, [1.0, 0.5, 2.0], [0.0, -1.0, 1.0], known=0.4)
    values = labels.values.copy()
    values[:, 1] = 1  # nothing is unknown in this category
    p = scores.probabilities
    row, column = (each[:4] for each in np.nonzero(values == 0))
    found = outlook(p, LabelMatrix(values, labels.categories), row, column)
    expected = slow(p, values, list(zip(row, column, strict=True)))
    assert found.asked == 4
    assert (found.present, found.present_random, found.doublings) == pytest.approx(expected)
    assert found.gain == pytest.approx(PER_DOUBLING * expected[2])
    measured = outlook(p, LabelMatrix(values, labels.categories), row, column, slope=7.0)
    assert measured.gain == pytest.approx(7 * expected[2])


def test_asking_everything_gains_nothing_over_random():
    scores, labels, _, _ = make(30, [1.0, 0.5], [0.0, -1.0], known=0.3)
    everything = np.nonzero(labels.values == 0)
    found = outlook(scores.probabilities, labels, *everything)
    assert found.doublings == pytest.approx(0)
    assert found.present == pytest.approx(found.present_random)
    assert "hardly more mAP than with random questions (+0.0)" in str(found)
    nothing = outlook(scores.probabilities, LabelMatrix(np.ones((30, 2)), list("ab")), *np.zeros((2, 0), int))
    assert (nothing.asked, nothing.present, nothing.present_random, nothing.doublings) == (0, 0, 0, 0)


def test_rare_categories_with_few_labels_gain_more_than_common_ones_with_many():
    many = make(600, np.full(30, 1.0), np.linspace(-5, 0, 30), known=0.05)
    few = make(600, np.full(3, 1.0), np.full(3, 0.0), known=0.9)
    gains = []
    for _, labels, truth, p in (many, few):
        right = Scores(np.log(p / (1 - p)), labels.categories, labels.paths)
        asked = suggest(right, labels, 100)
        gains.append(asked.outlook.gain)
        present = np.count_nonzero(truth.values[asked.row, asked.column] > 0)
        assert asked.outlook.present == pytest.approx(present, abs=4 * np.sqrt(asked.outlook.asked) / 2)
    assert gains[0] > 1 > LEAST > gains[1] > 0


def test_in_words():
    unmeasured = Outlook(asked=2000, present=889.4, present_random=72.6, doublings=1.3)
    assert 'about 889 of the answers will be "present" (73 with random questions)' in str(unmeasured)
    assert unmeasured.gain == pytest.approx(PER_DOUBLING * 1.3)
    assert unmeasured.interval == pytest.approx((unmeasured.gain / 3, unmeasured.gain * 3))
    assert "about +2.6 mAP over random questions (+1.3 to +5.2)" in str(replace(unmeasured, slope=2.0))


def slow_precision(p, scores):
    """Expected mean of (hits so far) / rank over the present entries, as a ratio of two expectations."""
    order = sorted(range(len(p)), key=lambda i: (-scores[i], i))
    ranks = enumerate(order, start=1)
    return sum(p[i] * (1 + sum(p[j] for j in order[: rank - 1])) / rank for rank, i in ranks) / sum(p)


def test_the_slope_against_a_slow_loop():
    random = np.random.RandomState(0)
    p, held = random.random_sample((2, 12, 3))
    unknown = random.random_sample((12, 3)) < 0.7
    unknown[:, 1] = False  # a category without unknown labels says nothing
    losses = [
        slow_precision(p[rows, c], p[rows, c]) - slow_precision(p[rows, c], held[rows, c])
        for c, rows in enumerate(unknown.T)
        if rows.any()
    ]
    expected = 100 * HONESTY * np.mean(losses) / np.log2(3 / 2)
    assert learning_slope(p, held, unknown, 3) == pytest.approx(expected)
    assert learning_slope(p, p, unknown, 3) == 0
    assert learning_slope(p, held, np.zeros((12, 3), bool), 3) == 0


def test_suggest_measures_the_slope_from_out_of_fold_scores():
    scores, labels, _, _ = make(200, np.full(4, 1.0), np.full(4, -1.0), known=0.2)
    noise = np.random.RandomState(0).standard_normal(scores.logits.shape)
    gains = []
    for amount in (0.2, 1.0):
        held = Scores(scores.logits + amount * noise, labels.categories, labels.paths)
        gains.append(suggest(scores, labels, 20, out_of_fold=held).outlook.gain)
    assert 0 < gains[0] < gains[1]
    assert suggest(scores, labels, 20).outlook.slope is None
