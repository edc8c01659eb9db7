"""Several resolutions: one backbone like any other."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import sarb
from sarb.batches.engines import NAMES
from sarb.batches.features import View, cached_features
from sarb.data.images import EvalTransform
from sarb.errors import ConfigError
from sarb.networks import create_backbone
from sarb.networks.backbones.fold import folded
from sarb.networks.backbones.scales import resize
from sarb.settings import parse_assignment, resolve


@pytest.fixture
def images():
    return torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))


def tiny(**options):
    torch.manual_seed(0)
    return create_backbone("tiny", **options).eval()


@pytest.mark.parametrize("size", [(32, 64), (64, 64), (96, 96), (160, 224), (7, 3)])
def test_a_resize_is_torchs_antialiased_bilinear_one(images, size):
    expected = F.interpolate(images, size, mode="bilinear", antialias=True)
    torch.testing.assert_close(resize(images, *size), expected, rtol=1e-4, atol=1e-4)


def test_the_maps_are_those_of_each_scale_on_the_first_grid(images):
    trunk = tiny(train_stages=0)
    backbone = tiny(scales=[1.0, 0.7, 1.4])
    smaller = F.interpolate(images, (64, 64), mode="bilinear", antialias=True)  # 0.7 · 96 = 67
    larger = F.interpolate(images, (128, 128), mode="bilinear", antialias=True)  # 1.4 · 96 = 134
    with torch.no_grad():
        found = backbone(images)
        first = trunk(images)
        second = F.interpolate(trunk(smaller), (6, 6), mode="bilinear")
        third = F.interpolate(trunk(larger), (6, 6), mode="bilinear", antialias=True)
    assert (backbone.width, found.shape) == (192, (2, 192, 6, 6))
    torch.testing.assert_close(found, torch.cat([first, second, third], 1), rtol=1e-4, atol=1e-5)


def test_one_scale_is_the_backbone_itself():
    assert type(tiny(scales=[1.0])) is type(tiny(scales=[1])) is type(tiny())


def test_all_of_it_is_frozen(images):
    backbone = tiny(scales=[1.0, 0.5]).train()
    before = {key: value.clone() for key, value in backbone.state_dict().items()}
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    assert backbone.train_stages == 0 and not backbone(images).requires_grad
    assert all(torch.equal(value, before[key]) for key, value in backbone.state_dict().items())


@pytest.mark.parametrize("scales", [[], [0.5], [1.0, 0.0], [1.0, float("nan")], [1.0, 0.5, 0.5], [0.5, 1.0]])
def test_wrong_scales(scales):
    with pytest.raises(ConfigError, match=r"backbone\.scales must be 1 and further different numbers"):
        tiny(scales=scales)


def test_a_stage_cannot_be_trained():
    with pytest.raises(ConfigError, match=r"scales needs a frozen backbone, got train_stages=1"):
        tiny(scales=[1.0, 0.5], train_stages=1)


def test_the_fingerprint_knows_scales_and_weights():
    fingerprints = [
        tiny(scales=scales, train_stages=0).frozen_fingerprint() for scales in (None, [1.0, 0.5], [1.0, 0.7])
    ]
    changed = tiny(scales=[1.0, 0.5])
    with torch.no_grad():
        next(changed.parameters()).add_(1)
    assert len({*fingerprints, changed.frozen_fingerprint()}) == 4
    assert tiny(scales=[1, 0.5]).frozen_fingerprint() == fingerprints[1]


def test_concepts_see_the_first_scale(images):
    trunk = create_backbone("efficientnet_lite0", train_stages=0).eval()
    backbone = create_backbone("efficientnet_lite0", scales=[1.0, 0.7]).eval()
    with torch.no_grad():
        expected = trunk.concepts().logits(trunk(images))
        torch.testing.assert_close(backbone.concepts().logits(backbone(images)), expected)
    assert (backbone.mean, backbone.std) == (trunk.mean, trunk.std)
    assert tiny(scales=[1.0, 0.7]).concepts() is None


def test_batch_norms_fold(images):
    backbone = tiny(scales=[1.0, 0.5])
    result = folded(backbone)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in result.modules())
    with torch.no_grad():
        torch.testing.assert_close(result.frozen(images), backbone.frozen(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("engine", ["torch", "onnxruntime", "openvino"])
def test_the_cache_has_both_scales_by_every_engine(monkeypatch, tmp_path, squares_data, engine):
    monkeypatch.setenv("SARB_CACHE", str(tmp_path))
    monkeypatch.setenv("SARB_ENGINE", engine)
    backbone = tiny(scales=[1.0, 0.5])
    dataset = squares_data.train.take(np.arange(5))
    transform = EvalTransform(64)
    stored = cached_features(backbone, dataset, transform, batch_size=3).activations.astype(np.float32)
    record = json.loads(View(dataset, transform).file(backbone).with_suffix(".json").read_text())
    assert record["engine"] == NAMES.get(engine, "PyTorch")
    inputs = torch.from_numpy(np.stack([transform(image) for image, _ in dataset]))
    with torch.no_grad():
        expected = backbone(inputs).numpy()
    assert stored == pytest.approx(expected, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [{"method": "auto"}, {"network": "ssgrl", "method": "sarb", "epochs": 1}],
    ids=["auto", "sarb"],
)
def test_a_model_trains_saves_loads_and_exports(tmp_path, squares_data, options):
    scales = {"scales": [1.0, 0.5]}
    model = sarb.fit(
        squares_data.train.hide(0.5, 0),
        backbone="tiny",
        image_size=64,
        cache=True,
        augment=False,
        backbone_options=scales,
        **options,
    )
    assert model.network.backbone.width == 128
    assert model.config["backbone_options"]["scales"] == scales["scales"]
    loaded = sarb.load_model(model.save(tmp_path / "model"))
    paths = squares_data.test.paths
    expected = sarb.predict(model, paths).logits
    assert np.array_equal(sarb.predict(loaded, paths).logits, expected)
    for name in ("model.onnx", "model.pt2"):
        done = sarb.export(loaded, tmp_path / name, images=paths[:3], progress=False)
        assert max(done.differences.values()) <= 1e-4


def test_the_command_line_takes_scales():
    section, key, value = parse_assignment("backbone.scales=[1.0,0.7]")
    settings = resolve(None, backbone="tiny", **{f"{section}_options": {key: value}})
    assert settings.network_config()["backbone_options"]["scales"] == [1.0, 0.7]
    with pytest.raises(ConfigError, match=r"backbone\.scales"):
        resolve(None, backbone="tiny", backbone_options={"scales": "0.7"})
