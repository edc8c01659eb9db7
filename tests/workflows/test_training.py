"""``sarb train --resume`` on a finished run: nothing changes, least of all its calibration."""

from dataclasses import replace
from pathlib import Path

import pytest

from sarb.errors import SarbError
from sarb.labelling.calibration import Calibration
from sarb.runs.folder import RunFolder
from sarb.runs.lookup import load_calibration
from sarb.workflows.calibration import calibrate_session, undo_calibration
from sarb.workflows.training import job_of, train_session
from tests.faults.small_run import _draw

STEPPED = {
    "given": {"method": "sarb", "backbone": "tiny", "image_size": 32, "epochs": 2},
    "assignments": ["network.dim=8", "network.hidden=4", "method.start=1"],
}
FITTED = {"given": {"backbone": "tiny", "image_size": 32}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos") / "data"
    _draw(folder)
    return folder / "labels.csv"


def train(data, out, options, **more):
    return train_session(
        source=str(data), data_options={"encoding": "binary"}, out=out, valid=0.25, **options, **more
    )


def contents(folder: Path):
    return {
        file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.rglob("*") if file.is_file()
    }


@pytest.mark.parametrize("options", [STEPPED, FITTED], ids=["stepped", "fitted"])
def test_a_finished_run_resumed_changes_nothing(data, tmp_path, capsys, options):
    out = tmp_path / "run"
    _, first = train(data, out, options)
    assert load_calibration(out).kind == "validation"
    calibrate_session(out, folds=2, progress=False)
    assert load_calibration(out).kind == "out-of-fold"
    before = contents(out)
    capsys.readouterr()
    _, again = train(data, out, options, resume=True)
    assert contents(out) == before
    assert "finished and tested already; nothing was changed" in capsys.readouterr().err
    assert again.mAP == pytest.approx(first.mAP)


@pytest.mark.parametrize("options", [STEPPED, FITTED], ids=["stepped", "fitted"])
def test_a_test_that_is_missing_is_made_up_for_and_the_stronger_calibration_stays(data, tmp_path, options):
    out = tmp_path / "run"
    train(data, out, options)
    calibrate_session(out, folds=2, progress=False)
    thresholds = (out / "thresholds.json").read_bytes()
    weights = RunFolder(out).model.checksum()
    (out / "metrics.json").unlink()
    train(data, out, options, resume=True)
    assert (out / "metrics.json").is_file()
    assert (out / "thresholds.json").read_bytes() == thresholds
    assert RunFolder(out).model.checksum() == weights
    undo_calibration(out)
    (out / "metrics.json").unlink()
    train(data, out, options, resume=True)  # without a stronger one, the weaker one is written
    assert load_calibration(out).kind == "validation"


@pytest.mark.parametrize("options", [STEPPED, FITTED], ids=["stepped", "fitted"])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_model_with_a_missing_file_is_damage_not_a_reason_to_train_again(data, tmp_path, options, name):
    out = tmp_path / "run"
    train(data, out, options)
    (out / "model" / name).unlink()
    before = contents(out)
    with pytest.raises(SarbError, match=rf"{name}: is missing"):
        train(data, out, options, resume=True)
    assert contents(out) == before


def test_only_a_weaker_one_of_the_same_weights_is_refused(tmp_path):
    run = RunFolder(tmp_path)
    (tmp_path / "model").mkdir()
    run.model.weights.write_bytes(b"weights")
    plain = replace(Calibration.identity(["a"]), method="platt")
    strong, weak = (replace(plain, kind=kind) for kind in ("out-of-fold", "validation"))
    run.write_calibration(weak)
    assert run.write_calibration(strong).kind == "out-of-fold"
    assert run.write_calibration(weak).kind == "out-of-fold"
    assert Calibration.load(tmp_path / "thresholds.json").kind == "out-of-fold"
    run.model.weights.write_bytes(b"other weights")
    assert run.write_calibration(weak).kind == "validation"
    (tmp_path / "thresholds.json").write_text("{damaged")
    assert run.write_calibration(weak).kind == "validation"
    assert Calibration.load(tmp_path / "thresholds.json").kind == "validation"


def test_names_without_a_concept_are_told_where_others_have_one(monkeypatch):
    from types import SimpleNamespace

    from sarb.settings import resolve
    from sarb.workflows.training import _untied

    def said(names, **options):
        return _untied(
            SimpleNamespace(categories=names), resolve(None, method="auto", method_options=options)
        )

    assert said(["sofa", "Stuhl", "Tasse/Becher"]).startswith("no concept for Stuhl, Tasse/Becher: ")
    assert said(["sofa", "dog"]) == "" and said(["Stuhl", "Tasse/Becher"]) == ""
    assert said(["sofa", "Stuhl"], claims="strict") == ""
    assert said(["sofa", "Stuhl"], ties={"Stuhl": ["barber chair"]}) == ""
    assert "and 2 more" in said(["sofa", *(f"Stuhl{letter}" for letter in "abcdefg")])


def test_on_the_command_line_too_the_image_size_is_that_of_the_backbone(monkeypatch, tmp_path):
    monkeypatch.setattr("sarb.settings._own_size", lambda backbone, options: {"image_size": 96})
    own = tmp_path / "own.toml"
    own.write_text("[train]\nimage_size = 64\n")

    def size(recipe, **options):
        return job_of("demo", recipe, options, {}, 1.0, None, None, None, []).settings.image_size

    assert (size(None), size("small", method="sarb"), size(None, image_size=32), size(str(own))) == (
        96,
        96,
        32,
        64,
    )
