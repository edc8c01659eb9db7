"""A NumPy array of codes (N, C) with the names of its rows and columns in text files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.messages import option
from sarb.data.parse.rows import split_of
from sarb.data.parse.text import text_lines

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
        beside = f"{path.stem}.files.txt or files.txt beside it"
        text = (
            f"name its {len(array)} rows, one image per line, in {beside}, or add {option('files', 'FILE')}"
        )
        raise fault(path, text, kind="missing-names")
    _check_count(path, array, 0, listed)
    category_names = _categories(path, array, categories)
    codes = Codes(problems, category_names)
    _append_rows(codes, array)
    values, notes = codes.decode(encoding)
    names = [name for _, name in listed.lines]
    return assemble(
        problems,
        names,
        values,
        category_names,
        root=find_root(path, names, root, check_files),
        splits=_splits(problems, path, array, _lines(path, "splits", splits, charset)),
        lines=codes.lines,
        notes=notes,
    )


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
        text = f"holds {array.dtype}; expected whole numbers, floats or truth values"
        raise fault(path, text, kind="bad-npy")
    if array.ndim != 2 or not array.size:
        shape = " × ".join(map(str, array.shape)) or "a single number"
        raise fault(path, f"has shape {shape}; expected images × categories", kind="bad-npy")
    return array


class _Listed(NamedTuple):
    """A text file and its lines, with their numbers."""

    file: Path
    lines: list[tuple[int, str]]


def _lines(path: Path, option_name: str, value: str | None, charset: str | None) -> _Listed | None:
    """Return the file an option names, or that lies beside ``path``, and its lines."""
    if value:
        candidates = [path.parent / value, Path(value).expanduser()]
    else:
        candidates = [path.with_name(f"{path.stem}.{option_name}.txt")]
        candidates += [path.with_name("files.txt")] if option_name == "files" else []
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is not None:
        return _Listed(file, list(text_lines(file, charset)))
    if value:
        text = f"option {option_name}: there is no file {value}, neither here nor in {path.parent}"
        raise fault(path, text)
    return None


def _check_count(path: Path, array: NDArray[Any], axis: int, listed: _Listed) -> None:
    names = len(listed.lines)
    if array.shape[axis] != names:
        size = f"{array.shape[axis]} {('rows', 'columns')[axis]}"
        turned = f"; array.T would fit {listed.file.name}" if array.shape[1 - axis] == names else ""
        raise fault(path, f"has {size}, but {listed.file} has {names} names{turned}", kind="bad-length")


def _categories(path: Path, array: NDArray[Any], declared: str | None) -> list[str]:
    usual = [path.with_name(f"{path.stem}.categories.txt"), path.with_name("categories.txt")]
    chosen = declared or next((file.name for file in usual if file.is_file()), None)
    names = declared_names(chosen, path)
    if names is None:
        return [f"category {number}" for number in range(array.shape[1])]
    _check_count(path, array, 1, _Listed(Path(str(chosen)), list(enumerate(names, 1))))
    return names


def _splits(problems: Problems, path: Path, array: NDArray[Any], listed: _Listed | None) -> list[str] | None:
    if listed is None:
        return None
    _check_count(path, array, 0, listed)
    return [split_of(problems, word, line, file=listed.file) for line, word in listed.lines]


def _append_rows(codes: Codes, array: NDArray[Any]) -> None:
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
        for index in strange[:room].tolist():
            cells.flat[index] = codes.spellings[str(block.flat[index])]
        codes.flat.frombytes(cells.tobytes())


def _mark(
    codes: Codes, cells: NDArray[np.int32], left: NDArray[np.bool_], here: NDArray[np.bool_], spelled: str
) -> None:
    if here.any():
        cells[here] = codes.spellings[spelled]
        left &= ~here
