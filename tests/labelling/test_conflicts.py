import numpy as np

from sarb.labelling.calibration import calibrate
from sarb.labelling.conflicts import WEIGHT, find_conflicts, rank_labels
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


def slow_ranking(p, labels):
    """(row, column) of all known labels, by belief."""
    beliefs = {}
    for row, column in zip(*np.nonzero(labels), strict=True):
        sign = labels[row, column]

        def mean(columns, sign=sign):
            return [
                p[r, c] if sign > 0 else 1 - p[r, c]
                for c in columns
                for r in range(len(p))
                if labels[r, c] == sign
            ]

        own, every = mean([column]), mean(range(p.shape[1]))
        usual = (sum(own) + WEIGHT * np.mean(every)) / (len(own) + WEIGHT)
        beliefs[row, column] = (p[row, column] if sign > 0 else 1 - p[row, column]) / usual
    return sorted(beliefs, key=beliefs.get)


def test_against_a_slow_loop():
    _, labels, _, p = make(40, [1.0, 2.0, 0.5], [0.0, -1.0, -2.0], known=0.7)
    ranking = rank_labels(p, labels)
    assert list(zip(ranking.row, ranking.column, strict=True)) == slow_ranking(p, labels.values)
    assert (np.diff(ranking.belief) >= 0).all() and len(ranking.row) == labels.known.sum()


def test_finds_labels_that_were_turned_round():
    scores, labels, _, _ = make(2_000, np.full(20, 1.5), np.full(20, -3.0), known=0.2, spread=3.0)
    random = np.random.default_rng(1)
    wrong = labels.known & (random.random(labels.shape) < 0.02)
    spoiled = LabelMatrix(np.where(wrong, -labels.values, labels.values), labels.categories, labels.paths)
    ranking = rank_labels(calibrate(scores, spoiled)(scores), spoiled)
    first = len(ranking.row) // 20
    assert wrong[ranking.row[:first], ranking.column[:first]].sum() > 0.6 * wrong.sum()


def test_lists_only_what_the_decision_denies():
    p = np.array([[0.9, 0.2], [0.1, 0.7], [0.6, 0.4]])
    labels = LabelMatrix([[-1, -1], [1, 1], [1, 0]], ["cat", "dog"], ["a", "b", "c"])
    found = find_conflicts(p, labels, np.array([0.5, 0.5]))
    assert [(c.file_name, c.label, c.given, c.calibrated) for c in found] in (
        [("a", "cat", -1, 0.9), ("b", "cat", 1, 0.1)],
        [("b", "cat", 1, 0.1), ("a", "cat", -1, 0.9)],
    )
    assert {(c.file_name, c.label) for c in find_conflicts(p, labels, np.array([0.5, 0.8]))} == {
        ("a", "cat"),
        ("b", "cat"),
        ("b", "dog"),
    }


def test_no_known_label():
    labels = LabelMatrix([[0, 0]], ["a", "b"])
    assert find_conflicts(np.zeros((1, 2)), labels, np.full(2, 0.5)) == []
