"""``load``: every source of images and labels becomes a :class:`Data`.

A source is a name (``demo``), a reader and a path (``coco:DIR``, ``table:FILE`` …), or a path alone if its
format can be detected, see :mod:`sarb.data.detect`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sarb.data.assemble import finish
from sarb.data.check.problems import all_at_once
from sarb.data.dataset import Data, Origin
from sarb.data.detect import detect, refuse_stream
from sarb.errors import ConfigError, DataError, unknown_name
from sarb.files import near_path
from sarb.options import TEXT_WORDS, check, from_text, hints_of, plain_number
from sarb.registry import DATASETS
from sarb.registry import find as find_target

__all__ = ["DATASETS", "find", "load", "option_names", "reader_name"]

#: readers of a single file; the others read a folder, and some read both
FILES = ("table", "list", "npy", "label_studio", "cvat")


def load(source: str | Path, **options: Any) -> Data:
    """Read a data source.

    Args:
        source: ``"demo"``, ``"labels.csv"``, ``"coco:DIR"``, ``"voc:DIR"``, ``"vg:DIR"``, … or a folder.
        options: options of that reader, and for every reader ``test``, ``valid``, ``split_seed`` and
            ``check_files`` (see :func:`sarb.data.assemble.finish`); text, as from ``-o valid=0.1``, is
            converted to the annotated type.

    Raises:
        DataError: the source cannot be found, recognised or read.
        ConfigError: wrong options, all reported at once.
    """
    name, path = find(source)
    reader = _reader(name)
    needs_path = _needs_path(reader)
    if needs_path and not path:
        raise DataError(f"source '{name}' needs a path: {name}:{'FILE' if name in FILES else 'DIR'}")
    if path and not needs_path:
        raise DataError(f"source '{name}' takes no path, got '{path}'")
    if needs_path and not Path(path).expanduser().exists():
        near = near_path(Path(path).expanduser())
        hint = f". Did you mean '{name}:{near}'?" if near is not None else ""
        raise DataError(f"{path}: no such file or folder (read as source '{name}'){hint}")
    if needs_path:
        refuse_stream(Path(path).expanduser())
    detected = "" if str(source).startswith(name) else f" (detected from {source})"
    own, common = _convert(f"source '{name}'{detected}", reader, options)
    paths = [Path(path).expanduser()] if needs_path else []

    def read() -> Data:
        data = reader(*paths, **own)
        return _with_origin(finish(data, **common), name, paths, options) if isinstance(data, Data) else data

    return all_at_once(read)


def _with_origin(data: Data, reader: str, paths: list[Path], options: Mapping[str, Any]) -> Data:
    """Note how a source was read, and the state of its label files."""
    files = {part.source for part in data.splits.values() if part.source is not None}
    stamps = {file: stamp for file in files if (stamp := Origin.stamp(file)) is not None}
    return replace(data, origin=Origin(reader, paths[0] if paths else None, dict(options), stamps))


def reader_name(source: str | Path) -> str:
    """Return the name of the reader for a source, a key of ``DATASETS``."""
    return find(source)[0]


def find(source: str | Path) -> tuple[str, str]:
    """Return (reader name, path)."""
    text = str(source)
    if isinstance(source, str):
        reader, colon, path = text.partition(":")
        if reader in DATASETS and colon:
            return reader, path
        # "demo" means the built-in data even if there is a folder of that name (write ./demo for the
        # folder); for any other reader's name an existing folder comes first
        if text in DATASETS and (text == "demo" or not Path(text).exists()):
            return text, ""
    return detect(text, DATASETS)


def option_names(name: str) -> list[str]:
    """Return the names of a reader's options, followed by those that every source has."""
    own = _own_hints(_reader(name))
    return [*own, *(option for option in _COMMON if option not in own)]


#: options every source has, with their types
_COMMON = {name: hint for name, hint in hints_of(finish).items() if name != "data"}


def _reader(name: str) -> Callable[..., Any]:
    return typing.cast(Callable[..., Any], find_target("dataset", DATASETS, name))


def _needs_path(reader: Callable[..., Any]) -> bool:
    """Return whether the first argument of a reader is the file or folder to read."""
    first = next(iter(inspect.signature(reader).parameters.values()), None)
    return first is not None and first.default is inspect.Parameter.empty


def _own_hints(reader: Callable[..., Any]) -> dict[str, Any]:
    """Return the options in a reader's own signature, with their types."""
    return dict(list(hints_of(reader).items())[int(_needs_path(reader)) :])


def _unknown_option(source: str, option: str, hints: Mapping[str, Any]) -> str:
    """Return the message for an option that this reader does not have; it may be that of another reader."""
    owners = [name for name in DATASETS if option in _own_hints(_reader(name))]
    if not owners:
        return unknown_name(f"option of {source}:", option, hints)
    written = "a table that sarb wrote needs no option of the labels it was made from"
    return f"{source} has no option '{option}', which is for {' and '.join(owners)}; remove it ({written})"


def _convert(
    source: str, reader: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Convert text and check all options; return those of the reader and those that every source has."""
    own = _own_hints(reader)
    hints = {**_COMMON, **own}
    values = {
        option: from_text(value, hints.get(option, Any)) if isinstance(value, str) else plain_number(value)
        for option, value in options.items()
    }
    problems = check(
        values,
        hints,
        unknown=lambda option: _unknown_option(source, option, hints),
        label=lambda option: f"option {option} of {source}",
        choice_label=lambda option: f"value of option {option}:",
        words=TEXT_WORDS,
    )
    if problems:
        raise ConfigError(problems)
    given = {option: value for option, value in values.items() if option in own}
    # an option of the reader hides a common one of the same name, such as ``test`` of Visual Genome
    common = {
        option: value for option, value in values.items() if option not in own or option == "check_files"
    }
    return given, common
