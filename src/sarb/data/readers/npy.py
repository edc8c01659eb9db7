"""A NumPy array of codes (N, C), with the names of its rows and columns in text files next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sarb.data.assemble import assemble, declared_names, find_root
from sarb.data.check.problems import Problems, fault
from sarb.data.dataset import Data
from sarb.data.parse.codes import Codes
from sarb.data.parse.rows import split_of
from sarb.data.parse.text import text_lines
from sarb.errors import data_option
from sarb.files import open_regular

#: rows to convert at once
BLOCK = 50_000
#: distinct invalid numbers to keep; the others are only counted
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
    """Read an N×C array of codes: integers, floats with NaN for blank, or booleans.

    Lines in messages are rows of the array, counted from 1.

    Args:
        path: ``NAME.npy``, an array of numbers or booleans.
        encoding: what the numbers mean: ``signed`` 1/-1/0, ``binary`` 1/0/NaN, ``minus_one_unknown`` 1/0/-1.
        files: text file with one image name per row (default: ``NAME.files.txt`` or ``files.txt`` next to
            the array).
        categories: ``a,b,c`` or a file with one name per column (default: ``NAME.categories.txt`` or
            ``categories.txt`` next to the array, else category 0, category 1, …).
        splits: text file with train, test or valid per row (default: ``NAME.splits.txt`` if it exists).
        root: folder of the images (default: the folder of the array, or its ``images/`` if they are only
            there).
        charset: character set of the text files, if not UTF-8, for example ``latin-1``.
        check_files: look for the image files to find their folder.

    Raises:
        DataError: all problems, with row and column; names that do not match the shape of the array.
    """
    problems = Problems(path)
    array = _open(path)
    listed = listed_lines(path, "files", files, charset)
    if listed is None:
        names_file = f"{path.stem}.files.txt or files.txt next to it"
        text = f"the image names are missing; write all {len(array)}, one per line, to {names_file}, or add"
        raise fault(path, f"{text} {data_option('files', 'FILE')}", kind="missing-names")
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
        splits=_splits(problems, path, array, listed_lines(path, "splits", splits, charset)),
        lines=codes.lines,
        notes=notes,
    )


def _open(path: Path) -> NDArray[Any]:
    """Memory-map the array; this fails if the file is shorter than its header says."""
    try:
        open_regular(path).close()  # NumPy would wait for the writer of a pipe
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy raises many types for a damaged header
        reason = " ".join(str(error).split())[:200]
        if "ickle" in reason or "Python objects" in reason:
            reason = "it contains Python objects, which can run code; save array.astype(numpy.int8) instead"
        raise fault(path, f"not a readable .npy file ({reason})", kind="bad-npy") from None
    if not isinstance(array, np.ndarray):
        raise fault(path, "is an archive of arrays (.npz); save the array of labels as .npy", kind="bad-npy")
    if array.dtype.kind not in "iufb":
        text = f"contains {array.dtype}; expected integers, floats or booleans"
        raise fault(path, text, kind="bad-npy")
    if array.ndim != 2 or not array.size:
        raise fault(path, f"has shape {array.shape}; expected (images, categories)", kind="bad-npy")
    return array


class _Listed(NamedTuple):
    """A text file and its numbered lines."""

    file: Path
    lines: list[tuple[int, str]]


def listed_lines(path: Path, option_name: str, value: str | None, charset: str | None) -> _Listed | None:
    """Return the text file that an option names, or the default file next to ``path`` if it exists."""
    if value:
        candidates = [path.parent / value, Path(value).expanduser()]
    else:
        candidates = [path.with_name(f"{path.stem}.{option_name}.txt")]
        candidates += [path.with_name("files.txt")] if option_name == "files" else []
    file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if file is not None:
        return _Listed(file, list(text_lines(file, charset)))
    if value:
        text = f"option {option_name}: no such file {value}, neither here nor in {path.parent}"
        raise fault(path, text)
    return None


def _check_count(path: Path, array: NDArray[Any], axis: int, listed: _Listed) -> None:
    names = len(listed.lines)
    if array.shape[axis] != names:
        size = f"{array.shape[axis]} {('rows', 'columns')[axis]}"
        turned = f"; array.T would match {listed.file.name}" if array.shape[1 - axis] == names else ""
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
    """Append all rows in blocks: compare arrays of numbers instead of spelling out every cell."""
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
