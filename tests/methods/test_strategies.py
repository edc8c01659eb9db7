"""The five strategies on a score matrix of three images and three categories, worked out by hand."""

from functools import reduce

import pytest
import torch

from sarb.methods.strategies import STRATEGIES, Opinion, agreement, pseudo_labels

#: the two largest scores of either sign belong to known labels
SCORE = torch.tensor([[3.0, -2.5, 0.5], [-0.4, 2.0, -4.0], [1.0, -1.0, 5.0]])
UNKNOWN = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 0]]).bool()
MEMBERS = (
    SCORE,
    torch.tensor([[2.5, -3.0, 2.0], [-2.0, -1.0, -4.0], [1.5, -2.0, 5.0]]),
    torch.tensor([[1.5, -1.2, 3.0], [-3.0, 2.0, -4.0], [2.0, -1.5, 5.0]]),
)
AGREED = torch.tensor([[1.5, -1.2, 0.5], [-0.4, 0.0, -4.0], [1.0, -1.0, 5.0]])
UNCERTAINTY = torch.tensor([[0.05, 0.2, 0.1], [0.01, 0.3, 0.0], [0.11, 0.1, 0.0]])

#: strategy -> scores, θ, and + present, - absent, . still unlabelled (or known)
CASES = {
    "score": (SCORE, 1.0, ["+-.", ".+.", "..."]),  # 1.0 and -1.0 are not beyond the threshold
    "top": (SCORE, 0.5, ["+-.", ".+.", ".-."]),  # two of 3, 2, 1, 0.5 and two of -2.5, -1, -0.4
    "positives": (SCORE, 1.0, ["+..", ".+.", "..."]),
    "ensemble": (AGREED, 0.9, ["+-.", "...", "+-."]),  # the second member objects to the entry in the middle
    "uncertainty": (SCORE, 0.1, ["+.+", "-..", ".-."]),
}


def drawn(targets):
    signs = {(1.0, 1.0): "+", (0.0, 1.0): "-", (0.0, 0.0): "."}
    rows = zip(targets.value.tolist(), targets.weight.tolist(), strict=True)
    return ["".join(signs[pair] for pair in zip(value, weight, strict=True)) for value, weight in rows]


def test_every_strategy_has_its_case():
    assert set(CASES) == set(STRATEGIES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pseudo_labels(strategy):
    score, threshold, expected = CASES[strategy]
    assert drawn(pseudo_labels(strategy, Opinion(score, UNCERTAINTY), UNKNOWN, threshold)) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_a_known_entry_never_gets_a_pseudo_label(strategy, threshold):
    found = pseudo_labels(strategy, Opinion(SCORE, 0 * UNCERTAINTY), UNKNOWN, threshold)
    assert (found.weight[~UNKNOWN] == 0).all() and (found.value[~UNKNOWN] == 0).all()
    nothing = pseudo_labels(strategy, Opinion(SCORE, 0 * UNCERTAINTY), torch.zeros_like(UNKNOWN), threshold)
    assert nothing.weight.sum() == 0


def test_top_share_of_one_takes_all_and_of_zero_none():
    assert pseudo_labels("top", Opinion(SCORE, UNCERTAINTY), UNKNOWN, 1.0).weight.sum() == UNKNOWN.sum()
    assert pseudo_labels("top", Opinion(SCORE, UNCERTAINTY), UNKNOWN, 0.0).weight.sum() == 0


def test_members_agree_on_the_score_of_the_least_sure_one():
    assert torch.equal(reduce(agreement, MEMBERS), AGREED)
    assert torch.equal(reduce(agreement, MEMBERS[::-1]), AGREED)
