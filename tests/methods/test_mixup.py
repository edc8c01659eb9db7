"""Mixup of pixels and of grid features: the loss with a given λ and partner, worked out by hand."""

import math

import pytest
import torch

import sarb
import sarb.methods.mixup as module
from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.methods.mixup import FeatureMapMixup, PixelMixup
from sarb.networks import create_backbone
from sarb.networks.base import Network
from sarb.networks.pooled import Pooled

KINDS = (PixelMixup, FeatureMapMixup)


class Square(Network):
    """Maps are the square of the image (B, C, 1, 1), and are the score: pixels and maps mix differently."""

    stages = frozenset({"maps", "classify"})

    def __init__(self):
        super().__init__(create_backbone("tiny"), 2)

    def maps(self, images):
        return images**2

    def from_frozen(self, activations):
        return activations

    def classify(self, features):
        return features[:, :, 0, 0]


def softplus(x):
    return math.log(1 + math.exp(x))


def given(monkeypatch, share, *partner):
    monkeypatch.setattr(module, "draw_mixing", lambda *_: (torch.tensor(share), torch.tensor(partner)))


def make_batch(values, labels):
    return Batch(torch.tensor(values)[:, :, None, None], torch.tensor(labels), torch.arange(len(labels)))


# images (1, 2) and (3, 0), λ = 0.75: pixels mix to (1.5, 1.5) and (2.5, 0.5), squares to (3, 3) and (7, 1)
SCORES = {PixelMixup: ((2.25, 2.25), (6.25, 0.25)), FeatureMapMixup: ((3.0, 3.0), (7.0, 1.0))}


@pytest.mark.parametrize("kind", KINDS)
def test_loss_by_hand_with_a_mask_for_each_set_of_labels(kind, monkeypatch):
    given(monkeypatch, 0.75, 1, 0)
    terms = kind(Square())(make_batch([[1.0, 2.0], [3.0, 0.0]], [[1, 0], [0, -1]]))
    scores = SCORES[kind]
    # own labels: (0, 0) present, (1, 1) absent; the partner's: (0, 1) absent, (1, 0) present; nothing else
    # is known
    own = (softplus(-scores[0][0]) + softplus(scores[1][1])) / 2
    other = (softplus(scores[0][1]) + softplus(-scores[1][0])) / 2
    assert terms["cls"].item() == pytest.approx(0.75 * own, rel=1e-5)
    assert terms["mixup"].item() == pytest.approx(0.25 * other, rel=1e-5)
    assert set(terms) == {"cls", "mixup"}


@pytest.mark.parametrize("kind", KINDS)
def test_contradicting_labels_are_never_averaged(kind, monkeypatch):
    # +1 and -1 would average to "unknown" at λ = 0.5
    given(monkeypatch, 0.5, 1, 0)
    terms = kind(Square())(make_batch([[1.0, 1.0], [1.0, 1.0]], [[1, 0], [-1, 0]]))
    assert terms["cls"].item() == pytest.approx((softplus(-1) + softplus(1)) / 4, rel=1e-5)
    assert terms["mixup"].item() == pytest.approx((softplus(-1) + softplus(1)) / 4, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_unknown_entry_gets_a_gradient(kind, monkeypatch):
    given(monkeypatch, 0.6, 1, 0)
    images = torch.randn(2, 2, 1, 1)
    network, seen = Square(), []

    def keep(features):
        features.requires_grad_()
        seen.append(features)
        return features[:, :, 0, 0]

    network.classify = keep
    terms = kind(network)(Batch(images, torch.tensor([[1, 0], [-1, 0]]), torch.arange(2)))
    (terms["cls"] + terms["mixup"]).backward()
    assert (seen[0].grad[:, 0] != 0).all() and (seen[0].grad[:, 1] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_all_unknown_is_exactly_zero(kind):
    terms = kind(Square())(make_batch([[1.0, 2.0], [3.0, 0.0]], [[0, 0], [0, 0]]))
    assert [value.item() for value in terms.values()] == [0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_image_is_plain_partial_bce(kind):
    terms = kind(Square())(make_batch([[1.0, 2.0]], [[1, -1]]))
    assert terms["cls"].item() == pytest.approx((softplus(-1) + softplus(4)) / 2, rel=1e-5)
    assert terms["mixup"].item() == 0


def test_cached_features_serve_maps_and_not_pixels(squares_data):
    assert FeatureMapMixup.cacheable and not PixelMixup.cacheable
    with pytest.raises(ConfigError, match="'ip_mixup' mixes pixels"):
        sarb.fit(
            squares_data.train, recipe="small", method="ip_mixup", cache=True, backbone="tiny", progress=False
        )


def test_maps_of_a_batch_from_the_cache_are_mixed_alike():
    torch.manual_seed(0)
    network = Pooled(create_backbone("tiny", train_stages=1), 2).eval()
    images, labels = torch.rand(3, 3, 64, 64), torch.tensor([[1, 0], [-1, 1], [0, -1]])
    batches = (
        Batch(images, labels, torch.arange(3)),
        Batch(network.backbone.frozen(images), labels, torch.arange(3), frozen=True),
    )
    losses = []
    for batch in batches:
        torch.manual_seed(2)
        losses.append([value.item() for value in FeatureMapMixup(network)(batch).values()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_concentration_must_be_positive():
    with pytest.raises(ConfigError, match=r"method\.concentration must be more than 0, got 0"):
        PixelMixup(Square(), concentration=0.0)
