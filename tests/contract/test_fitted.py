"""The contract of a method that is fitted, not stepped: auto on the probe."""

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sarb
from sarb.data.dataset import Data, Dataset
from sarb.errors import ConfigError, SarbError
from sarb.inference.onnx import OnnxModel
from sarb.runs.folder import RunFolder
from sarb.training.fitted import Fitting
from sarb.workflows.calibration import calibrate_session
from sarb.workflows.training import train_session
from tests import two_processes
from tests.waiting import PATIENCE

OPTIONS: dict[str, Any] = {
    "network": "probe",
    "method": "auto",
    "backbone": "tiny",
    "image_size": 64,
    "progress": False,
}


def fit(train: Dataset, **options: Any) -> sarb.Model:
    return sarb.fit(train, **{**OPTIONS, **options})


def same(one: sarb.Model, other: sarb.Model) -> bool:
    mine = one.network.state_dict()
    theirs = other.network.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)


def relabelled(dataset: Dataset, values: Any) -> Dataset:
    from dataclasses import replace

    return replace(dataset, labels=sarb.LabelMatrix(values, dataset.categories, dataset.labels.paths))


def test_either_name_is_enough(squares_data: Data) -> None:
    train = squares_data.train.hide(0.5, 0)
    shared = {key: value for key, value in OPTIONS.items() if key not in ("network", "method")}
    by_network = sarb.fit(train, network="probe", **shared)
    by_method = sarb.fit(train, method="auto", **shared)
    assert same(by_network, by_method) and by_network.config["network"] == "probe"


def test_same_seed_same_model_from_cache_or_files(squares_data: Data) -> None:
    train = squares_data.train.hide(0.5, 0)
    one = fit(train, seed=3)
    assert same(one, fit(train, seed=3))
    files = fit(train, seed=3, cache=False)
    images = list(squares_data.test.paths)
    difference = sarb.predict(one, images).logits - sarb.predict(files, images).logits
    assert np.abs(difference).max() < 0.2  # the cache keeps fp16


def test_unknown_entries_give_nothing(squares_data: Data) -> None:
    """A label that is hidden may be anything."""
    train = squares_data.train.hide(0.4, 1)
    inverted = relabelled(squares_data.train, -squares_data.train.labels.values).hide(0.4, 1)
    mixed = np.where(train.labels.known, train.labels.values, 0)
    assert same(fit(train), fit(relabelled(train, mixed)))
    assert not same(fit(train), fit(inverted))


def test_save_load_predict_and_export_agree(squares_data: Data, tmp_path: Path) -> None:
    model = fit(squares_data.train.hide(0.5, 0), out=tmp_path / "run")
    images = [str(path) for path in squares_data.test.paths]
    scores = sarb.predict(model, images)
    assert sarb.predict(sarb.load_model(tmp_path / "run"), images) == scores
    sarb.export(model, tmp_path / "model.onnx", progress=False)
    exported = OnnxModel(tmp_path / "model.onnx").predict(images)
    np.testing.assert_allclose(exported.logits, scores.logits, atol=1e-4)
    explained = sarb.explain(model, images[0], ["red"])
    assert explained.arrays.shape[0] == 1 and np.isfinite(explained.arrays).all()


def test_it_learns(squares_data: Data) -> None:
    assert sarb.evaluate(fit(squares_data.train), squares_data.test).mAP > 60


def test_a_finished_run_is_not_fitted_again(squares_data: Data, tmp_path: Path) -> None:
    train = squares_data.train.hide(0.5, 0)
    first = fit(train, out=tmp_path)
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(SarbError, match="holds a run already"):
        fit(train, out=tmp_path)
    assert same(first, fit(train, out=tmp_path, resume=True))
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(SarbError, match="cannot resume, the settings differ"):
        fit(train, out=tmp_path, resume=True, method_options={"claims": "strict"})


def test_a_row_per_rung_and_no_training_for_calibration(
    squares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {key: value for key, value in OPTIONS.items() if key != "progress"}
    folder, report = train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.6,
        out=tmp_path / "run",
        given=given,
        quiet=True,
    )
    run = RunFolder(folder)
    rungs = {row["rung"]: row for row in run.log_rows()}
    assert list(rungs)[:3] == ["features", "ten lines", "probe"] and list(rungs)[-1] == "final"
    assert {"student", "neighbours"} <= set(rungs)
    assert [rungs[name]["kept"] for name in ("ten lines", "probe", "final")] == ["False", "True", "True"]
    assert float(rungs["final"]["mean_ap_low"]) < float(rungs["final"]["mean_ap"])
    assert run.out_of_fold is not None and len(run.out_of_fold) == len(run.train)
    page = run.report_page.read_text(encoding="utf-8")
    assert "<td>ten lines</td><td>baseline</td>" in page and run.plot("ladder").exists()
    monkeypatch.setattr("sarb.workflows.calibration.out_of_fold", lambda *_, **__: pytest.fail("trained"))
    calibrate_session(folder, progress=False)
    assert sarb.load_model(folder).calibration().fitted
    assert report.mAP > 30


@pytest.mark.parametrize("claims", ["strict", "no-names", "names"])
def test_poor_data(squares_data: Data, claims: str) -> None:
    """A category without a known positive, one category, two images: no error, no nan."""
    options = {"method_options": {"claims": claims}}
    values = squares_data.train.labels.values.copy()
    values[:, 0] = np.minimum(values[:, 0], 0)
    values[:, 1] = 0
    two = squares_data.train.take(np.array([0, 1]))
    single = Dataset(
        sarb.LabelMatrix(squares_data.train.labels.values[:, :1], ["red"], squares_data.train.labels.paths),
        squares_data.train.root,
    )
    for train in (relabelled(squares_data.train, values), two, single):
        scores = sarb.predict(fit(train, **options), list(squares_data.test.paths))
        assert np.isfinite(scores.logits).all()


