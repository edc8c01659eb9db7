"""SIGKILL in every long command: what is on disk loads, and the same command ends as if nothing had happened.

Training runs with a checkpoint every step or two, is killed up to three times and continues with ``--resume``.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.bench import Kind
from tests.faults.killing import SOURCE, Scene
from tests.faults.small_run import copy_run, small_run

SMALL = (
    *("--backbone", "tiny", "--image-size", "32", "--batch-size", "4", "--checkpoint-every"),
    *("{every}", "--out", "{disk}/run", "--resume", "--quiet"),
)
NETWORK = ("--set", "network.dim=8", "--set", "network.hidden=4")
#: name -> options of the training
TRAININGS: dict[str, tuple[str, ...]] = {
    "SARB": (
        *("--method", "sarb", *NETWORK, "--epochs", "3", "--valid", "0.2"),
        *("--set", "method.start=1", "--set", "method.refresh=1"),
    ),
    "curriculum": (
        *("--method", "curriculum", *NETWORK, "--epochs", "2", "--set", "method.rounds=2"),
        *("--set", "method.threshold=0.01"),
    ),
    "pooled": ("--method", "partial_bce", "--network", "pooled", "--epochs", "3"),
}
#: name -> options for how images are read, and steps between two checkpoints
READING: dict[str, tuple[tuple[str, ...], str]] = {
    "0 workers, cached": ((), "1"),
    "0 workers": (("--augment", "--no-cache"), "2"),
    "2 workers": (("--augment", "--no-cache", "--workers", "2"), "2"),
}
AUTO = (
    *("--method", "auto", "--epochs", "2", "--set", "method.folds=2"),
    *("--finetune", "--set", "method.residual=partial_bce"),
)


def _weights(model: Path) -> str:
    return hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()


def _table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return [{**row, "seconds": ""} for row in csv.DictReader(stream)]


def _trained(disk: Path) -> Any:
    steps = disk / "run" / "steps.csv"
    return _weights(disk / "run" / "model"), _table(disk / "run" / "log.csv"), steps.read_text()


def _load(disk: Path) -> None:
    """Load every model, checkpoint and table of the run."""
    import safetensors

    sarb: Any = importlib.import_module("sarb")
    for name in ("model", "best"):
        if (disk / "run" / name).exists():
            sarb.load_model(disk / "run" / name)
    for file in (disk / "run").glob("checkpoint/*.safetensors"):
        with safetensors.safe_open(file, "np") as stored:
            assert json.loads(stored.metadata()["state"])["epoch"] >= 0
    for file in (disk / "run").glob("*.json"):
        json.loads(file.read_text(encoding="utf-8"))
    for file in (disk / "run").glob("*.npz"):
        with np.load(file) as arrays:
            assert all(len(array.shape) < 3 for array in arrays.values())
    sarb.load_calibration(disk / "run") if (disk / "run" / "model").exists() else None


def _with_cache(disk: Path) -> None:
    """Nothing but the cached features, so that the training itself is killed."""
    shutil.copytree(small_run() / "cache", disk / "cache")


def _training(options: tuple[str, ...], reading: str, **more: Any) -> Scene:
    read, every = READING[reading]
    words = ["train", *SOURCE, *options, *read, *SMALL]
    words = [word.format(every=every, disk="{disk}", base="{base}") for word in words]
    return Scene(words, _with_cache, _trained, _load, **{"kills": 3, **more})


# the other commands


def _calibrated(disk: Path) -> Any:
    stored = json.loads((disk / "run" / "thresholds.json").read_text())
    with np.load(disk / "run" / "oof.npz") as arrays:
        return stored, arrays["logits"].tobytes(), _weights(disk / "run" / "model")


def _filled(disk: Path) -> Any:
    return {file.name: file.read_text() for file in sorted(disk.glob("*.csv"))}


def _check_filled(disk: Path) -> None:
    _load(disk)
    assert all(text.endswith("\n") for text in _filled(disk).values())


def _exported(disk: Path) -> Any:
    onnx: Any = importlib.import_module("sarb.inference.onnx")
    photos = sorted((small_run() / "data").glob("*.png"))
    return onnx.OnnxModel(disk / "model.onnx").predict(photos).logits.tobytes()


def _check_exported(disk: Path) -> None:
    _load(disk)
    if (disk / "model.onnx").exists():
        _exported(disk)


def _features(disk: Path) -> Any:
    files = sorted((disk / "cache" / "features").glob("*.npy"))
    return [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files], _filled(disk)


def _check_features(disk: Path) -> None:
    """A file of features is whole: its checksum is that of its record."""
    cache: Any = importlib.import_module("sarb.batches.cache_files")
    for file in (disk / "cache" / "features").glob("*.npy"):
        assert not file.name.startswith(".") or file.suffix == ".partial"
        if file.with_suffix(".json").exists():
            images = len(np.load(file, mmap_mode="r"))
            assert cache.open_features(file, images, lambda line: None) is not None, file.name


def _run_without_features(disk: Path) -> None:
    shutil.copytree(small_run() / "run", disk / "run")


def _measured(disk: Path) -> Any:
    rows = _table(disk / "grid" / "results.csv")
    assert (disk / "grid" / "README.md").is_file()
    return [{**row, "command": ""} for row in rows]


def _check_grid(disk: Path) -> None:
    for folder in (disk / "grid" / "runs").glob("*/"):
        _load_run(folder)
    if (disk / "grid" / "results.csv").exists():
        _table(disk / "grid" / "results.csv")


def _load_run(folder: Path) -> None:
    sarb: Any = importlib.import_module("sarb")
    for name in ("model", "best"):
        if (folder / name).exists():
            sarb.load_model(folder / name)


COMMANDS = {
    "calibrate": Scene(
        ["calibrate", "{disk}/run", "--folds", "2", "--quiet"], copy_run, _calibrated, _load, kills=2
    ),
    "complete": Scene(
        ["complete", "{disk}/run", *SOURCE, "--out", "{disk}/filled.csv", "--overwrite"],
        copy_run,
        _filled,
        _check_filled,
    ),
    "export": Scene(
        ["export", "{disk}/run", "{disk}/model.onnx", "--images", "{base}/data/1.png"],
        copy_run,
        _exported,
        _check_exported,
    ),
    "feature cache": Scene(
        ["complete", "{disk}/run", *SOURCE, "--out", "{disk}/filled.csv", "--overwrite"],
        _run_without_features,
        _features,
        _check_features,
        watched="{disk}/cache",
    ),
    "reproduce": Scene(
        [
            *("reproduce", "comparison", *SOURCE, "--out", "{disk}/grid", "--quick", "--rows", "SSGRL,Ours"),
            *("--known", "0.8", "--backbone", "tiny", "--epochs", "2", "--no-full", "--quiet"),
            *("--set", "image_size=32", "--set", "batch_size=8", "--set", "checkpoint_every=1"),
        ],
        _with_cache,
        _measured,
        _check_grid,
        kills=2,
    ),
    "writing a checkpoint": _training(
        TRAININGS["SARB"],
        "0 workers, cached",
        watched="{disk}/run/checkpoint",
        files=("state.safetensors",),
    ),
    "writing a model folder": _training(
        TRAININGS["SARB"],
        "0 workers, cached",
        watched="{disk}/run/.sarb-",
        files=("model.safetensors", "config.json", "README.md"),
    ),
}

#: cases of each training, and the last ones of them that start a new interpreter
EACH = 36
BY_SHELL = 7
SAME = "Resumed until it ends: weights, log and steps are those of a run that nobody killed, bit for bit."
WHOLE = (
    "Every file and folder loads, as old or as new; the same command then ends as if nothing had happened."
)
SCENES = {name: [_training(options, reading) for reading in READING] for name, options in TRAININGS.items()}


def _killed_in_training(name: str, folder: Path, seed: int) -> str:
    """The ways to read images in turn."""
    return SCENES[name][seed % len(READING)].case(EACH, BY_SHELL, folder, seed)


KINDS = [
    *(
        Kind(
            f"SIGKILL: training, {name} (cached, files, files with 2 workers)",
            SAME,
            EACH,
            1,
            partial(_killed_in_training, name),
        )
        for name in TRAININGS
    ),
    Kind(
        "SIGKILL: training, auto with residual and fine-tuning",
        SAME,
        EACH,
        1,
        partial(_training(AUTO, "0 workers, cached").case, EACH, BY_SHELL),
    ),
    *(
        Kind(f"SIGKILL: {name}", WHOLE, 100, 1, partial(scene.case, 100, 20))
        for name, scene in COMMANDS.items()
    ),
]
