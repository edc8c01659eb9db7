"""Six families of timm, small and with random weights, pass the contract of a backbone."""

import pytest
import torch
from safetensors.torch import save_file

from sarb.errors import ConfigError
from sarb.networks.backbones.base import create_backbone
from sarb.settings import resolve
from sarb.wordnet.table import wordnet
from tests.extras.backbone_contract import BackboneContract

pytest.importorskip("timm")

SMALL = {"embed_dim": 32, "depth": 3, "num_heads": 2}
#: family -> name, options, image size
FAMILIES = {
    "resnet": ("timm:resnet10t", {}, 64),
    "efficientnet": ("timm:efficientnet_lite0", {}, 64),
    "convnext": ("timm:convnext_atto", {"arguments": {"depths": [1, 1, 1, 1], "dims": [8, 16, 24, 32]}}, 64),
    "swin": (
        "timm:swin_tiny_patch4_window7_224",
        {"arguments": {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}},
        64,
    ),
    "vit": ("timm:vit_tiny_patch16_224", {"arguments": SMALL}, 64),
    "dinov2": ("timm:vit_small_patch14_reg4_dinov2", {"arguments": SMALL}, 70),
    "dinov3": ("timm:vit_small_patch16_dinov3", {"arguments": SMALL}, 64),
}


@pytest.fixture(params=FAMILIES)
def backbone(request):
    return FAMILIES[request.param]


@pytest.fixture
def moved_files():
    return lambda: None


class TestTimm(BackboneContract):
    pass


def test_what_cannot_be_cut_is_one_stage():
    body = create_backbone("timm:mixer_s32_224", None)
    assert body.stage_names == ("body",) and body.only_size == 224
    with pytest.raises(
        ConfigError, match="image_size 256 does not fit timm:mixer_s32_224: it takes 224 pixels"
    ):
        body.check_size(256)


def test_what_makes_several_maps_is_one_line():
    with pytest.raises(ConfigError, match="CrossVit: no backbone, it makes several maps at once"):
        create_backbone("timm:crossvit_tiny_240", None)


def test_input_size_and_normalisation_are_the_models():
    assert resolve(backbone="timm:vit_small_patch14_reg4_dinov2").image_size == 518
    assert resolve(backbone="timm:vit_small_patch14_reg4_dinov2", image_size=224).image_size == 224
    odd = "timm:vit_so400m_patch14_siglip_384"  # its patches do not cover 384 pixels
    assert resolve(backbone=odd).image_size == 378
    create_backbone(odd, None, arguments={**SMALL, "mlp_ratio": 2.0}).check_size(378)
    body = create_backbone("timm:vit_tiny_patch16_224", None, arguments=SMALL)
    assert body.mean == (127.5, 127.5, 127.5) and body.std == (127.5, 127.5, 127.5)


@pytest.mark.parametrize("name", ["resnet10t", "convnext_atto", "vit_tiny_patch16_224"])
def test_weights_from_a_file_bring_the_classifier_until_they_are_trained(name, tmp_path):
    import timm

    torch.manual_seed(3)
    model = timm.create_model(name).eval()
    save_file(
        {key: value.contiguous() for key, value in model.state_dict().items()}, tmp_path / "w.safetensors"
    )
    body = create_backbone(f"timm:{name}", tmp_path / "w.safetensors").eval()
    concepts = body.concepts()
    assert concepts is not None and concepts.ids == wordnet().ids
    assert torch.equal(concepts.weight, model.get_classifier().weight)
    if name == "resnet10t":  # nothing between the average and the classifier
        images = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            torch.testing.assert_close(concepts.logits(body(images).mean((2, 3))), model(images))
    assert create_backbone(f"timm:{name}", None).concepts() is None
    with torch.no_grad():
        next(body.parameters()).add_(1.0)
    assert body.concepts() is None


def test_errors_are_one_line_each(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cases = {
        "timm:resnet188": "unknown model of timm: 'resnet188'. Did you mean 'resnet18",
        "timm:resnet18.b7": "unknown weights of timm:resnet18: 'b7'",
        "timm:resnet18": r"timm/resnet18.a1_in1k: .* cannot be fetched .*hf download timm/resnet18.a1_in1k",
        "timm:mixer_s32_224": "has no pretrained weights",
    }
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, message in cases.items():
        with pytest.raises(ConfigError, match=message) as caught:
            create_backbone(name)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="arguments do not fit timm:resnet18"):
        create_backbone("timm:resnet18", None, arguments={"colour": "red"})
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(ConfigError, match="not the weights of timm:resnet18"):
        create_backbone("timm:resnet18", tmp_path / "other.safetensors")
