"""Readers: every source of images and labels becomes a :class:`Data`.

A source is a name (``demo``), a scheme with a place (``coco:DIR``, ``voc:DIR``, ``vg:DIR``, ``table:FILE``), or a path
whose kind is plain to see: a ``.csv`` file, or a folder in the official layout of VOC, COCO or Visual Genome.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sarb.data.dataset import Data, Dataset
from sarb.errors import ConfigError, DataError, did_you_mean, unknown_name

__all__ = ["DATASETS", "Data", "Dataset", "load", "reader_name"]

#: name -> "module:function"; a reader whose first argument has no default takes a place, ``name:PLACE``
DATASETS: dict[str, str] = {
    "demo": "sarb.data.demo:load_demo",
    "table": "sarb.data.table:load_table",
    "coco": "sarb.data.coco:load_coco",
    "voc": "sarb.data.voc:load_voc",
    "vg": "sarb.data.visual_genome:load_visual_genome",
}

#: file that marks a folder -> its reader
LAYOUTS: dict[str, str] = {
    "ImageSets/Main": "voc",
    "VOC2007/ImageSets/Main": "voc",
    "VOCdevkit/VOC2007/ImageSets/Main": "voc",
    "annotations/instances_train2014.json": "coco",
    "annotations/instances_train2017.json": "coco",
    "objects.json": "vg",
}


def load(source: str | Path, **options: Any) -> Data:
    """Read a data source.

    Args:
        source: ``"demo"``, ``"labels.csv"``, ``"coco:DIR"``, ``"voc:DIR"``, ``"vg:DIR"``, ``"table:FILE"`` or a folder.
        options: options of that reader; text is converted to the annotated type, as ``-o valid=0.1`` arrives.

    Raises:
        DataError: the source cannot be found, told apart, or read.
        ConfigError: wrong options, all reported at once.
    """
    name, place = _find(source)
    reader = _reader(name)
    parameters = inspect.signature(reader).parameters
    located = next(iter(parameters.values())).default is inspect.Parameter.empty if parameters else False
    if located and not place:
        raise DataError(f"source '{name}' needs a place: {name}:{'FILE' if name == 'table' else 'DIR'}")
    if place and not located:
        raise DataError(f"source '{name}' takes no place, got '{place}'")
    if located and not Path(place).expanduser().exists():
        raise DataError(f"{place}: no such file or folder (read as source '{name}')")
    arguments = [Path(place).expanduser()] if located else []
    return typing.cast(Data, reader(*arguments, **_convert(name, reader, options, skip=len(arguments))))


def reader_name(source: str | Path) -> str:
    """Return the name of the reader for a source, a key of ``DATASETS``."""
    return _find(source)[0]


def _find(source: str | Path) -> tuple[str, str]:
    """Return (reader name, place)."""
    text = str(source)
    if isinstance(source, str):
        scheme, colon, place = text.partition(":")
        if scheme in DATASETS and colon:
            return scheme, place
        # the built-in set wins over a folder of that name (write ./demo); a reader's bare name does not
        if text in DATASETS and (text == "demo" or not Path(text).exists()):
            return text, ""
    path = Path(text).expanduser()
    if path.is_dir():
        return _folder(path), str(path)
    if path.is_file():
        return _file(path), str(path)
    match = re.match(r"([A-Za-z_]\w+):", text)
    if match:
        raise DataError(unknown_name("data source", match[1], DATASETS))
    raise DataError(f"{text}: no such file, folder or data source.{did_you_mean(text, DATASETS)} Sources: {_sources()}")


def _file(path: Path) -> str:
    if path.suffix.lower() == ".csv":
        return "table"
    raise DataError(
        f"{path}: cannot tell what this file is; name its reader, such as table:{path}. Sources: {_sources()}"
    )


def _folder(path: Path) -> str:
    """Tell the reader of a folder by its official files, only where exactly one fits."""
    found = sorted({name for mark, name in LAYOUTS.items() if (path / mark).exists()})
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(
            f"{path}: could be {' or '.join(found)}; say which: " + " or ".join(f"{n}:{path}" for n in found)
        )
    tables = sorted(path.glob("*.csv"))
    hint = f" It holds {tables[0].name}: give {tables[0]}." if tables else ""
    raise DataError(f"{path}: not a known layout (VOC, COCO or Visual Genome).{hint} Sources: {_sources()}")


def _sources() -> str:
    return "demo, FILE.csv, table:FILE, " + ", ".join(
        f"{name}:DIR" for name in DATASETS if name not in ("demo", "table")
    )


def _reader(name: str) -> Callable[..., Any]:
    module, _, function = DATASETS[name].partition(":")
    return typing.cast(Callable[..., Any], getattr(importlib.import_module(module), function))


def _convert(name: str, reader: Callable[..., Any], options: Mapping[str, Any], skip: int) -> dict[str, Any]:
    """Check option names against the reader's signature and convert text by the annotated types."""
    hints = typing.get_type_hints(reader)
    valid = list(inspect.signature(reader).parameters)[skip:]
    values, problems = {}, []
    for option, value in options.items():
        if option not in valid:
            problems.append(unknown_name(f"option of source '{name}':", option, valid))
            continue
        try:
            values[option] = _value(value, hints.get(option, str)) if isinstance(value, str) else value
        except ValueError:
            kind = {bool: "true or false", int: "a whole number", float: "a number"}[_kinds(hints[option])[0]]
            problems.append(f"option {option} of source '{name}' must be {kind}, got '{value}'")
    if problems:
        raise ConfigError(problems)
    return values


def _kinds(annotation: Any) -> list[Any]:
    """Return the types of ``X | None`` without None."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return [annotation]


def _value(text: str, annotation: Any) -> Any:
    """Convert text to the annotated type; ``none`` is None where None is allowed."""
    kinds = _kinds(annotation)
    if text.lower() == "none" and kinds != [annotation]:
        return None
    if kinds[0] is bool:
        if text.lower() not in (yes := ("true", "yes", "on", "1")) + ("false", "no", "off", "0"):
            raise ValueError(text)
        return text.lower() in yes
    return kinds[0](text) if kinds[0] in (int, float) else Path(text) if kinds == [Path] else text
