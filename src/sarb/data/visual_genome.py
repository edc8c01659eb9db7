"""Visual Genome: the VG-200 builder from the official files, or published lists. Named = present, else absent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.checks import Problems, say_missing, warn_size
from sarb.data.dataset import Data, Dataset
from sarb.data.stream import elements
from sarb.errors import ConfigError, DataError
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix

#: images in the official image_data.json
SIZE = 108_077
FOLDERS = ("VG_100K", "VG_100K_2", "images/VG_100K", "images/VG_100K_2", "images")


def load_visual_genome(
    root: Path,
    *,
    categories: int = 200,
    test: int = 10_000,
    seed: int = 0,
    aliases: Path | None = None,
    train_list: Path | None = None,
    test_list: Path | None = None,
    label_file: Path | None = None,
    names: Path | None = None,
) -> Data:
    """Build VG-200 from ``objects.json`` and ``image_data.json``, or read published lists.

    Builder: object names are lower-cased and stripped; the ``categories`` names found in most **images** (of all
    images, before the split) are kept, most frequent first, ties alphabetically; images are in ascending order of id
    and ``numpy.random.RandomState(seed).permutation(N)[:test]`` are the test images.
    An image without an entry in ``objects.json`` was never looked at: its labels are unknown.

    Args:
        root: folder with the JSON files and the images in ``VG_100K`` and ``VG_100K_2``.
        categories: how many to keep.
        test: number of test images.
        seed: of the test draw.
        aliases: file such as ``object_alias.txt``: names that mean the same on a line, comma-separated, first is kept.
        train_list: published list of image names, one per line; needs ``test_list`` and ``label_file``.
        test_list: the same for testing.
        label_file: JSON object image name -> list of category numbers from 0.
        names: category names for ``label_file``, one per line; numbered when left out.

    Paths in options are relative to ``root``.
    """
    lists = {"train_list": train_list, "test_list": test_list, "label_file": label_file}
    missing = [option for option, value in lists.items() if value is None]
    if train_list is not None and test_list is not None and label_file is not None:
        return _from_lists(root, (train_list, test_list), label_file, names, categories)
    if len(missing) < len(lists) or names is not None:
        raise ConfigError([f"published lists need option {option} too" for option in missing])
    return _build(root, categories, test, seed, _read_aliases(root / aliases) if aliases else {}, str(aliases))


def _build(root: Path, categories: int, test: int, seed: int, aliases: dict[str, str], alias_file: str) -> Data:
    images = _read_images(root / "image_data.json")
    shown = _read_objects(root / "objects.json", images, aliases)
    kept = most_frequent(shown.values(), categories)
    if len(kept) < categories:
        raise DataError(
            f"{root / 'objects.json'}: only {len(kept)} categories in it; add -o categories={len(kept)} or fewer"
        )
    if not 0 <= test < len(images):
        raise DataError(f"{root}: {len(images)} images, cannot take {test} of them for testing; add -o test=NUMBER")
    ids = sorted(images)
    values = np.full((len(ids), len(kept)), UNKNOWN, np.int8)
    column = {name: number for number, name in enumerate(kept)}
    for row, image in enumerate(ids):
        if image in shown:
            values[row] = ABSENT
            values[row, [column[name] for name in shown[image] if name in column]] = PRESENT
    everything = Dataset(LabelMatrix(values, kept, _locate(root, [images[image] for image in ids])), root, "vg")
    order = np.random.RandomState(seed).permutation(len(ids))
    if (categories, test) == (200, 10_000):
        warn_size("Visual Genome", SIZE, len(ids))
    notes = {"categories": categories, "test": test, "seed": seed, "aliases": alias_file if aliases else None}
    return Data(everything.take(np.sort(order[test:])), everything.take(np.sort(order[:test])), name="vg", notes=notes)


def most_frequent(shown: Iterable[Iterable[str]], count: int) -> list[str]:
    """Return the ``count`` names that occur in most sets, most frequent first, ties alphabetically."""
    times = Counter(name for names in shown for name in names)
    return sorted(times, key=lambda name: (-times[name], name))[:count]


def _read_images(path: Path) -> dict[int, str]:
    """Return image id -> file name, the last part of the official address (normally ``ID.jpg``)."""
    problems, images = Problems(path), {}
    for _, item in elements(path):
        try:
            images[item["image_id"]] = str(item.get("url", "")).rsplit("/", 1)[-1] or f"{item['image_id']}.jpg"
        except (KeyError, TypeError, AttributeError):
            problems.add(f"an entry has no image_id: {str(item)[:80]}")
    problems.raise_any()
    return images


def _read_objects(path: Path, images: dict[int, str], aliases: dict[str, str]) -> dict[int, set[str]]:
    """Return image id -> names of its objects. Equal names share one string, so 108,077 sets stay small."""
    problems, shared = Problems(path), dict[str, str]()
    shown: dict[int, set[str]] = {}
    for _, item in elements(path):
        try:
            spelled = {name for thing in item["objects"] for name in thing["names"]}
            image = item["image_id"]
        except (KeyError, TypeError) as error:
            problems.add(f"an entry has no {error}: {str(item)[:80]}")
            continue
        if image not in images:
            problems.add(f"image id {image} is not in image_data.json")
        clean = (_clean(name) for name in spelled)
        found = {aliases.get(name, name) for name in clean if name}
        shown.setdefault(image, set()).update(shared.setdefault(name, name) for name in found)
    problems.raise_any()
    return shown


def _clean(name: object) -> str:
    return str(name).strip().lower()


def _read_aliases(path: Path) -> dict[str, str]:
    """Return name -> the first name of its line; a name on several lines belongs to the first."""
    aliases: dict[str, str] = {}
    for line in _text(path).splitlines():
        names = [_clean(name) for name in line.split(",") if name.strip()]
        for name in names:
            aliases.setdefault(name, aliases.get(names[0], names[0]))
    return aliases


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _locate(root: Path, files: Sequence[str]) -> list[str]:
    """Return every file with the folder it is in, found by listing each folder once."""
    place: dict[str, str] = {}
    for folder in FOLDERS:
        if (root / folder).is_dir():
            for path in (root / folder).iterdir():
                place.setdefault(path.name, f"{folder}/{path.name}")
    missing = [file for file in files if file not in place]
    if missing:
        raise DataError(f"{root}: {say_missing(missing, len(files), ' or '.join(FOLDERS[:2]))}")
    return [place[file] for file in files]


def _from_lists(root: Path, lists: tuple[Path, Path], label_file: Path, names: Path | None, categories: int) -> Data:
    spelled = [f"category {number}" for number in range(categories)]
    if names is not None:
        spelled = [line.strip() for line in _text(root / names).splitlines() if line.strip()]
    try:
        numbers = json.loads(_text(root / label_file))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{root / label_file}, line {error.lineno}, column {error.colno}: not valid JSON, {error.msg}"
        ) from None
    if not isinstance(numbers, dict):
        raise DataError(f"{root / label_file}: expected a JSON object image name -> list of category numbers")
    parts = []
    for path, name in zip(lists, ("train", "test"), strict=True):
        files = [line.strip() for line in _text(root / path).splitlines() if line.strip()]
        values = _number_matrix(root / label_file, files, numbers, len(spelled))
        parts.append(Dataset(LabelMatrix(values, spelled, _locate(root, files)), root, name))
    return Data(
        parts[0], parts[1], name="vg", notes={"lists": [str(path) for path in lists], "label_file": str(label_file)}
    )


def _number_matrix(path: Path, files: Sequence[str], numbers: dict[str, Any], categories: int) -> NDArray[np.int8]:
    values, problems = np.full((len(files), categories), ABSENT, np.int8), Problems(path)
    for row, file in enumerate(files):
        listed = numbers.get(file)
        if not isinstance(listed, list):
            problems.add(f"no list for image '{file}'")
            continue
        for number in listed:
            if isinstance(number, int) and 0 <= number < categories:
                values[row, number] = PRESENT
            else:
                problems.add(f"image '{file}': category number {number!r} is not between 0 and {categories - 1}")
    problems.raise_any()
    return values
