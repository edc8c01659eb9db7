"""Whose calibration applies: the same answer from every command, for every kind of folder."""

import json
import shutil

import numpy as np
import pytest

import sarb
from sarb.inference.onnx import OnnxModel
from sarb.model import Model
from sarb.runs.folder import CONFIG, MANIFEST, THRESHOLDS, ModelFolder, RunFolder
from sarb.workflows.calibration import same_training
from sarb.workflows.training import train_session
from tests.documentation.tools import run as command

GIVEN = {
    "backbone": "tiny",
    "image_size": 64,
    "epochs": 2,
    "batch_size": 8,
    "network": "pooled",
    "method": "partial_bce",
}


@pytest.fixture(scope="module")
def run(squares, tmp_path_factory):
    """A run that was calibrated on its validation images and whose best epoch was not the last."""
    folder, _ = train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.8,
        valid=0.4,
        out=tmp_path_factory.mktemp("runs") / "squares",
        given=GIVEN,
        quiet=True,
        page=False,
    )
    best = sarb.load_model(folder)
    with np.errstate(all="ignore"):
        for parameter in best.network.parameters():
            parameter.data.mul_(0.5)
    best.save(folder / "best")
    return folder


@pytest.fixture
def folders(run, tmp_path, monkeypatch):
    """Name -> a folder or hub id as a user would write it."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    copied = tmp_path / "copied"
    shutil.copytree(run / "model", copied)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(copied))
    monkeypatch.chdir(tmp_path)
    return {
        "run": run,
        "model": run / "model",
        "copied": copied,
        "hub": "somebody/squares",
        "best": run / "best",
    }


def verbs(name, data, out):
    photo = str(data.test.paths[0])
    source = ["--data", str(data.test.root / "labels.csv"), "-o", "encoding=binary"]
    return {
        "predict": ["predict", name, photo, "--json"],
        "evaluate": ["evaluate", name, *source],
        "complete": ["complete", name, *source, "--out", str(out / "filled.csv")],
        "suggest": ["suggest", name, *source, "--budget", "3", "--out", str(out / "ask.csv")],
        "explain": ["explain", name, photo, "--json"],
        "export": ["export", name, str(out / "model.onnx")],
    }


@pytest.mark.parametrize("kind", ["run", "model", "copied", "hub", "best"])
def test_every_command_finds_the_same_calibration(kind, folders, squares, tmp_path, monkeypatch, capsys):
    from sarb.serve.recogniser import Recogniser

    found = []
    look_up = Model.calibration
    monkeypatch.setattr(Model, "calibration", lambda model: found.append(look_up(model)) or found[-1])
    name = str(folders[kind])
    expected = sarb.load_calibration(folders["run"])
    data = sarb.load(squares / "labels.csv", encoding="binary")
    for verb, words in verbs(name, data, tmp_path).items():
        found.clear()
        assert command(["sarb", *words], monkeypatch) == 0, capsys.readouterr().err
        assert len(found) == 1, verb
        for calibration in found:
            assert calibration.fitted is (kind != "best"), verb
            assert not calibration.fitted or calibration.to_dict() == expected.to_dict(), verb
    served = Recogniser(sarb.load_model(name)).calibration
    exported = OnnxModel(tmp_path / "model.onnx").calibration
    public = sarb.load_calibration(name)
    if kind == "best":
        assert not served.fitted and not exported.fitted and public is None
    else:
        assert served.to_dict() == exported.to_dict() == public.to_dict() == expected.to_dict()


def test_a_calibration_names_the_weights_it_was_fitted_to(run):
    stored = json.loads((run / THRESHOLDS).read_text())
    assert stored["weights"] == ModelFolder(run / "model").checksum()
    assert (run / "model" / THRESHOLDS).read_bytes() == (run / THRESHOLDS).read_bytes()


def test_the_best_epoch_may_have_its_own(run, tmp_path):
    copied = RunFolder(shutil.copytree(run, tmp_path / "run"))
    own = copied.best.write_calibration(sarb.load_calibration(run))
    assert own.weights == copied.best.checksum() != copied.model.checksum()
    assert sarb.load_model(copied.best.path).calibration().weights == own.weights
    assert sarb.load_model(copied.path).calibration().weights == copied.model.checksum()


def test_other_weights_get_a_warning_and_no_calibration(run, tmp_path):
    copied = RunFolder(shutil.copytree(run, tmp_path / "run"))
    shutil.copy(copied.best.weights, copied.model.weights)
    shutil.copy(copied.best.path / MANIFEST, copied.model.path / MANIFEST)
    with pytest.warns(UserWarning, match="fitted to other weights"):
        assert not sarb.load_model(copied.path).calibration().fitted


def test_a_file_from_before_checksums_belongs_to_the_last_model(run, tmp_path):
    copied = RunFolder(shutil.copytree(run, tmp_path / "run"))
    content = json.loads((copied.path / THRESHOLDS).read_text())
    del content["weights"]
    (copied.path / THRESHOLDS).write_text(json.dumps(content))
    copied.model.thresholds.unlink()
    for manifest in copied.path.rglob(MANIFEST):  # which are younger
        manifest.unlink()
    assert sarb.load_model(copied.path).calibration().fitted
    assert sarb.load_model(copied.model.path).calibration().fitted
    assert not sarb.load_model(copied.best.path).calibration().fitted


def test_saving_changed_weights_leaves_the_calibration_behind(run, tmp_path):
    model = sarb.load_model(run)
    assert sarb.load_calibration(model.save_pretrained(tmp_path / "same")) is not None
    model = sarb.load_model(run)
    next(model.network.parameters()).data.add_(1)
    with pytest.warns(UserWarning, match="weights have changed"):
        model.save_pretrained(tmp_path / "other")
    assert sarb.load_calibration(tmp_path / "other") is None


def test_a_part_trains_as_long_as_the_run(tmp_path):
    # 48 images in steps of 64: 5 epochs have grown to their most, 100, and must not grow again
    settings = {"epochs": 100, "min_steps": 360, "patience": 3}
    (tmp_path / CONFIG).write_text(json.dumps({"settings": settings, "cached": True}))
    again = same_training(RunFolder(tmp_path))
    assert (again.epochs, again.min_steps, again.patience, again.cache) == (100, 0, None, True)


def test_a_calibration_can_be_undone(run, tmp_path, monkeypatch, capsys):
    copy = shutil.copytree(run, tmp_path / "copy")
    assert sarb.load_calibration(copy) is not None and "calibrated" in RunFolder(copy).metrics
    assert command(["sarb", "calibrate", str(copy), "--undo"], monkeypatch) == 0
    assert sarb.load_calibration(copy) is None and "calibrated" not in RunFolder(copy).metrics
    assert command(["sarb", "calibrate", str(copy), "--undo"], monkeypatch) == 2
    assert "is not calibrated, so there is nothing to undo" in capsys.readouterr().err
    assert command(["sarb", "calibrate", str(tmp_path / "none"), "--undo"], monkeypatch) == 2
