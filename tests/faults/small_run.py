"""A small trained run and its photos, made once per process, and file systems to put a copy on."""

from __future__ import annotations

import atexit
import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from tests.faults.children import sarb

#: the labels, and options of a training that takes a second
DATA = "{base}/data/labels.csv"
OPTIONS = [
    *(
        "-o",
        "encoding=binary",
        "--method",
        "sarb",
        "--backbone",
        "tiny",
        "--image-size",
        "32",
        "--epochs",
        "2",
    ),
    *("--set", "network.dim=8", "--set", "network.hidden=4", "--set", "method.start=1"),
]
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}


@cache
def small_run() -> Path:
    """A folder with ``data``, ``run`` and ``cache``."""
    base = Path(tempfile.mkdtemp(prefix="sarb-small-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    _draw(base / "data")
    words = ["train", "--data", DATA.format(base=base), *OPTIONS, "--out", str(base / "run"), "--quiet"]
    done = sarb(words, base, environment={"SARB_CACHE": str(base / "cache"), "OMP_NUM_THREADS": "1"})
    assert done.code == 0, done.err
    return base


def copy_run(disk: Path) -> None:
    """Put a copy of the run and of its feature cache on a disk."""
    for name in ("run", "cache"):
        shutil.copytree(small_run() / name, disk / name)


def _draw(folder: Path) -> None:
    """24 images of coloured bars; a fifth of the labels is unknown."""
    folder.mkdir()
    chance = np.random.default_rng(0)
    with (folder / "labels.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file_name", "split", *COLOURS])
        for number in range(24):
            pixels = np.full((48, 48, 3), 128, np.uint8)
            cells = []
            for column, colour in enumerate(COLOURS.values()):
                present = chance.random() < 0.5
                cells.append(int(present) if chance.random() < 0.8 else "")
                if present:
                    pixels[4:44, 16 * column : 16 * column + 14] = colour
            Image.fromarray(pixels).save(folder / f"{number}.png")
            table.writerow([f"{number}.png", "train" if number < 18 else "test", *cells])


@cache
def mounts_work() -> bool:
    """Whether this process may mount a tmpfs."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0
        if made:
            subprocess.run(["umount", folder], check=True)
        return made


@contextmanager
def mount(folder: Path, size: int | None) -> Iterator[None]:
    """Mount a tmpfs of this size on a folder; without a size, make the one that is mounted there read-only."""
    if size is None:
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        yield
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
