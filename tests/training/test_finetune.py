"""Fine-tuning of the last stage: offered where frozen features are poor, kept if held-out images gain."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch

import sarb
from sarb.auto.judge import Gain
from sarb.auto.ladder import fit_ladder
from sarb.auto.parts import Parts
from sarb.batches.sources import Split
from sarb.data.dataset import Data, Dataset
from sarb.errors import ConfigError
from sarb.inference.onnx import OnnxModel
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import create_backbone
from sarb.progress import Progress, about
from sarb.runs.folder import RunFolder
from sarb.settings import resolve
from sarb.sklearn.estimator import SarbClassifier
from sarb.training import finetune
from sarb.training.finetune import StageTraining, Tuning, is_poor, tuning_settings
from sarb.workflows.calibration import calibrate_session
from sarb.workflows.completion import complete_session
from sarb.workflows.training import train_session
from tests.conftest import COLOURS
from tests.conftest import _draw as draw

TINY = {"backbone": "tiny", "image_size": 64}
#: enough for the last stage of a backbone with random weights
FAST = {**TINY, "epochs": 30, "lr": 0.01, "lr_scale": {"backbone": 1.0}}
TUNE = {"method_options": {"finetune": True}}


@pytest.fixture
def train(squares_data):
    return squares_data.train.hide(0.9, 0)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """150 training images and 50 test images of coloured squares."""
    folder = tmp_path_factory.mktemp("many")
    random = np.random.RandomState(0)
    names = list(COLOURS)
    shown = [sorted({names[each % 5], *random.choice(names, random.randint(0, 3))}) for each in range(200)]
    for number, colours in enumerate(shown):
        draw(colours, random).save(folder / f"{number}.jpg", quality=90)
    values = np.array([[1 if name in colours else -1 for name in names] for colours in shown])
    data = Dataset(LabelMatrix(values, names, [f"{number}.jpg" for number in range(200)]), folder)
    return Data(data.take(np.arange(150)), data.take(np.arange(150, 200)))


@pytest.fixture
def tuning(squares_data):
    torch.manual_seed(0)
    settings = tuning_settings(resolve(None, method="auto", seed=3, **FAST))
    backbone = create_backbone("tiny", train_stages=0)
    return Tuning(squares_data.train, None, backbone, settings, Progress(enabled=False))


@pytest.fixture(scope="module")
def run(squares, tmp_path_factory):
    """A run that keeps the trained stage."""
    folder, _ = train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.9,
        out=tmp_path_factory.mktemp("finetune") / "run",
        assignments=["method.finetune=true", "lr.backbone=1.0"],
        given={key: value for key, value in FAST.items() if key != "lr_scale"},
        quiet=True,
        page=False,
    )
    return folder


def test_poor_is_a_high_loss_with_enough_labels():
    labels = LabelMatrix(np.array([[1, 1], [-1, 1]] * 30), ["a", "b"])
    assert is_poor(0.71, labels) and not is_poor(0.7, labels)
    assert not is_poor(0.99, labels.take(np.arange(20)))


def test_it_is_offered_with_its_time_only_where_features_are_poor(train, capsys, monkeypatch):
    monkeypatch.setattr(finetune, "ENOUGH", 10)
    for poor, said in ((0.3, True), (0.99, False)):
        monkeypatch.setattr(finetune, "POOR", poor)
        sarb.fit(train, **TINY)
        lines = [
            line
            for line in capsys.readouterr().err.splitlines()
            if "method_options={'finetune': True}" in line
        ]
        assert len(lines) == said
        if said:
            assert "frozen features explain little here (loss 0." in lines[0]
            assert "trains the last stage of the backbone too, about " in lines[0]
            assert lines[0].endswith(" on this machine")


def test_nothing_is_timed_if_nothing_is_printed(train, monkeypatch):
    monkeypatch.setattr(finetune, "ENOUGH", 1)
    monkeypatch.setattr(finetune, "POOR", 0.0)
    timed = []
    monkeypatch.setattr(Tuning, "seconds", lambda *_: timed.append(1) or 1.0)
    sarb.fit(train, progress=False, **TINY)
    assert not timed
    sarb.fit(train, progress=True, **TINY)
    assert timed


def test_the_offer_changes_no_number(train, monkeypatch):
    plain = sarb.fit(train, progress=False, **TINY)
    monkeypatch.setattr(finetune, "ENOUGH", 1)
    monkeypatch.setattr(finetune, "POOR", 0.0)
    offered = sarb.fit(train, **TINY).network.state_dict()
    assert all(torch.equal(value, offered[key]) for key, value in plain.network.state_dict().items())


def test_a_time_in_words():
    assert about(42.4) == "about 42 s" and about(840) == "about 14 min"


def test_the_time_grows_with_the_steps(tuning, monkeypatch):
    """With a known time per image and step, the expected time is their sum over all of them."""
    monkeypatch.setattr(StageTraining, "measure", lambda self: (0.5, 2.0))
    tuning = replace(tuning, settings=replace(tuning.settings, epochs=10, min_steps=0, batch_size=12))
    # 36 images once through the frozen stages, 10 epochs of 3 steps with 29 images, and a pass over 36 images
    assert tuning.seconds(np.arange(36)) == pytest.approx(36 * 0.5 + (10 * 3 + 3) * 2)
    for change in ({"augment": True}, {"cache": False}):  # then the frozen stages run in every epoch
        uncached = replace(tuning, settings=replace(tuning.settings, **change))
        assert uncached.seconds(np.arange(36)) == pytest.approx(11 * 36 * 0.5 + (10 * 3 + 3) * 2)


def test_the_measured_steps_are_real_and_leave_the_backbone_alone(tuning):
    before = {key: value.clone() for key, value in tuning.backbone.state_dict().items()}
    assert tuning.seconds(np.arange(36)) > 0
    assert all(torch.equal(before[key], value) for key, value in tuning.backbone.state_dict().items())


def test_a_fifth_is_held_out_beside_the_validation_images(tuning):
    assert len(tuning.split.held) == 7 and len(tuning.split.train) == 29
    both = replace(tuning, valid=0.25).split
    assert set(Split.of(tuning.whole, 0.25, 3).held) < set(both.held)
    assert len(both.held) == 9 + 5  # a fifth of the 27 that are left


def test_settings_are_those_of_the_run_with_enough_steps():
    usual = tuning_settings(resolve(None, method="auto"))
    assert (usual.method, usual.network, usual.epochs, usual.min_steps) == ("partial_bce", "pooled", 10, 720)
    assert usual.lr == 1e-3 and usual.lr_scale["backbone"] == 0.01 and not usual.method_options
    assert usual.backbone_options["train_stages"] == 1
    given = tuning_settings(
        resolve(
            None,
            method="auto",
            epochs=2,
            lr=0.1,
            patience=3,
            batch_size=8,
            lr_scale={"backbone": 0.5},
            backbone_options={"train_stages": 2},
        )
    )
    assert (given.epochs, given.min_steps, given.lr, given.batch_size) == (2, 0, 0.1, 8)
    assert given.patience is None and given.lr_scale["backbone"] == 0.5
    assert given.backbone_options["train_stages"] == 2


def test_only_the_last_stage_learns_and_only_from_the_others(tuning, monkeypatch):
    seen = []
    step = StageTraining._step

    def watched(self, parts, *rest):
        for batch in parts:
            seen.extend(self.split.rows[batch.index.numpy()])
        return step(self, parts, *rest)

    monkeypatch.setattr(StageTraining, "_step", watched)
    trained = replace(tuning, settings=replace(tuning.settings, epochs=2)).train().state_dict()
    changed = {
        key.split(".")[0]
        for key, value in tuning.backbone.state_dict().items()
        if not torch.equal(value, trained[key])
    }
    assert changed == {"stage3"}
    assert set(seen) == set(tuning.split.rows) and not set(seen) & set(tuning.split.held)


def test_a_ladder_is_judged_by_some_images_only():
    """Features that give away the labels of the other images do not choose anything."""
    random = np.random.RandomState(0)
    labels = LabelMatrix(random.choice([-1, 1], (100, 2)), ["a", "b"])
    features = random.standard_normal((100, 8))
    judged = np.arange(100) < 40
    features[~judged, :2] = labels.values[~judged]
    assert fit_ladder(features, labels, claims="strict").rungs[0].loss < 0.8
    assert fit_ladder(features, labels, claims="strict", judged=judged).rungs[0].loss > 0.9
    parts = Parts.of(labels, 5).only(judged)
    assert parts.known[judged].all() and not parts.known[~judged].any()


def test_it_is_kept_where_it_gains(many, capsys):
    frozen = sarb.fit(many.train, progress=False, **FAST)
    tuned = sarb.fit(many.train, **FAST, **TUNE)
    said = capsys.readouterr().err
    assert "training the last stage of the backbone on 120 images, judged on 30 others" in said
    assert "names and concepts are not used with it; about " in said
    assert "only the 30 held-out images have out-of-fold scores" in said and "--finetune" not in said
    assert sarb.evaluate(tuned, many.test).mAP > sarb.evaluate(frozen, many.test).mAP + 5
    assert tuned.config["backbone_options"]["train_stages"] == 0


def test_it_is_left_out_where_it_does_not_gain(train, tmp_path, monkeypatch):
    monkeypatch.setattr(finetune.Judge, "gain", lambda *_: Gain(-0.1, -0.2, 0.0))
    frozen = sarb.fit(train, progress=False, **FAST).network.state_dict()
    tuned = sarb.fit(train, progress=False, out=tmp_path / "run", **FAST, **TUNE).network.state_dict()
    assert frozen.keys() == tuned.keys()
    assert all(torch.equal(frozen[key], value) for key, value in tuned.items())
    run = RunFolder(tmp_path / "run")
    row = run.log_rows()[-2]
    assert (row["rung"], row["kept"], row["mean_ap"], row["gain"]) == ("finetune", "False", "nan", "-0.1")
    assert len(run.out_of_fold) == len(train)


@pytest.mark.parametrize("options", [{"valid": 0.2}, {"cache": False}], ids=["valid", "files"])
def test_with_validation_images_or_without_the_cache(options, many, tmp_path):
    train = many.train.hide(0.6, 0)
    sarb.fit(train, progress=False, out=tmp_path / "run", **FAST, **TUNE, **options)
    run = RunFolder(tmp_path / "run")
    assert run.log_rows()[-2]["rung"] == "finetune" and run.log_rows()[-2]["kept"] == "True"
    assert len(run.out_of_fold) == (24 if "valid" in options else 30)
    assert set(run.out_of_fold.paths) < set(run.train.paths)


def test_a_backbone_that_cannot_train_a_stage(train, capsys, monkeypatch):
    """It is not offered, and asking for it is an error before anything is computed."""
    monkeypatch.setattr(finetune, "ENOUGH", 1)
    monkeypatch.setattr(finetune, "POOR", 0.0)
    scales = {"backbone_options": {"scales": [1.0, 0.5]}}
    sarb.fit(train, **TINY, **scales)
    assert "--finetune" not in capsys.readouterr().err
    for options in (scales, {"backbone_options": {"train_stages": 9}}):
        with pytest.raises(ConfigError, match="train_stages"):
            sarb.fit(train, **TINY, **options, **TUNE)


def test_too_few_labels_to_judge(squares_data, capsys):
    sarb.fit(squares_data.train.take(np.array([0, 1])), **FAST, **TUNE)
    assert "finetune: not tried" in capsys.readouterr().err


def test_same_seed_same_model(train):
    one = sarb.fit(train, progress=False, **FAST, **TUNE).network.state_dict()
    two = sarb.fit(train, progress=False, **FAST, **TUNE).network.state_dict()
    assert all(torch.equal(value, two[key]) for key, value in one.items())


def test_the_run_has_a_row_and_honest_scores(run, squares_data):
    folder = RunFolder(run)
    baseline, row, final = (folder.log_rows()[each] for each in (1, -2, -1))
    assert baseline["rung"] == "ten lines" and final["rung"] == "final"
    assert final["loss"] == row["loss"] and final["mean_ap"] == row["mean_ap"]  # on the same images
    assert row["rung"] == "finetune" and row["kept"] == "True" and row["weight"] == "1.0"
    assert float(row["low"]) <= float(row["gain"]) <= float(row["high"]) and float(row["seconds"]) > 0
    assert not {"names", "bayes"} & {row["rung"] for row in folder.log_rows()}
    held = Split.of(squares_data.train, 0.2, 0).held
    assert list(folder.out_of_fold.paths) == [squares_data.train.labels.paths[each] for each in held]
    assert len(folder.train) == 36


def test_calibrate_and_complete_work_with_scores_of_the_held_out_images(run, tmp_path, capsys):
    calibration = calibrate_session(run, progress=False)
    assert "7 held-out images" in calibration.source
    assert sarb.load_model(run).calibration().fitted
    assert len(RunFolder(run).out_of_fold) == 7
    filled = complete_session(run, tmp_path / "filled.csv", split="train", progress=False)
    assert "only 7 of 36 training images have out-of-fold scores" in capsys.readouterr().err
    assert (filled.labels.values != 0).all()
    with (tmp_path / "conflicts.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) is not None


def test_save_load_predict_and_export_agree(run, train, squares_data, tmp_path):
    options = {**FAST, "lr_scale": {"backbone": 1.0}}
    model = sarb.fit(train, progress=False, **options, **TUNE)
    images = [str(path) for path in squares_data.test.paths]
    scores = sarb.predict(model, images)
    assert sarb.predict(sarb.load_model(run), images) == scores
    sarb.export(model, tmp_path / "model.onnx", progress=False)
    np.testing.assert_allclose(
        OnnxModel(tmp_path / "model.onnx").predict(images).logits, scores.logits, atol=1e-3
    )


def test_a_finished_run_is_resumed_without_training(run, squares, monkeypatch):
    monkeypatch.setattr(Tuning, "train", lambda *_: pytest.fail("trained"))
    data = sarb.load(squares / "labels.csv", encoding="binary")
    train_again = data.hide(0.9, 0).train
    model = sarb.fit(
        train_again,
        out=run,
        resume=True,
        progress=False,
        record=RunFolder(run).data_record,
        **FAST,
        **TUNE,
    )
    assert model.config["network"] == "probe"


def test_the_estimator_takes_the_option(squares_data):
    options = {key: value for key, value in FAST.items() if key != "lr_scale"}
    paths = np.array(squares_data.train.paths, dtype=str)
    labels = squares_data.train.labels.values
    scale = {"lr_scale": FAST["lr_scale"]}
    fitted = [
        SarbClassifier(
            method_options={"finetune": each}, options=scale, encoding="signed", random_state=0, **options
        ).fit(paths, labels)
        for each in (False, True)
    ]
    frozen, tuned = (each.model_.network.backbone.state_dict() for each in fitted)
    assert not all(torch.equal(value, tuned[key]) for key, value in frozen.items())
