"""Folding batch norms."""

import pytest
import torch
from torch import nn

from sarb.networks import Backbone, create_backbone
from sarb.networks.backbones.fold import folded


def shaken(backbone):
    """Batch norms far from where they start."""
    torch.manual_seed(0)
    for module in backbone.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            for tensor in (module.bias, module.running_mean):
                nn.init.normal_(tensor, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return backbone


@pytest.mark.parametrize("name", ["tiny", "efficientnet_lite0", "resnet18", "resnet50"])
@pytest.mark.parametrize("training", [False, True])
def test_the_map_is_the_same_to_rounding_and_no_norm_is_left(name, training):
    backbone = shaken(create_backbone(name, weights=None)).train(training)
    backbone.freeze(1)
    before, fingerprint = (
        {k: v.clone() for k, v in backbone.state_dict().items()},
        backbone.frozen_fingerprint(),
    )
    result, images = folded(backbone), torch.randn(2, 3, 64, 64)
    assert backbone.training == training and backbone.frozen_fingerprint() == fingerprint
    assert all(torch.equal(value, before[key]) for key, value in backbone.state_dict().items())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in result.modules())
    backbone.eval()
    with torch.inference_mode():
        for expected, found in (
            (backbone.frozen(images), result.frozen(images)),
            (backbone(images), result(images)),
        ):
            assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


class Reversed(Backbone):
    """Defines convolution and norm in one order and runs them in the other."""

    width, stage_names = 4, ("first", "second")

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.last = nn.Conv2d(3, 4, 1)

    def stage(self, name):
        return [self.norm, self.convolution] if name == "first" else [self.last]


def test_what_does_not_fit_stays_as_it_is():
    backbone, images = shaken(Reversed()).eval(), torch.randn(1, 3, 8, 8)
    with torch.inference_mode():
        assert torch.equal(folded(backbone)(images), backbone(images))


def test_a_convolution_with_a_bias():
    class Biased(Reversed):
        def stage(self, name):
            return [self.convolution, self.norm] if name == "first" else [self.last]

    backbone, images = shaken(Biased()).eval(), torch.randn(1, 3, 8, 8)
    result = folded(backbone)
    with torch.inference_mode():
        assert isinstance(result.norm, nn.Identity) and torch.allclose(
            result(images), backbone(images), atol=1e-5
        )
