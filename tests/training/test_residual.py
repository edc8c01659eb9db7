"""The residual rung: a semantic network on top of the ladder, kept only if held-out entries gain."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sarb
from sarb.auto.judge import Gain
from sarb.auto.parts import Parts
from sarb.inference.onnx import OnnxModel
from sarb.methods.auto import Auto
from sarb.networks.backbones.base import create_backbone
from sarb.networks.probe import Probe
from sarb.progress import Progress
from sarb.settings import resolve
from sarb.training import residual
from sarb.training.residual import Task, fit_residual, residual_settings

TINY = {"backbone": "tiny", "image_size": 64}


@pytest.fixture
def task(squares_data):
    """The coloured squares, and a ladder that knows nothing but the rates."""
    train = squares_data.train.hide(0.8, 0)
    settings = residual_settings(resolve(None, method="auto", epochs=40, lr=0.01, **TINY), "partial_bce")
    rows = np.arange(len(train))
    scores = np.full(train.labels.shape, -0.5)
    parts = Parts.of(train.labels, 3, 0)
    torch.manual_seed(0)
    backbone = create_backbone("tiny", train_stages=0)
    return Task(
        train,
        None,
        rows,
        train.labels,
        scores,
        lambda labels: scores,
        parts,
        backbone,
        settings,
        Progress(enabled=False),
    )


def test_it_takes_epochs_and_rates_of_the_run_but_not_its_method(task):
    assert task.settings.epochs == 40
    assert (task.settings.method, task.settings.network) == ("partial_bce", "ssgrl")
    assert "claims" not in task.settings.method_options


def test_it_is_kept_where_the_ladder_knows_nothing(task):
    rung, found, after = fit_residual(task)
    assert rung.kept and found is not None and 0 < found.weight <= 1
    assert rung.name == "residual partial_bce" and rung.gain > 0
    assert not np.array_equal(after, task.scores)


def test_it_is_left_out_where_the_ladder_knows_everything(task):
    sure = np.where(task.labels.values > 0, 6.0, -6.0)
    rung, found, after = fit_residual(replace(task, scores=sure, refit=lambda labels: sure))
    assert not rung.kept and found is None and rung.weight == 0 and rung.gain == 0
    np.testing.assert_array_equal(after, sure)


def test_the_first_process_decides_for_all(task, monkeypatch):
    """Rounding may differ between devices: a process that goes on alone would wait for the others."""
    task = replace(task, settings=replace(task.settings, epochs=2))
    monkeypatch.setattr(residual, "objects_of_all", lambda own: [np.zeros_like(own), own])
    rung, found, _ = fit_residual(task)
    assert not rung.kept and found is None and rung.weight == 0


def test_patience_stops_the_first_network_and_sets_the_epochs_of_the_others(task, monkeypatch):
    settings = replace(task.settings, epochs=60, lr=0.3, patience=1, schedule="constant")
    epochs = []
    train = Task.train

    def watched(self, mask, scores):
        trained = train(self, mask, scores)
        epochs.append((self.settings.epochs, self.settings.patience, trained.epochs))
        return trained

    monkeypatch.setattr(Task, "train", watched)
    monkeypatch.setattr(residual, "_weights", lambda judge, before, scores: np.full(4, 0.5))
    fit_residual(replace(task, settings=settings))
    assert epochs[0][:2] == (60, 1) and epochs[0][2] < 60
    assert all(each == (epochs[0][2], None, epochs[0][2]) for each in epochs[1:])


def test_a_held_out_entry_never_reaches_the_network_that_judges_it(task, monkeypatch):
    """Neither by its label nor through the logits of a ladder that has seen it."""
    seen = []
    fitted = []
    train = Task.train

    def watched(self, mask, scores):
        seen.append(mask)
        return train(self, mask, scores)

    def refit(labels):
        fitted.append(labels.values != 0)
        return task.scores

    monkeypatch.setattr(Task, "train", watched)
    fit_residual(replace(task, refit=refit))
    for number, (mask, ladder) in enumerate(zip(seen[:3], fitted, strict=True)):
        assert not mask[task.parts.numbers == number].any()
        assert not ladder[task.parts.numbers == number].any()
    assert all((mask <= task.parts.known).all() for mask in seen)


def test_a_model_with_a_residual_is_saved_loaded_and_exported(squares_data, tmp_path, monkeypatch):
    train = squares_data.train.hide(0.8, 0)
    monkeypatch.setattr(residual, "_weights", lambda judge, before, scores: np.full(6, 0.5))
    monkeypatch.setattr("sarb.auto.judge.Judge.gain", lambda *_: Gain(1.0, 0.5, 1.5))
    options = {"residual": "partial_bce"}
    model = sarb.fit(train, method="auto", method_options=options, epochs=2, progress=False, **TINY)
    assert model.config["network_options"]["residual"] == "ssgrl"
    assert model.network.residual_weight == 0.5
    model.save(tmp_path / "model")
    images = list(squares_data.test.paths)
    expected = sarb.predict(model, images).logits
    again = sarb.load_model(tmp_path / "model")
    np.testing.assert_array_equal(sarb.predict(again, images).logits, expected)
    sarb.export(model, tmp_path / "model.onnx")
    np.testing.assert_allclose(OnnxModel(tmp_path / "model.onnx").predict(images).logits, expected, atol=1e-3)
    without = model.network.residual_weight.clone()
    with torch.no_grad():
        model.network.residual_weight.zero_()
    assert not np.allclose(sarb.predict(model, images).logits, expected) and without == 0.5


def test_it_is_off_unless_a_method_is_named():
    method = Auto(Probe(create_backbone("tiny", None), 2))
    assert method.residual == "none"
    assert Auto(Probe(create_backbone("tiny", None), 2), residual=None).residual == "none"
