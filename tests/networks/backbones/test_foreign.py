import pytest
import torch
from torch import nn

from sarb.errors import ConfigError
from sarb.networks.backbones.concepts import Concepts
from sarb.networks.backbones.foreign import Foreign, Stage
from sarb.networks.backbones.scales import MultiScale


def made(step=1, only_size=None):
    backbone = Foreign("other:model")
    backbone.step = step
    backbone.only_size = only_size
    backbone.take(
        [Stage("stem", [nn.Conv2d(3, 4, 7, 7)]), Stage("block1", [nn.Conv2d(4, 6, 1), nn.BatchNorm2d(6)])]
    )
    return backbone


def concepts(width):
    return Concepts(("a", "b"), ("n1", "n2"), torch.randn(2, width), torch.zeros(2))


def test_stages_width_and_small_size():
    backbone = made(step=14)
    assert backbone.stage_names == ("stem", "block1") and backbone.width == 6
    assert backbone.small == 70 and made(only_size=42).small == 42 and made().small == 64
    backbone.freeze(1)
    assert backbone.frozen(torch.zeros(1, 3, 70, 70)).shape == (1, 4, 10, 10)


@pytest.mark.parametrize(
    ("backbone", "size", "message"),
    [
        (
            made(step=14),
            225,
            "image_size 225 does not fit other:model: its patches have 14 pixels; use 224 or 238",
        ),
        (made(only_size=70), 84, "image_size 84 does not fit other:model: it takes 70 pixels only"),
    ],
)
def test_a_size_that_does_not_fit_is_one_line(backbone, size, message):
    with pytest.raises(ConfigError) as caught:
        backbone.check_size(size)
    assert str(caught.value) == message
    backbone.check_size(70)


def test_scales_fit_the_patches():
    several = MultiScale(made(step=14), [1.0, 0.7])
    several.check_size(224)
    assert several.body.scaled(224, 0.7) == 154 and several.small == 70
    assert MultiScale(made(step=16), [1.0, 0.7]).body.scaled(224, 0.7) == 160
    with pytest.raises(ConfigError, match="image_size 225 does not fit"):
        several.check_size(225)
    with pytest.raises(ConfigError, match="it takes 64 pixels only"):
        MultiScale(made(only_size=64), [1.0, 2.0]).check_size(64)
    several.body.trunk.normalise([1, 2, 3], [4, 5, 6])
    assert several.described() == {"mean": [1, 2, 3], "std": [4, 5, 6]}


def test_the_classifier_belongs_to_the_weights_it_came_with():
    backbone = made()
    backbone.offer(concepts(5))
    assert backbone.concepts() is None  # another width
    backbone.offer(concepts(6))
    assert backbone.concepts() is not None
    stored = {key: value.clone() for key, value in backbone.state_dict().items()}
    with torch.no_grad():
        backbone.parts["stem"][0].weight[0, 0, 0, 0] += 1
    assert backbone.concepts() is None
    backbone.load_state_dict(stored)
    assert backbone.concepts() is not None


def test_what_it_is_belongs_to_the_key_of_the_cache():
    torch.manual_seed(0)
    one = made()
    torch.manual_seed(0)
    other = made()
    assert one.frozen_fingerprint() == other.frozen_fingerprint()
    other.title = "other:thing"
    assert one.frozen_fingerprint() != other.frozen_fingerprint()


@pytest.mark.parametrize(("mean", "std"), [([1, 2], [1, 1, 1]), ([1, 2, 3], [1, 1, 0])])
def test_a_wrong_normalisation_is_refused(mean, std):
    with pytest.raises(ConfigError, match=r"backbone\.mean and backbone\.std must be three numbers"):
        made().normalise(mean, std)
