"""What must hold for every backbone of another package."""

from pathlib import Path

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.features import cached_features
from sarb.errors import ConfigError
from sarb.model import build_network
from sarb.networks.backbones.base import create_backbone
from sarb.networks.backbones.fold import folded


class BackboneContract:
    """Subclass it with a fixture ``backbone``: name, options and an image size, with random weights."""

    @pytest.fixture
    def built(self, backbone):
        name, options, size = backbone
        torch.manual_seed(0)
        return create_backbone(name, None, **options), size

    @pytest.fixture
    def images(self, built):
        return torch.randn(3, 3, built[1], built[1], generator=torch.Generator().manual_seed(1))

    def fit(self, data, backbone, tmp_path, **settings):
        name, options, size = backbone
        given = {
            "network": "pooled",
            "method": "partial_bce",
            "epochs": 1,
            "batch_size": 12,
            "recipe": "small",
        }
        return sarb.fit(
            data.train,
            **{**given, **settings},
            backbone=name,
            backbone_options={"weights": None, **options, **settings.pop("backbone_options", {})},
            image_size=size,
            out=tmp_path / "run",
            progress=False,
        )

    def test_stages_hold_every_parameter_once(self, built):
        body, _ = built
        assert len(body.stage_names) > 2
        staged = [
            part for name in body.stage_names for module in body.stage(name) for part in module.parameters()
        ]
        assert sorted(map(id, staged)) == sorted(map(id, body.parameters()))

    def test_any_cut_gives_the_same_map_of_four_dimensions(self, built, images):
        body, _ = built
        body.eval()
        with torch.no_grad():
            expected = body(images)
            assert expected.shape[:2] == (3, body.width) and expected.isfinite().all()
            for count in range(len(body.stage_names) + 1):
                body.freeze(count)
                frozen = body.frozen(images)
                assert frozen.ndim == 4
                torch.testing.assert_close(body.trained(frozen), expected)

    def test_train_stages_count(self, built):
        body, _ = built
        for count in (0, 1, len(body.stage_names)):
            body.freeze(count)
            learned = [
                any(part.requires_grad for module in body.stage(name) for part in module.parameters())
                for name in body.stage_names
            ]
            assert learned == [False] * (len(learned) - count) + [True] * count
        with pytest.raises(ConfigError, match="train_stages must be between 0 and"):
            body.freeze(len(body.stage_names) + 1)

    def test_batch_of_one_and_folded_batch_norms(self, built, images):
        body, _ = built
        body.eval()
        with torch.no_grad():
            expected = body(images)
            torch.testing.assert_close(body(images[:1]), expected[:1], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(folded(body)(images), expected, atol=1e-3, rtol=1e-3)

    def test_odd_image_sizes_fit_or_are_one_clear_line(self, built):
        body, size = built
        body.eval()
        for other in (size + 1, size + 14, size + 16, size + 32, size + 64):
            try:
                body.check_size(other)
            except ConfigError as error:
                assert f"image_size {other} does not fit" in str(error) and "\n" not in str(error)
                assert other % body.step or body.only_size
                continue
            with torch.no_grad():
                found = body(torch.randn(1, 3, other, other))
            assert found.shape[1] == body.width and min(found.shape[2:]) >= 1

    def test_one_epoch_trains_the_last_stage_and_no_other(self, squares_data, backbone, tmp_path):
        torch.manual_seed(0)
        settings = {"seed": 0, "cache": False, "lr": 1e-2, "lr_scale": {"backbone": 1.0}}
        frozen = {**backbone[1], "train_stages": 0}
        still = self.fit(squares_data, (backbone[0], frozen, backbone[2]), tmp_path / "0", **settings)
        moved = self.fit(
            squares_data,
            (backbone[0], {**frozen, "train_stages": 1}, backbone[2]),
            tmp_path / "1",
            **settings,
        )
        before = still.network.backbone.state_dict()
        after = moved.network.backbone.state_dict()
        changed = {key.split(".")[1] for key, value in after.items() if not torch.equal(value, before[key])}
        assert changed == {moved.network.backbone.stage_names[-1]}

    def test_cached_features_are_the_uncached_ones(self, squares_data, backbone, built):
        body, size = built
        body.freeze(1)
        body.eval()
        transform = sarb.data.images.EvalTransform(size, body.mean, body.std)
        data = squares_data.test
        stored = torch.from_numpy(np.array(cached_features(body, data, transform).activations)).float()
        pictures = np.stack([transform(sarb.data.images.decode(data.root / path)) for path in data.paths])
        with torch.no_grad():
            direct = body.frozen(torch.from_numpy(pictures))
            scale = float(direct.abs().max())
            torch.testing.assert_close(stored / scale, direct / scale, atol=2e-3, rtol=0)
            expected = body(torch.from_numpy(pictures))
            scale = float(expected.abs().max())
            torch.testing.assert_close(body.trained(stored) / scale, expected / scale, atol=2e-2, rtol=0)

    def test_saved_and_loaded_exported_and_explained(self, squares_data, backbone, tmp_path, moved_files):
        model = self.fit(squares_data, backbone, tmp_path, network="ssgrl", method="sarb")
        before = sarb.predict(model, squares_data.test)
        moved_files()  # a model folder stands on its own
        loaded = sarb.load_model(tmp_path / "run")
        np.testing.assert_allclose(sarb.predict(loaded, squares_data.test).logits, before.logits, atol=1e-5)
        assert loaded.transform.config() == model.transform.config()
        maps = sarb.explain(loaded, squares_data.test.root / squares_data.test.paths[0], ["red"])
        assert maps.arrays.ndim == 3 and np.isfinite(maps.arrays).all() and maps.arrays.std() > 0
        sarb.export(loaded, tmp_path / "model.onnx")  # compares with PyTorch and raises if they differ
        from sarb.inference.onnx import OnnxModel

        photos = [Path(squares_data.test.root) / path for path in squares_data.test.paths]
        found = OnnxModel(tmp_path / "model.onnx").predict(photos).logits
        np.testing.assert_allclose(found, before.logits, atol=1e-3)

    def test_the_default_method_uses_it(self, squares_data, backbone, tmp_path):
        model = self.fit(
            squares_data, backbone, tmp_path, network=None, method=None, recipe=None, epochs=None
        )
        assert model.config["network"] == "probe"
        assert np.isfinite(sarb.predict(model, squares_data.test).logits).all()

    def test_weights_and_architecture_decide_the_key_of_the_cache(self, backbone, built):
        body, _ = built
        body.freeze(0)
        name, options, _ = backbone
        torch.manual_seed(0)
        again = create_backbone(name, None, 0, **options)
        assert again.frozen_fingerprint() == body.frozen_fingerprint()
        other = create_backbone(name, None, 0, **{**options, "mean": [1, 2, 3], "std": [4, 5, 6]})
        other.load_state_dict(body.state_dict())
        assert other.frozen_fingerprint() != body.frozen_fingerprint()

    def test_no_image_of_another_size_reaches_it(self, backbone, built):
        name, options, size = backbone
        config = {"network": "pooled", "backbone": name, "backbone_options": options, "image_size": size + 1}
        if built[0].step > 1:
            with pytest.raises(ConfigError, match=f"image_size {size + 1} does not fit"):
                build_network(3, **config, weights=None)
        else:
            network = build_network(3, **config, weights=None).eval()
            assert network(torch.zeros(1, 3, size + 1, size + 1)).shape == (1, 3)

    def test_the_engines_of_the_cache_can_run_it(self, backbone, built, images):
        from sarb.batches.engines import _exported
        from sarb.inference.onnx import _session

        body, size = built
        windows = "swin" in getattr(body, "architecture", {}).get("model_type", "")
        counts = (
            (2,) if windows else (1, 3)
        )  # tracing fixes the batch of its windows, so PyTorch does the work
        body.freeze(0)
        session = _session(_exported(body.eval(), size), 1)
        with torch.no_grad():
            expected = body.frozen(images)
        for count in counts:
            found = session.run(None, {"images": images[:count].numpy()})[0]
            np.testing.assert_allclose(
                found, expected[:count].numpy(), atol=1e-4 * float(expected.abs().max())
            )
