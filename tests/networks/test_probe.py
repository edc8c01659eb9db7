"""The network that holds a fitted ladder."""

import numpy as np
import pytest
import torch

from sarb.auto.evidence import concept_scores
from sarb.auto.ladder import fit_ladder
from sarb.networks.backbones.base import create_backbone
from sarb.networks.probe import Probe
from tests.auto.made import made

KINDS = 12


@pytest.fixture(scope="module")
def fitted():
    """A ladder with every rung, fitted to the maps of random images of which labels are known in part."""
    torch.manual_seed(0)
    backbone = create_backbone("tiny", None).eval()
    _, labels, full, _, _ = made(images=90, categories=3, known=0.7)
    random = np.random.RandomState(1)
    images = torch.from_numpy(random.randn(110, 3, 32, 32)).float()
    for category in range(3):
        images[:90, category] += torch.from_numpy(1.5 * (full[:, category] > 0))[:, None, None].float()
    weight = torch.from_numpy(random.randn(KINDS, backbone.width)).float()
    bias = torch.from_numpy(random.randn(KINDS)).float()
    with torch.no_grad():
        maps = backbone(images).numpy()
    concepts = concept_scores(maps, weight.numpy(), bias.numpy())
    ties = np.zeros((3, KINDS), bool)
    ties[0, :3] = True
    ties[1, 4] = True
    train = np.arange(90)
    ladder = fit_ladder(maps[:90].mean((2, 3)), labels, concepts.rows(train), ties, width=16, neighbours=10)
    return backbone, ladder, images, maps, concepts, (weight, bias)


def _network(fitted):
    backbone, ladder, _, _, _, classifier = fitted
    network = Probe(backbone, 3, **Probe.sizes(ladder, KINDS)).eval()
    network.load_ladder(ladder, *classifier)
    return network


@pytest.mark.parametrize("rows", [slice(0, 90), slice(90, 110), slice(0, 1)])
def test_logits_are_those_of_the_ladder(fitted, rows):
    _, ladder, images, maps, concepts, _ = fitted
    chosen = np.arange(110)[rows]
    expected = ladder(maps[rows].mean((2, 3)), concepts.rows(chosen))
    with torch.no_grad():
        np.testing.assert_allclose(_network(fitted)(images[rows]).numpy(), expected, atol=1e-4)


def test_every_part_counts_in_that_comparison(fitted):
    """With weights of our own, so that no rung is off by chance."""
    backbone, ladder, images, maps, concepts, classifier = fitted
    from dataclasses import replace

    from sarb.auto.evidence import ConceptBayes, NameEvidence, Scale

    random = np.random.RandomState(3)
    one = Scale(random.randn(3), 1 + random.rand(3))
    changed = replace(
        ladder,
        bayes=ConceptBayes(random.rand(1, 3, KINDS), (one,)),
        bayes_weight=random.rand(3),
        names=NameEvidence(np.eye(3, KINDS) > 0, (one, one, one)),
        name_weight=random.rand(3),
        bank=ladder.projection.directions(ladder.projection(maps[:40].mean((2, 3)))),
        bank_labels=random.rand(40, 3),
        neighbours=10,
        neighbour_weight=random.rand(3),
    )
    network = Probe(backbone, 3, **Probe.sizes(changed, KINDS)).eval()
    network.load_ladder(changed, *classifier)
    expected = changed(maps.mean((2, 3)), concepts)
    with torch.no_grad():
        np.testing.assert_allclose(network(images).numpy(), expected, atol=1e-4)


def test_options_and_state_make_it_again(fitted):
    backbone, ladder, images, _, _, _ = fitted
    network = _network(fitted)
    again = Probe(backbone, 3, **Probe.sizes(ladder, KINDS)).eval()
    again.load_state_dict(network.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(network(images), again(images), rtol=0, atol=0)


def test_attention_adds_up_to_the_linear_part(fitted):
    network = _network(fitted)
    maps = torch.from_numpy(fitted[3][90:94]) + 0.1
    with torch.no_grad():
        found = network.attention(maps)
        logits = network.classifier(network.features(maps.mean((2, 3))))
        constant = network.classifier.bias - network.mean @ network.components @ network.classifier.weight.T
    assert found.shape == (4, 3, *maps.shape[2:])
    torch.testing.assert_close(found.mean((2, 3)) + constant, logits, rtol=1e-4, atol=1e-4)


def test_a_fresh_one_says_nothing(fitted):
    network = Probe(fitted[0], 3, width=4).eval()
    with torch.no_grad():
        assert (network(fitted[2][:2]) == 0).all()


def test_the_exported_program_agrees(fitted):
    network = _network(fitted)
    images = fitted[2][:5]
    program = torch.export.export(network, (images[:2],), dynamic_shapes=({0: torch.export.Dim("batch")},))
    with torch.no_grad():
        torch.testing.assert_close(program.module()(images), network(images), rtol=0, atol=1e-5)
