"""Unreadable images in a run are skipped, counted and listed; more than one in a hundred stops it."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sarb
from sarb.batches.sources import Skipped, Split
from sarb.data.dataset import Dataset
from sarb.errors import SarbError
from sarb.labels import LabelMatrix
from sarb.progress import Progress
from tests import two_processes
from tests.cli.test_app import run
from tests.waiting import PATIENCE

COUNT = 200
OPTIONS: dict[str, Any] = {
    "recipe": "small",
    "backbone": "tiny",
    "image_size": 32,
    "batch_size": 16,
    "lr": 2e-3,
    "progress": False,
    "epochs": 2,
    "network_options": {"csrl": "sd", "dim": 8, "hidden": 4},
    "method_options": {"start": 1, "refresh": 1},
}
PATHS = pytest.mark.parametrize("cache", [True, False], ids=["cached", "files"])


def fit(data: Dataset, **more: Any) -> sarb.Model:
    return sarb.fit(data, **{**OPTIONS, **more})


def table(folder: Path, name: str = "errors.csv") -> list[dict[str, str]]:
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cut(path: Path) -> None:
    """Leave half a file, as a full disk or a broken download does."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture
def many(squares: Path, squares_data: sarb.Data, tmp_path: Path) -> Dataset:
    """Two hundred small training images of five colours, in a folder of their own."""
    source, folder = squares_data.train, tmp_path / "many"
    folder.mkdir()
    places = np.arange(COUNT) % len(source)
    names = [f"{number:03d}.jpg" for number in range(COUNT)]
    for name, place in zip(names, places, strict=True):
        (folder / name).write_bytes(source.paths[place].read_bytes())
    labels = LabelMatrix(source.labels.values[places], source.categories, names).hide(0.5, 0)
    return Dataset(labels, folder, "many")


def same(one: sarb.Model, other: sarb.Model) -> None:
    for key, value in one.network.state_dict().items():
        assert torch.equal(value, other.network.state_dict()[key]), key


