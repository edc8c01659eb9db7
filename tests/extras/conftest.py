"""What ``make extras`` runs: the real packages, in environments of their own."""

import csv
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import COLOURS, _draw

TRAIN, TEST = 100, 30


@pytest.fixture(scope="session")
def program():
    """The executable of Label Studio, in its own virtual environment."""
    found = os.environ.get("SARB_LABEL_STUDIO") or shutil.which("label-studio")
    assert found, "set SARB_LABEL_STUDIO to the label-studio executable, as make extras does"
    return str(Path(found).absolute())


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Folder ``root/photos``: 130 pictures, ``labels.csv`` with half of the labels, ``truth.csv`` with all."""
    folder = tmp_path_factory.mktemp("root") / "photos"
    folder.mkdir()
    random = np.random.RandomState(0)
    names = list(COLOURS)
    rows = []
    for number in range(TRAIN + TEST):
        shown = {names[number % len(names)], *random.choice(names, random.randint(0, 3), replace=False)}
        _draw(sorted(shown), random).save(folder / f"{number:03d}.jpg", quality=90)
        split = "train" if number < TRAIN else "test"
        rows.append([f"{number:03d}.jpg", split, *(str(int(name in shown)) for name in names)])
    known = random.random_sample((len(rows), len(names))) < 0.5
    known[TRAIN:] = True
    for file, mask in (("truth.csv", np.ones_like(known)), ("labels.csv", known)):
        with (folder / file).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["file_name", "split", *names])
            for row, seen in zip(rows, mask, strict=True):
                writer.writerow([*row[:2], *np.where(seen, row[2:], "")])
    return folder
