"""The largest of some entries."""

import torch

from sarb.losses.largest import largest


def test_by_hand():
    values = torch.tensor([[3.0, 9.0], [5.0, 5.0]])
    among = torch.tensor([[True, False], [True, True]])
    assert largest(values, among, 0).sum() == 0
    assert largest(values, among, 1).tolist() == [[False, False], [True, False]]  # the first of equal ones
    assert largest(values, among, 2).tolist() == [[False, False], [True, True]]
    assert torch.equal(largest(values, among, 9), among)


def test_nothing_to_choose_from():
    assert largest(torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.bool), 3).sum() == 0
