"""A network that learns what a fitted model leaves over."""

import pytest
import torch

from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix, Targets
from sarb.methods.dsrb import DSRB
from sarb.methods.sarb import SARB
from sarb.networks.backbones.base import create_backbone
from sarb.networks.branches import Branch, classify_branches
from sarb.networks.on_top import OnTop
from sarb.networks.pooled import Pooled
from sarb.networks.ssgrl import SSGRL

IMAGES = 6
CATEGORIES = 4


@pytest.fixture
def network():
    torch.manual_seed(0)
    inner = SSGRL(create_backbone("tiny", None), CATEGORIES, csrl="sam", dim=8, steps=1, initial="informed")
    made = OnTop(inner, 5 * torch.randn(IMAGES, CATEGORIES)).eval()
    labels = LabelMatrix([[1, -1, 0, 1]] * IMAGES, ["a", "b", "c", "d"], [str(i) for i in range(IMAGES)])
    images = torch.randn(IMAGES, 3, 32, 32)
    made.initialise(labels, lambda: [inner.backbone.frozen(images)])
    made.eval()
    return made


def _maps(network):
    torch.manual_seed(1)
    return torch.randn(IMAGES, network.inner.dim, 2, 2)


def test_it_starts_with_exactly_the_logits_of_the_fitted_model(network):
    index = torch.tensor([3, 0, 5])
    network.at(index)
    logits = network.head(_maps(network)[:3])
    torch.testing.assert_close(logits, network.offsets[index], rtol=1e-6, atol=1e-6)
    assert (network.inner.head(_maps(network)) == 0).all()


def test_a_blend_blends_the_offsets_too(network):
    torch.nn.init.normal_(network.inner.classifier.category.weight)
    network.at(torch.arange(IMAGES))
    reps = network.represent(_maps(network))
    method = SARB(network, plrb=False, alpha=0.25)
    labels = torch.zeros(IMAGES, CATEGORIES)
    labels[1, 2] = 1
    partner = torch.arange(IMAGES).roll(-1)  # image 0 takes category 2 from image 1
    blended, targets = method.ilrb(reps, Targets.of(labels), partner)
    mixed = 0.25 * network.offsets[0, 2] + 0.75 * network.offsets[1, 2]
    logits = network.classify(blended)
    inner = network.inner.classify(blended[..., :-1])
    torch.testing.assert_close(logits[0, 2] - inner[0, 2], mixed, rtol=1e-4, atol=1e-4)
    assert targets.value[0, 2] == 0.75


def test_the_shortcut_for_branches_gives_the_same_logits(network):
    torch.nn.init.normal_(network.inner.classifier.category.weight)
    network.at(torch.arange(IMAGES))
    reps = network.represent(_maps(network))
    blended = reps.clone()
    blended[2, 1] = 0.5 * reps[2, 1] + 0.5 * reps[4, 1]
    changed = torch.zeros(IMAGES, CATEGORIES, dtype=torch.bool)
    changed[2, 1] = True
    plain, branch = classify_branches(network, reps, [Branch(blended, changed)])
    torch.testing.assert_close(plain, network.classify(reps), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(branch, network.classify(blended), rtol=1e-4, atol=1e-4)


def test_positions_are_those_of_the_inner_network(network):
    """DSRB takes them from attention times values; without the values it would look at other cells."""
    torch.nn.init.normal_(network.inner.sam.mask.weight)
    torch.nn.init.normal_(network.inner.sam.transform.weight)
    maps = torch.randn(IMAGES, network.inner.dim, 4, 4)
    on_top, alone = DSRB(network), DSRB(network.inner)
    assert torch.equal(on_top.quadrants(maps), alone.quadrants(maps))


def test_every_known_entry_but_no_unknown_one_moves_the_residual(network):
    network.train()
    images = torch.randn(IMAGES, 3, 32, 32)
    labels = torch.zeros(IMAGES, CATEGORIES)
    labels[:, 1] = 1
    method = SARB(network, start=99, contrastive=0)
    loss = sum(method(Batch(images, labels, torch.arange(IMAGES))).values())
    loss.backward()
    slope = network.inner.classifier.category.weight.grad
    assert slope[1].abs().sum() > 0
    assert (slope[[0, 2, 3]] == 0).all()


def test_learning_rates_are_those_of_the_inner_network(network):
    assert network.part_of("inner.sam.transform.weight") == "project"
    assert network.part_of("inner.classifier.join.weight") == "join"


def test_a_network_without_representations_or_start_is_refused():
    pooled = Pooled(create_backbone("tiny", None), 2)
    with pytest.raises(ConfigError, match="no stage 'represent'"):
        OnTop(pooled, torch.zeros(1, 2))
    with pytest.raises(ConfigError, match="no start at zero"):
        pooled.start_at_zero()