def test_init_takes_over_the_backbone(
    squares_data: Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = squares_data.train.hide(0.5, 0)
    trained = sarb.fit(
        train,
        **{**OPTIONS, "method": "partial_bce", "network": "pooled", "epochs": 1, "lr": 0.1},
        backbone_options={"train_stages": 1},
        seed=7,
        out=tmp_path / "trained",
    )
    model = fit(train, init=tmp_path / "trained", progress=True)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("started from")]
    assert said == [
        "started from Model(pooled on tiny, 5 categories, 64 px): its backbone, "
        f"{len(trained.network.backbone.state_dict())} tensors; everything else is fitted"
    ]
    taken = model.network.backbone.state_dict()
    assert all(torch.equal(taken[key], value) for key, value in trained.network.backbone.state_dict().items())
    assert same(model, fit(train, init=trained)) and not same(model, fit(train))
    with pytest.raises(ConfigError, match=r"has another backbone than .* add backbone='tiny'"):
        fit(train, init=trained, backbone="efficientnet_lite0")
    with pytest.raises(SarbError, match="no such run or model folder"):
        fit(train, init="runs/x")


@pytest.mark.parametrize("trained", [False, True])
def test_a_backbone_with_other_weights_has_no_concepts(
    trained: bool, squares_data: Data, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"backbone": "efficientnet_lite0", "image_size": 32}
    train = squares_data.train.hide(0.5, 0)
    other = fit(train, **options, method_options={"claims": "strict"})
    if trained:
        with torch.no_grad():
            next(other.network.backbone.parameters()).mul_(1.01)
    fit(train, **options, init=other, out=tmp_path / "run", progress=True)
    assert ("no rungs names and bayes" in capsys.readouterr().err) is trained
    rungs = {row["rung"] for row in RunFolder(tmp_path / "run").log_rows()}
    assert ("bayes" in rungs) is not trained and "probe" in rungs


def test_what_does_not_apply_is_said(squares_data: Data) -> None:
    with pytest.raises(ConfigError, match="folds must be at least 2"):
        fit(squares_data.train, method_options={"folds": 1})
    with pytest.raises(ConfigError, match="claims"):
        fit(squares_data.train, method_options={"claims": "nmaes"})


@pytest.mark.slow
def test_of_two_processes_one_writes(squares: Path, tmp_path: Path) -> None:
    words = [*two_processes.SARB, "train"]
    words += ["--data", str(squares / "labels.csv"), "-o", "encoding=binary", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SARB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [*words, "--backbone", "tiny", "--image-size", "64", "--known", "0.5"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report:") == 1 and (tmp_path / "run" / "report.html").is_file()


def test_the_rungs_can_be_tracked(squares_data: Data, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra [track]")
    fit(squares_data.train.hide(0.5, 0), out=tmp_path / "run", track="tensorboard")
    assert list((tmp_path / "run").rglob("events.out.tfevents.*"))


def test_options_of_stepwise_training_are_said_to_be_unused(
    squares_data: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(
        squares_data.train,
        progress=True,
        network_options={"width": 8},
        backbone_options={"train_stages": 1},
        method_options={"claims": "strict", "ties": {"red": []}},
        lr_scale={"sam": 1.0, "graph": 0.1},  # the second is the recipe's own
        words="words.txt",
        epochs=3,
        augment=True,
        image_size=48,  # used
    )
    said = capsys.readouterr().err.splitlines()
    ignored = "network.width, backbone.train_stages, lr.sam, words, method.ties (needs claims=names)"
    assert f"not used by method auto: {ignored}" in said
    assert "not used without the residual: epochs, augment" in said


def test_nothing_is_said_to_be_unused_by_default(
    squares_data: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(squares_data.train, progress=True, seed=1)
    assert "not used" not in capsys.readouterr().err


def test_wrong_ties_are_found_before_features_are_computed(
    squares_data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fitting, "pool", lambda *_: pytest.fail("computed features"))
    wrong = {"rad": [], "red": ["terier"]}
    with pytest.raises(ConfigError, match=r"(?s)Did you mean 'red'\?.*Did you mean 'terrier'\?"):
        fit(squares_data.train, method_options={"ties": wrong})


def test_the_ladder_is_printed_and_ends_in_a_sentence(
    squares_data: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(squares_data.train.hide(0.5, 0), progress=True)
    said = capsys.readouterr().err.splitlines()
    header = next(number for number, line in enumerate(said) if line.startswith("rung "))
    names = [line.split("  ")[0] for line in said[header + 1 :]]
    assert names[:3] == ["features", "ten lines", "probe"] and names[-2] == "final"
    assert "out-of-fold mAP on known labels, ten lines of scikit-learn" in said[-1]


def test_a_bank_without_votes_is_not_kept() -> None:
    """Training images stay in the model only where they decide something."""
    from sarb.auto.ladder import fit_ladder

    random = np.random.RandomState(0)
    labels = sarb.LabelMatrix(random.choice([-1, 1], (60, 3)), list("abc"))
    for seed in range(3):
        ladder = fit_ladder(random.rand(60, 16), labels, claims="strict", seed=seed)
        assert (len(ladder.bank) > 0) is bool(ladder.neighbour_weight.any())
