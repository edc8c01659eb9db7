"""The built-in data set ``demo``: little scenes drawn by our own code, made once and kept in the cache.

No download and no third-party pictures. The drawing itself is in ``demo_scene`` and the files it uses.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sarb.data.dataset import Data
from sarb.data.demo.scene import Box, draw_scene, object_boxes, plan_scene
from sarb.data.demo.things import CATEGORIES
from sarb.data.readers.table import load_table
from sarb.errors import ConfigError
from sarb.files import cache_dir, read_json, write_csv, write_json
from sarb.labels import ABSENT, PRESENT, LabelMatrix
from sarb.progress import Progress

#: raise when a drawing changes, so that old caches are not used any more
VERSION = 2
#: test pictures have their own range of indices: they stay the same whatever the number of training pictures
FIRST_TEST_INDEX = 1_000_000
JPEG_QUALITY = 88
STALE_SECONDS = 3600


class Settings(NamedTuple):
    """What the pictures depend on."""

    train: int
    test: int
    seed: int
    size: int

    def check(self) -> None:
        """Raise with every wrong setting at once."""
        limits = {
            "train": (1, FIRST_TEST_INDEX),
            "test": (1, FIRST_TEST_INDEX),
            "seed": (0, 2**63),
            "size": (64, 1024),
        }
        problems = [
            f"option {name} of source 'demo' must be a whole number from {low} to {high}, got {value!r}"
            for (name, (low, high)), value in zip(limits.items(), self, strict=True)
            if not isinstance(value, int) or not low <= value <= high
        ]
        if problems:
            raise ConfigError(problems)

    def folder(self) -> Path:
        """Where this set is kept."""
        digest = hashlib.sha256(repr((VERSION, *self)).encode()).hexdigest()[:12]
        return cache_dir() / f"demo-{digest}"

    def pictures(self) -> Iterator[tuple[str, str, int]]:
        """Yield (file name, split, index of the drawing) of every picture."""
        for split, count, first in (("train", self.train, 0), ("test", self.test, FIRST_TEST_INDEX)):
            for number in range(count):
                yield f"images/{split}_{number:05d}.jpg", split, first + number


def load_demo(train: int = 1200, test: int = 600, seed: int = 0, size: int = 160, processes: int = 2) -> Data:
    """Return the demo set: scenes with 1 to 6 objects of 30 categories, fully labelled.

    The first call draws it (about 15 s on 2 cores) into :func:`sarb.files.cache_dir`; later calls read it.

    Args:
        train: number of training pictures.
        test: number of test pictures.
        seed: another seed gives other pictures; the same seed gives the same bytes.
        size: width and height in pixels.
        processes: how many processes draw; the result does not depend on it.

    Raises:
        ConfigError: a setting that is not a sensible number.
    """
    settings = Settings(train, test, seed, size)
    settings.check()
    folder = settings.folder()
    if not (folder / "labels.csv").exists():
        _build(folder, settings, max(1, processes))
    data = load_table(folder / "labels.csv", root=folder, check_files=False)
    return replace(
        data,
        train=replace(data.train, name="demo"),
        test=replace(data.test, name="demo"),
        name="demo",
        notes={**data.notes, **settings._asdict(), "version": VERSION},
    )


def demo_boxes(data: Data, split: str = "test", count: int | None = None) -> list[list[tuple[str, Box]]]:
    """Where the objects of the first ``count`` pictures of a split are: (category, box in pixels) of each
    picture.

    The pictures are planned anew from the seed, without being drawn; no file is read or written.
    """
    settings = Settings(*(int(data.notes[name]) for name in Settings._fields))
    indices = [index for _, part, index in settings.pictures() if part == split][:count]
    planned = (plan_scene(settings.seed, index, settings.size) for index in indices)
    return [object_boxes(scene.placed, settings.size) for scene in planned]


def _build(folder: Path, settings: Settings, processes: int) -> None:
    """Draw into a temporary neighbour of ``folder`` and move it into place when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".demo-"))
    try:
        (temporary / "images").mkdir()
        _draw_all(temporary, settings, processes)
        _write_labels(temporary, settings, processes)
        temporary.chmod(0o755)
        _move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move(temporary: Path, folder: Path) -> None:
    """Rename; when another process was faster, its equal result stays."""
    try:
        temporary.rename(folder)
    except OSError:
        if not (folder / "labels.csv").exists():
            raise


def _sweep(cache: Path) -> None:
    """Remove what a killed process left behind long ago."""
    for left_over in cache.glob(".demo-*"):
        if time.time() - left_over.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(left_over, ignore_errors=True)


def _draw_all(folder: Path, settings: Settings, processes: int) -> None:
    """Draw part 0 here and the others in fresh interpreters.

    Not ``multiprocessing``: forking is unsafe once torch has threads, and spawning runs an unguarded user
    script again.
    """
    total = settings.train + settings.test
    progress = Progress()
    progress.say(f"drawing the demo data set, {total} pictures, once (kept in {settings.folder()})")
    command = [sys.executable, "-m", "sarb.data.demo.dataset", str(folder), *map(str, settings)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    helpers = [
        subprocess.Popen([*command, str(part), str(processes)], env=environment, stderr=subprocess.PIPE)
        for part in range(1, processes)
    ]
    try:
        with progress.bar("drawing", total) as advance:
            draw_part(folder, settings, 0, processes, lambda: advance(processes))
        for helper in helpers:
            _, complaint = helper.communicate()
            if helper.returncode:
                raise RuntimeError(f"drawing the demo set failed: {complaint.decode(errors='replace')}")
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def draw_part(
    folder: Path, settings: Settings, part: int, parts: int, advance: Callable[[], None] = lambda: None
) -> None:
    """Draw every ``parts``-th picture from number ``part`` on, and note its categories in ``part-N.json``."""
    found: dict[str, list[str]] = {}
    for number, (name, _, index) in enumerate(settings.pictures()):
        if number % parts == part:
            image, categories, _ = draw_scene(settings.seed, index, settings.size)
            # the folder as a whole is moved into place, so a file need not be atomic
            image.save(folder / name, quality=JPEG_QUALITY)
            found[name] = sorted(categories)
            advance()
    write_json(folder / f"part-{part}.json", found)


def _write_labels(folder: Path, settings: Settings, processes: int) -> None:
    """Join the parts to the wide table ``labels.csv``, in words, so that it needs no declared encoding."""
    found: dict[str, list[str]] = {}
    for part in range(processes):
        found.update(read_json(folder / f"part-{part}.json"))
        (folder / f"part-{part}.json").unlink()
    pictures = list(settings.pictures())
    present = np.array([[category in found[name] for category in CATEGORIES] for name, _, _ in pictures])
    codes = LabelMatrix(np.where(present, PRESENT, ABSENT), CATEGORIES).to_codes("words")
    rows = ([name, split, *row] for (name, split, _), row in zip(pictures, codes, strict=True))
    write_csv(folder / "labels.csv", ["file_name", "split", *CATEGORIES], rows, line_end="\n")


def main(arguments: list[str]) -> None:
    """Draw one part in a helper process: ``FOLDER TRAIN TEST SEED SIZE PART PARTS``."""
    folder, *numbers = arguments
    *settings, part, parts = map(int, numbers)
    draw_part(Path(folder), Settings(*settings), part, parts)


if __name__ == "__main__":
    main(sys.argv[1:])
