"""The bank of the newest positives."""

import torch

from sarb.blends.bank import Bank


def test_equals_a_list_per_category():
    torch.manual_seed(0)
    bank = Bank(3, 2, size=4)
    lists = [[] for _ in range(3)]
    for _ in range(5):
        features, owner = torch.randn(7, 2), torch.randint(0, 2, (7,))
        bank.add(features, owner)
        for feature, category in zip(features, owner.tolist(), strict=True):
            lists[category] = [*lists[category], feature / feature.norm()][-4:]
        for category in range(3):
            held = {tuple(row.tolist()) for row in bank.places[category] if row.any()}
            assert held == {tuple(row.tolist()) for row in lists[category]}
    reps = torch.randn(2, 3, 2)
    similarity, filled = bank.similarity(reps)
    assert filled.tolist() == [True, True, False]
    for image in range(2):
        for category in range(2):
            unit = reps[image, category] / reps[image, category].norm()
            expected = sum(unit @ row for row in lists[category]) / len(lists[category])
            assert torch.allclose(similarity[image, category], expected, atol=1e-6)
    assert (similarity[:, 2] == 0).all()


def test_empty_places_do_not_count():
    """In the authors' code a bank of zeros drags the mean down until it is full."""
    bank = Bank(1, 2, size=100)
    bank.add(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert bank.similarity(torch.tensor([[[5.0, 0.0]]]))[0].item() == 1


def test_nothing_to_add():
    bank = Bank(2, 2)
    bank.add(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    assert bank.seen.tolist() == [0, 0]
