import dataclasses

import pytest
import torch

from sarb.networks import create_backbone
from sarb.networks.backbones.concepts import Concepts


@pytest.fixture(scope="module")
def lite0():
    return create_backbone("efficientnet_lite0").eval()


@pytest.fixture(scope="module")
def concepts(lite0):
    return lite0.concepts()


def test_the_thousand_in_the_order_of_the_classifier(concepts):
    assert len(concepts) == len(set(concepts.ids)) == 1000
    assert list(concepts.ids) == sorted(concepts.ids)
    assert (concepts.weight.shape, concepts.bias.shape) == ((1000, 1280), (1000,))
    places = {
        0: "tench",
        340: "zebra",
        386: "African elephant",
        954: "banana",
        963: "pizza",
        999: "toilet tissue",
    }
    assert {place: concepts.names[place] for place in places} == places
    assert concepts.ids[340] == "n02391049"


def test_they_are_no_part_of_the_backbone(lite0, concepts):
    assert not [key for key in lite0.state_dict() if "fc" in key]
    assert not any(value is concepts.weight for value in lite0.parameters())
    assert not concepts.weight.requires_grad


def test_the_mean_of_the_logits_is_the_logit_of_the_averaged_map(concepts):
    torch.manual_seed(0)
    maps = torch.rand(2, 1280, 3, 4)
    logits = concepts.logits(maps)
    assert logits.shape == (2, 1000, 3, 4)
    torch.testing.assert_close(logits.mean((2, 3)), concepts.logits(maps.mean((2, 3))), rtol=1e-4, atol=1e-4)
    probabilities = concepts.probabilities(maps)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(2, 3, 4))


def test_logits_follow_the_type_of_the_map():
    small = Concepts(
        ("a", "b"), ("n1", "n2"), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.5, -0.5])
    )
    assert small.logits(torch.tensor([[1.0, 1.0]], dtype=torch.float64)).tolist() == [[3.5, 6.5]]
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.names = ()


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"])
def test_backbone_and_classifier_belong_together(name):
    """Upright stripes look like a radiator. (Of 40 zebras in coco256 they name 34, 36 and 37.)"""
    backbone = create_backbone(name).eval()
    found = backbone.concepts()
    assert (found.weight.shape, found.names[340]) == ((1000, 1280), "zebra")
    stripes = torch.where(torch.arange(224) // 8 % 2 == 0, 1.0, -1.0).expand(1, 3, 224, 224)
    with torch.inference_mode():
        order = found.probabilities(backbone(stripes).mean((2, 3)))[0].argsort(descending=True)
    assert "radiator" in [found.names[place] for place in order[:5]]


def test_only_the_weights_it_was_trained_with_have_it():
    assert create_backbone("tiny").concepts() is None
    assert create_backbone("efficientnet_lite0", weights=None).concepts() is None
    trained = create_backbone("efficientnet_lite0")
    with torch.no_grad():
        trained.get_parameter("_conv_head.weight").add_(0.01)
    assert trained.concepts() is None


def test_a_backbone_whose_weights_were_loaded_later_has_it(lite0):
    loaded = create_backbone("efficientnet_lite0", weights=None)
    loaded.load_state_dict(lite0.state_dict())
    assert loaded.concepts() is not None
