"""Plant known faults in a data set, so that an audit can be measured: what it should find is known.

Copies of photos (byte for byte, resized, cropped, recompressed, mirrored) are added; blurred and dark photos
replace their originals; given labels are turned round. Every photo has at most one fault.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from sarb.files import write_csv

COPIES = ("exact", "resized", "cropped", "recompressed", "mirrored")
IN_PLACE = ("blurry", "dark")
KINDS = (*COPIES, *IN_PLACE, "label")
TRUTH = ("kind", "file_name", "original", "label")
#: JPEG quality of a changed photo
QUALITY = 92
#: share of the copies that are put into the training photos
TRAIN = 2 / 3

Change = Callable[[Image.Image, np.random.Generator], Image.Image]


@dataclass(frozen=True)
class Fault:
    """A planted fault; ``original`` is the photo that a copy was made of, ``label`` the category turned round."""

    kind: str
    file_name: str
    original: str = ""
    label: str = ""


def resized(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """40 to 80 % of each side."""
    scale = random.uniform(0.4, 0.8)
    return photo.resize((round(scale * photo.width), round(scale * photo.height)), Image.Resampling.LANCZOS)


def cropped(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """A window of 90 % of each side, anywhere."""
    width, height = round(0.9 * photo.width), round(0.9 * photo.height)
    left = int(random.integers(photo.width - width + 1))
    top = int(random.integers(photo.height - height + 1))
    return photo.crop((left, top, left + width, top + height))


def recompressed(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """JPEG of quality 20 to 50, then saved like the others."""
    buffer = io.BytesIO()
    photo.save(buffer, "JPEG", quality=int(random.integers(20, 51)))
    return Image.open(buffer)


def mirrored(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """Left and right exchanged."""
    return ImageOps.mirror(photo)


def blurry(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """Gaussian blur; σ is 0.8 to 2 % of the longer side: 2 to 5 pixels of 256."""
    return photo.filter(ImageFilter.GaussianBlur(random.uniform(0.008, 0.02) * max(photo.size)))


def dark(photo: Image.Image, random: np.random.Generator) -> Image.Image:
    """8 to 25 % of the brightness."""
    return ImageEnhance.Brightness(photo).enhance(random.uniform(0.08, 0.25))


CHANGES: dict[str, Change] = {
    change.__name__: change for change in (resized, cropped, recompressed, mirrored, blurry, dark)
}


def plant(
    table: Path,
    root: Path,
    out: Path,
    *,
    count: int,
    seed: int,
    half: int | None = None,
    file_column: str = "file_name",
) -> list[Fault]:
    """Write ``labels.csv`` and the photos to a new folder; return what was planted (``truth.csv`` too).

    Args:
        table: wide CSV with a column ``split``, labels 1 and 0.
        root: folder that its file names are relative to.
        out: folder to write; unchanged photos are links.
        count: faults of each kind.
        seed: of everything random.
        half: 0 or 1 takes that half of the photos, the same whatever the seed; None takes all.
        file_column: name of the column with the files.
    """
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    if half is not None:
        rows = [rows[place] for place in np.sort(np.random.RandomState(0).permutation(len(rows))[half::2])]
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(rows))[: len(KINDS) * count].reshape(len(KINDS), count)
    faults = [
        _plant(kind, rows, int(place), root, out, random, file_column)
        for kind, places in zip(KINDS, chosen, strict=True)
        for place in places
    ]
    for row in rows:
        target = out / row[file_column]
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to((root / row[file_column]).resolve())
    write_csv(out / "labels.csv", list(rows[0]), rows)
    write_csv(out / "truth.csv", TRUTH, [vars(fault) for fault in faults])
    return faults


def _plant(
    kind: str,
    rows: list[dict[str, str]],
    place: int,
    root: Path,
    out: Path,
    random: np.random.Generator,
    file_column: str,
) -> Fault:
    """Plant one fault; a copy is added to the rows."""
    row = rows[place]
    name = row[file_column]
    if kind == "label":
        return _turn_round(row, name, [key for key in row if key not in (file_column, "split")], random)
    if kind in IN_PLACE:
        _save(CHANGES[kind](_open(root / name), random), out / name)
        return Fault(kind, name)
    copy = str(Path(name).with_name(f"copy-{len(rows):06d}.jpg"))
    if kind == "exact":
        (out / copy).parent.mkdir(parents=True, exist_ok=True)
        (out / copy).write_bytes((root / name).read_bytes())
    else:
        _save(CHANGES[kind](_open(root / name), random), out / copy)
    split = "train" if random.random() < TRAIN else "test"
    rows.append({**row, file_column: copy, "split": split})
    return Fault(kind, copy, original=name)


def _turn_round(
    row: dict[str, str], name: str, categories: Sequence[str], random: np.random.Generator
) -> Fault:
    """Turn a label round: a present one or, as often, an absent one."""
    wanted = "1" if random.random() < 0.5 else "0"
    candidates = [key for key in categories if row[key] == wanted] or list(categories)
    label = candidates[int(random.integers(len(candidates)))]
    row[label] = "0" if row[label] == "1" else "1"
    return Fault("label", name, label=label)


def _open(path: Path) -> Image.Image:
    with Image.open(path) as photo:
        return photo.convert("RGB")


def _save(photo: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    photo.save(path, "JPEG", quality=QUALITY)
