"""Prototypes by quadrant."""

import torch

from sarb.blends.quadrant import QuadrantBlend, quadrant_of
from sarb.labels import Targets


def test_quadrant_of_the_peak():
    for height, width in ((4, 4), (3, 5)):
        for row in range(height):
            for column in range(width):
                strength = torch.zeros(1, 1, height, width)
                strength[0, 0, row, column] = 1
                assert quadrant_of(strength).item() == 2 * (row >= height / 2) + (column >= width / 2)


def fitted(most=100):
    blend = QuadrantBlend(2, 1, most=most)
    features = torch.tensor([[10.0], [20.0], [30.0], [40.0], [60.0]])
    blend.fit_quadrants(features, torch.zeros(5).long(), torch.tensor([0, 1, 2, 3, 0]))
    return blend


def test_only_the_first_positives_count():
    assert fitted().centers[0, :, 0].tolist() == [35, 20, 30, 40]
    assert fitted(most=1).centers[0, :, 0].tolist() == [10, 20, 30, 40]


def test_blends_with_another_quadrant_only():
    torch.manual_seed(0)
    blend = fitted(most=1)
    targets = Targets.of(torch.zeros(1, 2))
    seen = set()
    for _ in range(60):
        reps, completed = blend.blend(torch.zeros(1, 2, 1), targets, torch.full((1, 2), 2))
        assert completed.value.tolist() == [[0.5, 0]] and completed.weight.tolist() == [[1, 0]]
        seen.add(2 * reps[0, 0, 0].item())
    assert seen == {10, 20, 40}


def test_a_known_label_is_never_overwritten():
    blend = fitted()
    targets = Targets.of(torch.tensor([[1, 0], [-1, 1]]))
    reps, completed = blend.blend(torch.ones(2, 2, 1), targets, torch.zeros(2, 2).long())
    assert torch.equal(reps, torch.ones(2, 2, 1))  # the second category has no prototypes
    assert torch.equal(completed.value, targets.value) and torch.equal(completed.weight, targets.weight)
