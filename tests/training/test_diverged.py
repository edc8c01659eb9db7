"""Numbers that are not finite stop a training, are named, and are never written."""

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.loader import Batch, CachedMaps
from sarb.errors import SarbError
from sarb.methods.curriculum import Curriculum
from sarb.model import build_network
from sarb.training.diverged import check_gradients, check_loss, check_state, weights_of

NAN = torch.tensor(float("nan"))


@pytest.fixture
def method():
    torch.manual_seed(0)
    return Curriculum(build_network(2, network="pooled", backbone="tiny", weights=None), strategy="ensemble")


def batch_of(images, frozen=False):
    return Batch(
        images, torch.zeros(len(images), 2, dtype=torch.int8), torch.arange(len(images)), frozen=frozen
    )


def refuse(loss, terms, batch, method):
    with pytest.raises(SarbError) as error:
        check_loss(loss, terms, batch, method, ["a.jpg", "b.jpg"], "epoch 1, step 2")
    return str(error.value)


def test_a_finite_loss_passes(method):
    check_loss(torch.ones(()), {}, batch_of(torch.ones(2, 1)), method, [], "")


def test_terms_images_and_weights_are_named(method):
    images = torch.ones(2, 3, 4, 4)
    said = refuse(NAN, {"cls": torch.ones(()), "cst": NAN}, batch_of(images), method)
    assert said.startswith("the loss is not finite at epoch 1, step 2: cst is nan; try a smaller lr")
    images[1, 0, 0, 0] = torch.inf
    assert "pixels of 1 images are not finite: b.jpg" in refuse(NAN, {}, batch_of(images), method)
    assert "cached features of 1 images" in refuse(NAN, {}, batch_of(images, frozen=True), method)
    next(iter(method.network.parameters())).data[0] = torch.nan
    said = refuse(NAN, {"cls": NAN}, batch_of(torch.ones(2, 1)), method)
    assert "because weights are not finite: network.backbone." in said


def test_a_gradient_is_named(method):
    name, weight = next(iter(method.named_parameters()))
    weight.grad = torch.ones_like(weight)
    check_gradients(method, "here")
    weight.grad[0] = torch.nan
    with pytest.raises(SarbError, match=rf"the gradient is not finite at here: {name}; try"):
        check_gradients(method, "here")


def test_nan_may_mean_not_yet_in_a_buffer_that_says_so(method):
    method.prepare(sarb.LabelMatrix(np.ones((3, 2), np.int8), ["a", "b"]))
    assert method.agreed.isnan().all() and "agreed" not in weights_of(method)
    optimizer = torch.optim.Adam(method.parameters())
    check_state(method, optimizer, "epoch 0, step 0")
    method.positive_weight[0] = torch.nan
    with pytest.raises(SarbError, match=r"epoch 0, step 0: positive_weight hold values that are not finite"):
        check_state(method, optimizer, "epoch 0, step 0")


def test_a_model_that_is_not_finite_is_not_saved(method, tmp_path):
    model = sarb.Model(
        method.network, ["a", "b"], {"network": "pooled", "backbone": "tiny", "image_size": 64}
    )
    next(iter(model.network.parameters())).data.fill_(torch.nan)
    with pytest.raises(SarbError, match=r"not finite .* so nothing was written"):
        model.save(tmp_path / "model")
    assert not any(tmp_path.iterdir())


def test_auto_names_the_image_whose_features_are_not_finite(squares_data, tmp_path, monkeypatch):
    real = CachedMaps.__getitem__

    def poisoned(self, keys):
        batch = real(self, keys)
        batch.images[batch.index == 3] = torch.nan
        return batch

    monkeypatch.setattr(CachedMaps, "__getitem__", poisoned)
    name = squares_data.train.labels.paths[3]
    with pytest.raises(SarbError, match=f"features of 1 images are not finite: {name}"):
        sarb.fit(squares_data.train, backbone="tiny", image_size=64, progress=False, out=tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()
