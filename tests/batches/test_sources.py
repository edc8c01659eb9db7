"""Runs that train on cached augmented views: what they say, that they repeat, and what is refused."""

import json

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.sources import use_cache
from sarb.errors import ConfigError
from sarb.methods.partial_bce import PartialBCE
from sarb.networks import create_backbone
from sarb.progress import Progress
from sarb.registry import METHODS
from sarb.settings import Settings


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache for each test."""
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


OPTIONS = {
    "recipe": "small",
    "backbone": "tiny",
    "image_size": 64,
    "batch_size": 8,
    "lr": 2e-3,
    "progress": False,
    "epochs": 3,
    "network_options": {"csrl": "sd", "dim": 16, "hidden": 8},
    "cache_views": 2,
    "method_options": {"start": 1, "refresh": 1},
    "backbone_options": {"train_stages": 1},
}


def fit(data, **more):
    return sarb.fit(data, **{**OPTIONS, **more})


def same(one, other):
    first, second = one.network.state_dict(), other.network.state_dict()
    return all(torch.equal(value, second[key]) for key, value in first.items())


def test_a_run_trains_on_views_and_says_so(squares_data, tmp_path, cache, capsys):
    one = fit(squares_data.train, valid=0.25, out=tmp_path / "run", progress=Progress(verbose=True))
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    size = sum(np.load(file).nbytes for file in cache.glob("*.npy"))
    assert config["cached"] is True and config["cached_views"] == 2 and config["cached_bytes"] == size > 0
    assert sorted(len(np.load(file)) for file in cache.glob("*.npy")) == [27, 27, 36], (
        "no view of a validation image"
    )
    note = "2 cached augmented views per image; the cache takes"
    assert f"training on {note}" in capsys.readouterr().err
    from sarb.report import write_report

    assert note in write_report(tmp_path / "run").read_text(encoding="utf-8")
    assert same(one, fit(squares_data.train, valid=0.25)), "built or found, the same run"
    assert not same(one, fit(squares_data.train, valid=0.25, cache_views=0))


def test_flip_and_augment_do_not_matter_to_views(squares_data):
    runs = [fit(squares_data.train, epochs=2, **more) for more in ({}, {"flip": False}, {"augment": True})]
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])


def test_views_of_every_epoch_are_live_augmentation_in_another_order(squares_data):
    """With one epoch and one view there is no choice: the same images as live, to the rounding of fp16."""
    options = {"epochs": 1, "method": "partial_bce", "method_options": {}}
    cached = fit(squares_data.train, cache_views=1, **options)
    live = fit(squares_data.train, cache_views=0, cache=False, augment=True, **options)
    a, b = (sarb.predict(model, squares_data.test).logits for model in (cached, live))
    plain = sarb.predict(
        fit(squares_data.train, cache_views=0, flip=False, **options), squares_data.test
    ).logits
    assert np.abs(a - b).max() < 0.1 * np.abs(plain - b).max()


def test_a_resumed_run_with_views_equals_an_undisturbed_one(squares_data, tmp_path, monkeypatch):
    whole = fit(squares_data.train, out=tmp_path / "whole")
    from sarb.training.loop import Training

    epoch = Training._epoch
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_epoch", lambda self, number: epoch(self, number) if number < 2 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fit(squares_data.train, out=tmp_path / "run")
    assert same(whole, fit(squares_data.train, out=tmp_path / "run", resume=True))


def test_a_validation_set_of_its_own_keeps_its_plain_view(squares_data, cache):
    fit(squares_data.train, valid=squares_data.test, epochs=1, method="partial_bce", method_options={})
    assert sorted(len(np.load(file)) for file in cache.glob("*.npy")) == [12, 36, 36, 36]


# refusals


class Paired(PartialBCE):
    views = ("train", "plain")


class Pixels(PartialBCE):
    cacheable = False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": False}, ["cache_views=2", "cache=False", "drop one of the two", "augment=True"]),
        (
            {"backbone_options": {"train_stages": 3}},
            ["cache_views=2", "every stage", "train_stages", "augment=True"],
        ),
        ({"method": Paired}, ["cache_views=2", "method 'test'", "needs several views", "Remove it"]),
        ({"method": Pixels}, ["cache_views=2", "method 'test' mixes pixels", "Remove it"]),
        ({"cache_views": -1}, ["cache_views must be at least 0, got -1"]),
        ({"cache_views": 1.5}, ["cache_views must be int, got 1.5"]),
        ({"cache_views": 0, "cache": True, "augment": True}, ["augmentation bypasses it", "cache_views=4"]),
    ],
)
def test_what_cannot_be_cached_is_refused(monkeypatch, squares_data, cache, options, words):
    if "method" in options:
        monkeypatch.setitem(METHODS, "test", f"{__name__}:{options['method'].__name__}")
        options = {"method": "test", "method_options": {}}
    with pytest.raises(ConfigError) as error:
        fit(squares_data.train, **options)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("views", "device", "used"), [(0, "cpu", True), (0, "cuda", False), (2, "cuda", True)]
)
def test_asking_for_views_is_asking_for_the_cache(views, device, used):
    settings = Settings(augment=False, cache_views=views)
    assert (
        use_cache(settings, PartialBCE, torch.device(device), create_backbone("tiny", train_stages=1)) is used
    )
