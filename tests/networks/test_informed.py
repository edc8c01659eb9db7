"""The informed start: what it promises, on data where the answer is known."""

import numpy as np
import pytest
import torch

from sarb.labels import LabelMatrix
from sarb.networks import SSGRL, Pooled, create_backbone
from sarb.networks.informed import principal_directions, prior_logits, start_join

LABELS = LabelMatrix([[1, 0, -1], [1, -1, -1], [-1, -1, 0], [0, 0, -1]], ["a", "b", "c"])


def test_principal_directions_are_those_of_numpy() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = (
        torch.randn(20, 6, 4, 4, generator=generator)
        * torch.tensor([5, 1, 3, 0.5, 2, 0.1])[None, :, None, None]
    )
    maps = maps + 7
    cells = maps.transpose(0, 1).flatten(1).double().numpy()
    _, vectors = np.linalg.eigh(np.cov(cells, bias=True))
    found = principal_directions(lambda: maps.split(7), 3)
    for row, expected in zip(found.double().numpy(), vectors[:, ::-1].T, strict=False):
        assert abs(row @ expected) == pytest.approx(1, abs=1e-6)
        assert row[np.abs(row).argmax()] > 0


def test_prior_is_the_smoothed_rate_of_known_positives() -> None:
    rates = torch.sigmoid(prior_logits(LABELS))
    assert rates.tolist() == pytest.approx([3 / 23, 1 / 22, 1 / 23], abs=1e-6)


def test_join_starts_as_a_multiple_of_the_representation() -> None:
    join = torch.nn.Linear(8, 4)
    start_join(join, scale=2.0, noise=0.0)
    state, rep = torch.randn(5, 4), torch.randn(5, 4)
    assert torch.allclose(join(torch.cat([state, rep], -1)), 2 * rep)


@pytest.mark.parametrize("csrl", ["sd", "sam"])
def test_informed_ssgrl_attends_evenly_whitens_and_predicts_near_the_rates(csrl: str) -> None:
    torch.manual_seed(0)
    network = SSGRL(
        create_backbone("tiny"), 3, csrl=csrl, dim=16, hidden=8, initial="informed", normalise=True
    )
    images = torch.rand(12, 3, 64, 64)
    network.initialise(LABELS, lambda: [network.backbone.frozen(images)])
    network.train()
    maps = network.maps(images)
    cells = maps.transpose(0, 1).flatten(1)
    assert torch.allclose(cells.std(1), torch.ones(16), atol=0.1)
    correlation = torch.corrcoef(cells) - torch.eye(16)
    assert correlation.abs().max() < 0.1
    reps = network.represent(maps)
    assert torch.allclose(reps, maps.mean((2, 3))[:, None].expand_as(reps), atol=0.15)
    assert torch.allclose(network.classify(reps).mean(0), prior_logits(LABELS), atol=0.5)


def test_random_start_is_left_alone() -> None:
    for network in (SSGRL(create_backbone("tiny"), 3, dim=8, hidden=4), Pooled(create_backbone("tiny"), 3)):
        before = {key: value.clone() for key, value in network.state_dict().items()}
        network.initialise(LABELS, list)
        assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_informed_pooled_predicts_the_rates() -> None:
    network = Pooled(create_backbone("tiny"), 3, initial="informed").eval()
    network.initialise(LABELS, list)
    assert torch.allclose(network(torch.rand(2, 3, 64, 64)), prior_logits(LABELS).expand(2, 3))
