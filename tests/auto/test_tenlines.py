"""The ten-line baseline: the same scores as scikit-learn, cheaper."""

import numpy as np
import pytest

from sarb.auto import tenlines
from sarb.auto.judge import Judge
from sarb.auto.parts import Parts
from sarb.auto.probe import STEPS, Setting, compare
from sarb.auto.tenlines import CHOICES, principal, standardised, ten_lines
from tests.auto.made import made


def sklearn_scores(pooled, parts, c):
    """Out-of-fold scores of the known entries, by scikit-learn; nan where a fold has one kind of label."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    x = StandardScaler().fit_transform(pooled.astype(np.float64))
    scores = np.full(parts.values.shape, np.nan)
    for category, rows in parts.columns():
        for fold in range(parts.count):
            seen = rows[parts.numbers[rows, category] != fold]
            out = rows[parts.numbers[rows, category] == fold]
            if len(set(parts.values[seen, category])) == 2:
                fitted = LogisticRegression(C=c, tol=1e-8, max_iter=5000).fit(
                    x[seen], parts.values[seen, category]
                )
                scores[out, category] = fitted.decision_function(x[out])
    return scores


@pytest.mark.parametrize(("width", "known"), [(16, 0.8), (200, 0.3), (70, 0.9)])
@pytest.mark.parametrize("c", CHOICES[:-1])
def test_scores_are_those_of_scikit_learn(width, known, c):
    """Within 0.02 of a logit, or 2 % of their spread; the solver stops at 40 steps, scikit-learn later."""
    pooled, labels, *_ = made(images=90, width=width, known=known, categories=3)
    parts = Parts.of(labels, 5, 0)
    features = principal(standardised(pooled), parts)
    ours = compare(features, parts, [Setting(1 / c)], steps=STEPS, narrow=True)[0]
    theirs = sklearn_scores(pooled, parts, c)
    there = np.isfinite(theirs) & parts.known
    assert there.sum() > 60
    np.testing.assert_allclose(ours[there], theirs[there], atol=max(0.02, 0.02 * theirs[there].std()))


def test_c_has_the_least_loss_out_of_fold():
    pooled, labels, *_ = made()
    parts = Parts.of(labels, 5, 0)
    found = ten_lines(pooled, parts)
    judge = Judge.of(parts)
    losses = [
        judge.loss(scores)
        for scores in compare(standardised(pooled), parts, [Setting(1 / c) for c in CHOICES], steps=STEPS)
    ]
    assert found.c in CHOICES
    assert judge.loss(found.scores) < min(losses) + 0.01
    assert (found.scores[~parts.known] == 0).all()


def test_c_is_chosen_on_some_categories_if_many_labels_are_known(monkeypatch):
    pooled, labels, *_ = made(categories=6)
    parts = Parts.of(labels, 5, 0)
    monkeypatch.setattr(tenlines, "CHOICE_ENTRIES", 100)
    assert 1 <= tenlines._some(parts, 0).values.shape[1] < 6
    assert ten_lines(pooled, parts).scores.shape == (120, 6)


def test_too_many_known_labels_are_not_judged(monkeypatch):
    pooled, labels, *_ = made()
    monkeypatch.setattr(tenlines, "MOST_ENTRIES", 10)
    assert ten_lines(pooled, Parts.of(labels, 5, 0)) is None


def test_a_constant_channel_and_no_known_label():
    pooled, labels, *_ = made(images=20)
    pooled[:, 3] = 0.1
    assert (standardised(pooled)[:, 3] == 0).all()
    empty = Parts(np.zeros_like(labels.values), np.zeros(labels.shape, np.int64), 5)
    assert (ten_lines(pooled, empty).scores == 0).all()