@PATHS
def test_one_of_two_hundred_is_skipped_counted_and_listed(
    many: Dataset, tmp_path: Path, cache: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cut(many.paths[17])
    fit(many, cache=cache, out=tmp_path / "run", progress=True)
    (row,) = table(tmp_path / "run")
    assert row["file_name"] == "017.jpg" and row["split"] == "train"
    assert row["reason"].startswith(f"{many.paths[17]}: damaged image file")
    assert capsys.readouterr().err.count(f"skipped: {row['reason']}") == 1
    used = LabelMatrix.load(tmp_path / "run" / "labels.npz")
    assert used.paths == tuple(path for path in many.labels.paths if path != "017.jpg")
    for entry in table(tmp_path / "run", "log.csv"):
        assert entry["skipped"] == "1" and int(entry["known"]) == np.count_nonzero(used.values)
    assert len(table(tmp_path / "run", "steps.csv")) == 2 * 13
    assert "| images trained on | 199 |" in (tmp_path / "run" / "model" / "README.md").read_text()


@PATHS
def test_three_of_two_hundred_stop_the_run(many: Dataset, tmp_path: Path, cache: bool) -> None:
    for number in (5, 6):
        cut(many.paths[number])
    fit(many, cache=cache, epochs=1)
    many.paths[100].unlink()
    with pytest.raises(SarbError, match="at least 3 of 200 images cannot be read") as error:
        fit(many, cache=cache, out=tmp_path / "run", epochs=1)
    for part in ("005.jpg: damaged", "006.jpg: damaged", "100.jpg: no such file", "'sarb data check SRC'"):
        assert part in str(error.value)
    assert not (tmp_path / "run" / "model").exists()


@PATHS
def test_what_is_skipped_leaves_the_rest_of_the_run_alone(many: Dataset, cache: bool) -> None:
    """An image without a known label teaches the plain loss nothing, so to skip it must change nothing."""
    options = {
        "cache": cache,
        "network": "pooled",
        "network_options": {},
        "method": "partial_bce",
        "flip": False,
        "method_options": {},
        "epochs": 1,
        "batch_size": COUNT,
        "lr": 1e-3,
        "backbone_options": {"frozen_norms": True},
    }
    values = many.labels.values.copy()
    values[17] = 0
    blank = Dataset(LabelMatrix(values, many.categories, many.labels.paths), many.root)
    whole = fit(blank, **options)
    cut(many.paths[17])
    without = fit(blank, **options)
    for key, value in whole.network.state_dict().items():
        assert torch.allclose(value, without.network.state_dict()[key], atol=1e-5), key


@PATHS
def test_a_batch_of_unreadable_images_is_a_step_left_out(many: Dataset, tmp_path: Path, cache: bool) -> None:
    cut(many.paths[3])
    fit(
        many,
        cache=cache,
        out=tmp_path / "run",
        batch_size=1,
        epochs=1,
        method="partial_bce",
        method_options={},
    )
    steps = table(tmp_path / "run", "steps.csv")
    losses = [float(step["loss"]) for step in steps if step["loss"]]
    assert len(steps) == COUNT and len(losses) == COUNT - 1
    (row,) = table(tmp_path / "run", "log.csv")
    assert float(row["loss"]) == pytest.approx(np.mean(losses), abs=1e-5)


@PATHS
def test_an_interrupted_run_with_unreadable_images_resumes_exactly(
    many: Dataset, tmp_path: Path, cache: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(many.paths[17])
    many.paths[40].unlink()
    options = {"cache": cache, "epochs": 2, "valid": 0.1}
    whole = fit(many, out=tmp_path / "whole", **options)
    from sarb.runs.folder import RunFolder

    def stops(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_tables", stops)
        with pytest.raises(KeyboardInterrupt):
            fit(many, out=tmp_path / "cut", **options)
    resumed = fit(many, out=tmp_path / "cut", resume=True, **options)
    same(whole, resumed)
    for name in ("steps.csv", "errors.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    logs = [table(tmp_path / name, "log.csv") for name in ("whole", "cut")]
    assert [{**row, "seconds": ""} for row in logs[0]] == [{**row, "seconds": ""} for row in logs[1]]
    assert {row["file_name"] for row in table(tmp_path / "cut")} == {"017.jpg", "040.jpg"}


@PATHS
def test_validation_images_count_with_the_images_they_were_split_off(
    many: Dataset, tmp_path: Path, cache: bool
) -> None:
    held = Split.of(many, 0.1, 0).held
    cut(many.paths[held[4]])
    fit(many, cache=cache, valid=0.1, out=tmp_path / "run", epochs=1, method_options={})
    (row,) = table(tmp_path / "run")
    assert (row["file_name"], row["split"]) == (many.labels.paths[held[4]], "valid")
    log = table(tmp_path / "run", "log.csv")
    assert [entry["skipped"] for entry in log] == ["1"] and float(log[0]["valid_mAP"]) > 0


@PATHS
def test_a_validation_set_of_its_own_has_its_own_limit(many: Dataset, cache: bool) -> None:
    valid = many.take(np.arange(100, 150))
    cut(many.paths[120])
    with pytest.raises(SarbError, match="at least 1 of 50 images cannot be read"):
        fit(many.take(np.arange(100)), valid=valid, cache=cache, epochs=1)


def test_limits_of_equally_large_sets_are_not_mixed_up(many: Dataset) -> None:
    skipped = Skipped(Split.of(many.take(np.arange(100)), many.take(np.arange(100, 200)), 0), Progress(False))
    skipped.add("train", [(7, "a: broken")])
    skipped.add("valid", [(7, "b: broken")])
    skipped.add("train", [(7, "a: broken again")])
    assert [(row["file_name"], row["split"]) for row in skipped.rows()] == [
        ("007.jpg", "train"),
        ("107.jpg", "valid"),
    ]
    with pytest.raises(SarbError, match="at least 2 of 100"):
        skipped.add("valid", [(8, "c: broken")])


# the command line

TRAIN = [
    "--method",
    "sarb",
    "--backbone",
    "tiny",
    "--image-size",
    "32",
    "--epochs",
    "2",
    "--batch-size",
    "16",
    "--set",
    "network.dim=8",
    "--set",
    "network.hidden=4",
    "--set",
    "method.start=1",
    "-o",
    "encoding=binary",
]
#: what runs by default is fitted
AUTO = ["--backbone", "tiny", "--image-size", "32", "-o", "encoding=binary"]


@pytest.fixture
def source(many: Dataset, squares_data: sarb.Data) -> Path:
    """The two hundred with another hundred to test on, as labels.csv."""
    file = many.root / "labels.csv"
    test = squares_data.test
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["file_name", "split", *many.categories])
        for name, values in zip(many.labels.paths, many.labels.values, strict=True):
            writer.writerow([name, "train", *({1: 1, -1: 0, 0: ""}[int(value)] for value in values)])
        for number in range(100):
            name, place = f"test{number:02d}.jpg", number % len(test)
            (many.root / name).write_bytes(test.paths[place].read_bytes())
            writer.writerow([name, "test", *((test.labels.values[place] > 0).astype(int))])
    return file


@PATHS
def test_train_and_evaluate_exit_with_3(
    source: Path,
    tmp_path: Path,
    cache: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not cache:  # once is enough
        monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    cut(source.parent / "017.jpg")
    (source.parent / "test31.jpg").write_text("no picture")
    out, way = tmp_path / "run", "--cache" if cache else "--no-cache"
    code = run(monkeypatch, "train", "--data", source, "--out", out, "--valid", "0.1", "--quiet", way, *TRAIN)
    error = capsys.readouterr().err
    assert code == 3, error
    assert (
        error.count("sarb: skipped: ") == 2
        and "017.jpg: damaged" in error
        and "test31.jpg: not an image" in error
    )
    assert [(row["file_name"], row["split"]) for row in table(out)] == [
        ("017.jpg", "train"),
        ("test31.jpg", "test"),
    ]
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["skipped"] == {"train": 1, "valid": 0, "test": 1} and metrics["images"] == 99
    assert metrics["best"]["images"] == 99 and (out / "report.html").is_file() == cache
    assert (
        len(LabelMatrix.load(out / "test_labels.npz"))
        == len(sarb.scores.Scores.load(out / "scores.npz"))
        == 99
    )
    assert run(monkeypatch, "evaluate", out, "--json", "--out", tmp_path / "again") == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out)["images"] == 99 and "sarb: skipped: " in captured.err
    assert [row["file_name"] for row in table(tmp_path / "again")] == ["test31.jpg"]
    cut(source.parent / "test32.jpg")
    assert run(monkeypatch, "evaluate", out) == 2
    assert "at least 2 of 100 images cannot be read" in capsys.readouterr().err


@PATHS
def test_a_fit_without_epochs_exits_with_3(
    source: Path,
    tmp_path: Path,
    cache: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    cut(source.parent / "017.jpg")
    (source.parent / "test31.jpg").write_text("no picture")
    out = tmp_path / "run"
    way = "--cache" if cache else "--no-cache"
    assert run(monkeypatch, "train", "--data", source, "--out", out, "--quiet", way, *AUTO) == 3
    assert capsys.readouterr().err.count("sarb: skipped: ") == 2
    assert [(row["file_name"], row["split"]) for row in table(out)] == [
        ("017.jpg", "train"),
        ("test31.jpg", "test"),
    ]
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["skipped"] == {"train": 1, "valid": 0, "test": 1} and metrics["images"] == 99
    assert len(LabelMatrix.load(out / "labels.npz")) == len(sarb.scores.Scores.load(out / "oof.npz")) == 199


@PATHS
@pytest.mark.parametrize("words", [TRAIN, AUTO], ids=["steps", "auto"])
def test_a_validation_image_is_listed_once(
    source: Path, tmp_path: Path, words: list[str], cache: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    train = sarb.load(source, encoding="binary").train
    held = Split.of(train, 0.1, 0).held
    cut(train.paths[held[4]])
    trained = next(row for row in range(COUNT) if row not in held)
    cut(train.paths[trained])
    out = tmp_path / "run"
    way = "--cache" if cache else "--no-cache"
    assert run(monkeypatch, "train", "--data", source, "--out", out, "--valid", "0.1", "-q", way, *words) == 3
    assert sorted((row["split"], row["file_name"]) for row in table(out)) == [
        ("train", train.labels.paths[trained]),
        ("valid", train.labels.paths[held[4]]),
    ]
    assert (out / "thresholds.json").is_file()


@pytest.mark.parametrize("words", [TRAIN, AUTO], ids=["steps", "auto"])
def test_too_many_exit_with_2(
    source: Path,
    tmp_path: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in (1, 2, 3):
        cut(source.parent / f"{number:03d}.jpg")
    assert run(monkeypatch, "train", "--data", source, "--out", tmp_path / "run", "--quiet", *words) == 2
    error = capsys.readouterr().err
    assert "at least 3 of 200 images cannot be read" in error and "Traceback" not in error


@pytest.mark.slow
@PATHS
def test_two_processes_do_not_wait_for_each_other(source: Path, tmp_path: Path, cache: bool) -> None:
    """With one image per step and process, an unreadable one leaves a process with nothing to learn from."""
    cut(source.parent / "017.jpg")
    cut(source.parent / "018.jpg")
    command = [
        *two_processes.SARB,
        "train",
        "--data",
        str(source),
        "--out",
        str(tmp_path / "run"),
        *TRAIN,
        "--batch-size",
        "2",
        "--cache" if cache else "--no-cache",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SARB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=2 * PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {row["file_name"] for row in table(tmp_path / "run")} == {"017.jpg", "018.jpg"}
    steps = table(tmp_path / "run", "steps.csv")
    assert len(steps) == 2 * COUNT // 2 and 2 <= sum(step["loss"] == "" for step in steps) <= 4
