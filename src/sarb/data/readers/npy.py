"""A NumPy array of codes (N, C) with the names of its rows and columns in text files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import SPLITS, assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.text import text_lines
from sarb.errors import did_you_mean

#: rows looked at together
BLOCK = 50_000
#: so many numbers that are no code are told apart, the others are only counted
STRANGE = 100


def load_npy(
    path: Path,
    *,
    encoding: str | None = None,
    files: str | None = None,
    categories: str | None = None,
    splits: str | None = None,
    root: Path | None = None,
    charset: str | None = None,
    check_files: bool = True,
) -> Data:
    """Read an N×C array of codes: whole numbers, numbers with NaN for blank, or truth values.

    Lines in messages are rows of the array, counted from 1.

    Args:
        path: ``NAME.npy``, without Python objects.
        encoding: what the numbers mean: ``signed`` 1/-1/0, ``binary`` 1/0/NaN, ``minus_one_unknown`` 1/0/-1.
        files: text file with one image name per row; by default ``NAME.files.txt`` or ``files.txt`` beside
            it.
        categories: ``a,b,c`` or a file with one name per column; by default ``NAME.categories.txt`` or
            ``categories.txt`` beside it, else category 0, category 1, ….
        splits: text file with train, test or valid per row; by default ``NAME.splits.txt`` if it is there.
        root: folder of the images; by default the array's own, or its ``images/`` when the files are only
            there.
        charset: of text files that are not UTF-8, such as ``latin-1``.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: every fault with row and column, or numbers that do not fit.
    """
    problems = Problems(path)
    array = _open(path)
    listed = _lines(path, "files", files, charset)
    if listed is None:
        text = (
            f"name its {len(array)} rows, one image per line, "
            f"in {path.stem}.files.txt or files.txt beside it, or add"
        )
        raise fault(path, f'{text} -o files=FILE (Python: files="FILE")', kind="missing-names")
    _check_count(path, array, 0, listed)
    names = _categories(path, array, categories)
    codes = Codes(problems, names)
    _count(codes, array)
    values, notes = codes.decode(encoding)
    rows = [name for _, name in listed[1]]
    folder = find_root(path, rows, root, check_files)
    parts = _parts(problems, path, array, _lines(path, "splits", splits, charset))
    return assemble(problems, rows, values, names, root=folder, splits=parts, lines=codes.lines, notes=notes)


def _open(path: Path) -> NDArray[Any]:
    """Map the array into memory; a file that claims to be larger than it is fails here."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # what NumPy raises for a damaged header is of many kinds
        reason = " ".join(str(error).split())[:200]
        if "ickle" in reason or "Python objects" in reason:
            reason = (
                "it holds Python objects, which could run any code; save numbers, array.astype(numpy.int8)"
            )
        raise fault(path, f"not an .npy file that can be read ({reason})", kind="bad-npy") from None
    if not isinstance(array, np.ndarray):
        raise fault(path, "an archive of arrays (.npz); save the one with the labels as .npy", kind="bad-npy")
    if array.dtype.kind not in "iufb":
        raise fault(
            path, f"holds {array.dtype}; expected whole numbers, floats or truth values", kind="bad-npy"
        )
    if array.ndim != 2 or not array.size:
        shape = " × ".join(map(str, array.shape)) or "a single number"
        raise fault(path, f"has shape {shape}; expected images × categories", kind="bad-npy")
    return array


Listed = tuple[Path, list[tuple[int, str]]]


def _lines(path: Path, what: str, option: str | None, charset: str | None) -> Listed | None:
    """Return the file an option names, or that lies beside ``path``, and its lines."""
    usual = [
        path.with_name(f"{path.stem}.{what}.txt"),
        *([path.with_name("files.txt")] if what == "files" else []),
    ]
    asked = [path.parent / option, Path(option).expanduser()] if option else usual
    file = next((place for place in asked if place.is_file()), None)
    if file is None:
        if option:
            raise fault(path, f"option {what}: there is no file {option}, neither here nor in {path.parent}")
        return None
    return file, list(text_lines(file, charset))


def _check_count(path: Path, array: NDArray[Any], axis: int, listed: Listed) -> None:
    count = array.shape[axis]
    (file, lines) = listed
    if count != len(lines):
        turned = f"; array.T would fit {file.name}" if array.shape[1 - axis] == len(lines) else ""
        what = ("rows", "columns")[axis]
        raise fault(path, f"has {count} {what}, but {file} has {len(lines)} names{turned}", kind="bad-length")


def _categories(path: Path, array: NDArray[Any], option: str | None) -> list[str]:
    usual = [path.with_name(f"{path.stem}.categories.txt"), path.with_name("categories.txt")]
    chosen = option or next((file.name for file in usual if file.is_file()), None)
    names = declared_names(chosen, path)
    if names is None:
        return [f"category {number}" for number in range(array.shape[1])]
    _check_count(path, array, 1, (Path(str(chosen)), list(enumerate(names, 1))))
    return names


def _parts(problems: Problems, path: Path, array: NDArray[Any], listed: Listed | None) -> list[str] | None:
    if listed is None:
        return None
    _check_count(path, array, 0, listed)
    for line, word in listed[1]:
        if word.strip().lower() not in SPLITS:
            problems.add(
                f"value {word[:60]!r}; expected train, test or valid.{did_you_mean(word[:60], SPLITS)}",
                kind="bad-split",
                file=listed[0],
                line=line,
                value=word[:60],
                expected="train, test or valid",
            )
    return [SPLITS.get(word.strip().lower(), "") for _, word in listed[1]]


def _count(codes: Codes, array: NDArray[Any]) -> None:
    """Fill in all rows at once: the cells of an array are compared as numbers, never spelled one by one."""
    codes.lines.extend(range(1, len(array) + 1))
    for start in range(0, len(array), BLOCK):
        block = np.asarray(array[start : start + BLOCK])
        cells = np.zeros(block.shape, np.int32)
        left = np.ones(block.shape, bool)
        for code in (1, 0) if block.dtype.kind in "ub" else (1, 0, -1):
            _mark(codes, cells, left, block == code, str(block.dtype.type(code)))
        if block.dtype.kind == "f":
            _mark(codes, cells, left, np.isnan(block), "")
        strange = np.flatnonzero(left)
        room = max(0, STRANGE - len(codes.spellings))
        if len(strange) > room:
            cells[left] = codes.spellings["another number"]
        for place in strange[:room].tolist():
            cells.flat[place] = codes.spellings[str(block.flat[place])]
        codes.flat.frombytes(cells.tobytes())


def _mark(
    codes: Codes, cells: NDArray[np.int32], left: NDArray[np.bool_], here: NDArray[np.bool_], spelled: str
) -> None:
    if here.any():
        cells[here] = codes.spellings[spelled]
        left &= ~here
