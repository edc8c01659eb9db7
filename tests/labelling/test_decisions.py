import numpy as np

from sarb.labelling.decisions import decide, extreme, overall_f1
from sarb.labelling.thresholds import level_counts, steady
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


def parts(count):
    return np.random.RandomState(0).permutation(count) % 5


def test_overall_f1_by_hand():
    labels = LabelMatrix([[1, -1], [1, 0], [-1, 1]], list("ab"))
    said = np.array([[True, True], [False, True], [False, True]])  # 2 right of 3 known, 3 present
    assert overall_f1(said, labels) == 100 * 2 * 2 / (3 + 3)
    assert overall_f1(~said & False, LabelMatrix([[-1, 0]] * 3, list("ab"))) == 0


def test_thresholds_are_kept_at_half_where_nothing_is_better():
    """Random labels say nothing about a threshold other than that all are present."""
    random = np.random.default_rng(3)
    labels = LabelMatrix(np.where(random.random((40, 3)) < 0.6, 1, -1), list("abc"))
    found = decide(np.full((40, 3), 0.6), labels, parts(40))
    assert found.chosen == found.half and (found.thresholds == 0.5).all()


def test_thresholds_are_chosen_where_they_are_better():
    _, labels, truth, p = make(2000, np.full(4, 1.5), np.full(4, -3.0), known=0.5)
    found = decide(p, labels, parts(2000))
    assert found.chosen > found.half and (found.thresholds < 0.5).all()
    unseen = LabelMatrix(np.where(labels.known, 0, truth.values), labels.categories)
    assert overall_f1(p >= found.thresholds, unseen) > overall_f1(p >= 0.5, unseen)


def test_no_label_judges_a_threshold_it_has_chosen():
    """Measured part by part, with thresholds of the others."""
    _, labels, _, p = make(300, np.full(2, 1.5), np.full(2, -2.0), known=1)
    part = parts(300)
    said = np.zeros(p.shape, bool)
    for number in range(5):
        rest = part != number
        counts = level_counts(p[rest], labels.take(np.flatnonzero(rest)))
        said[~rest] = p[~rest] >= steady(counts)
    own = overall_f1(p >= steady(level_counts(p, labels)), labels)
    assert decide(p, labels, part).chosen == overall_f1(said, labels) != own


def test_extreme_thresholds_are_named():
    labels = LabelMatrix([[1, 1, 1], [-1, -1, 0], [0, 0, 0]], ["Person", "sea", "sky"])
    p = np.array([[0.9, 0.9, 0.9], [0.2, 0.6, 0.3], [0.1, 0.2, 0.4]])
    told = extreme(np.array([0.06, 0.5, 0.3]), p, labels)
    assert told == ["Person: 0.06 marks 3 of 3 photos"]
    assert extreme(np.array([0.2, 0.15, 0.3]), p, labels) == ["sea: 0.15 marks 3 of 3 photos"]
