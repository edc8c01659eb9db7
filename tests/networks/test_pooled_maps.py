"""Class maps of the pooled network: BoostLU and the saliency of SR-ST, on the toy cases of the facts sheet."""

import pytest
import torch

from sarb.errors import ConfigError
from sarb.networks import create_backbone
from sarb.networks.pooled import Pooled, pool

CLOSE = 1e-6


def network(**options):
    torch.manual_seed(0)
    return Pooled(create_backbone("tiny"), 3, **options)


def test_boost():
    maps = torch.tensor([2.0, -1, 0, 1]).view(1, 1, 2, 2)
    assert pool(maps).item() == pytest.approx(0.5, abs=CLOSE)
    assert pool(maps, boost=5).item() == pytest.approx(3.5, abs=CLOSE)


def test_peak():
    maps = torch.tensor([2.0, -1, -1, 1]).view(1, 1, 2, 2)
    assert pool(maps).item() == pytest.approx(0.25, abs=CLOSE)
    salient = pool(maps, peak=0.5, cells=2)
    assert salient.item() == pytest.approx(1.0, abs=CLOSE)
    assert salient.sigmoid().item() == pytest.approx(0.7310585786, abs=CLOSE)
    assert pool(maps, peak=0.5, cells=9).item() == pytest.approx(1.5 * 0.25, abs=CLOSE)  # all there are


def test_the_mean_of_the_class_maps_is_the_plain_logit():
    plain = network()
    maps = torch.rand(2, plain.dim, 4, 4)
    assert torch.allclose(plain.class_maps(maps).mean((2, 3)), plain.classify(maps), atol=1e-5)
    almost = network(boost=1.0, peak=1e-12)
    assert torch.allclose(almost.classify(maps), plain.classify(maps), atol=1e-5)


@pytest.mark.parametrize("options", [{"boost": 5.0}, {"peak": 0.5, "cells": 5}])
def test_trains_and_tests_the_same_and_exports(options, tmp_path):
    import numpy as np

    import sarb

    data = sarb.load("demo", train=24, test=8, size=64)
    model = sarb.fit(
        data.train,
        network="pooled",
        method="partial_bce",
        backbone="tiny",
        image_size=64,
        epochs=1,
        network_options=options,
        out=tmp_path / "run",
        progress=False,
    )
    loaded = sarb.load_model(tmp_path / "run")
    assert np.array_equal(sarb.predict(loaded, data.test).logits, sarb.predict(model, data.test).logits)
    done = sarb.export(loaded, tmp_path / "model.onnx", progress=False)
    assert max(done.differences.values()) <= 1e-4


def test_wrong_options():
    with pytest.raises(ConfigError) as caught:
        network(boost=0.0, peak=-1.0, cells=0)
    assert len(caught.value.problems) == 3
