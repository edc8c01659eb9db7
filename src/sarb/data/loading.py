"""``load``: every source of images and labels becomes a :class:`Data`.

A source is a name (``demo``), a scheme with a place (``coco:DIR``, ``table:FILE`` …), or a path whose kind
is plain to see, see :mod:`sarb.data.detect`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sarb.data.assemble import finish
from sarb.data.check.problems import all_at_once
from sarb.data.dataset import Data
from sarb.data.detect import detect
from sarb.errors import ConfigError, DataError, unknown_name
from sarb.files import near_path
from sarb.registry import DATASETS
from sarb.registry import find as find_target

__all__ = ["DATASETS", "find", "load", "option_names", "reader_name"]

#: readers of one file; the others take a folder, some either
FILES = ("table", "list", "npy", "label_studio", "cvat")


def load(source: str | Path, **options: Any) -> Data:
    """Read a data source.

    Args:
        source: ``"demo"``, ``"labels.csv"``, ``"coco:DIR"``, ``"voc:DIR"``, ``"vg:DIR"``, … or a folder.
        options: options of that reader, and for every reader ``test``, ``valid``, ``split_seed`` and
            ``check_files`` (see :func:`sarb.data.assemble.finish`); text is converted to the annotated type,
            as ``-o valid=0.1`` arrives.

    Raises:
        DataError: the source cannot be found, told apart, or read.
        ConfigError: wrong options, all reported at once.
    """
    name, place = find(source)
    reader = _reader(name)
    parameters = list(inspect.signature(reader).parameters.values())
    located = bool(parameters) and parameters[0].default is inspect.Parameter.empty
    if located and not place:
        raise DataError(f"source '{name}' needs a place: {name}:{'FILE' if name in FILES else 'DIR'}")
    if place and not located:
        raise DataError(f"source '{name}' takes no place, got '{place}'")
    if located and not Path(place).expanduser().exists():
        near = near_path(Path(place).expanduser())
        hint = f". Did you mean '{name}:{near}'?" if near is not None else ""
        raise DataError(f"{place}: no such file or folder (read as source '{name}'){hint}")
    guessed = "" if str(source).startswith(name) else f" (what {source} was taken for)"
    own, common = _convert(f"source '{name}'{guessed}", reader, options, skip=int(located))
    where = [Path(place).expanduser()] if located else []

    def read() -> Data:
        data = reader(*where, **own)
        return finish(data, **common) if isinstance(data, Data) else data

    return all_at_once(read)


def reader_name(source: str | Path) -> str:
    """Return the name of the reader for a source, a key of ``DATASETS``."""
    return find(source)[0]


def find(source: str | Path) -> tuple[str, str]:
    """Return (reader name, place)."""
    text = str(source)
    if isinstance(source, str):
        scheme, colon, place = text.partition(":")
        if scheme in DATASETS and colon:
            return scheme, place
        # the built-in set wins over a folder of that name (write ./demo); a reader's bare name does not
        if text in DATASETS and (text == "demo" or not Path(text).exists()):
            return text, ""
    return detect(text, DATASETS)


def option_names(name: str) -> list[str]:
    """Return the options of a reader, its own first."""
    parameters = inspect.signature(_reader(name)).parameters.values()
    own = [
        item.name for item in parameters if item.kind is item.KEYWORD_ONLY or item.default is not item.empty
    ]
    return [*own, *(option for option in _COMMON if option not in own)]


#: options every source has
_COMMON = [name for name in inspect.signature(finish).parameters if name != "data"]


def _reader(name: str) -> Callable[..., Any]:
    return typing.cast(Callable[..., Any], find_target("dataset", DATASETS, name))


def _convert(
    source: str, reader: Callable[..., Any], options: Mapping[str, Any], skip: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check option names, convert text by the annotated types; return the reader's own options and the
    common ones.
    """
    signature = list(inspect.signature(reader).parameters)
    own = signature[skip:]
    hints = {**typing.get_type_hints(finish), **typing.get_type_hints(reader)}
    values = {}
    problems = []
    for option, value in options.items():
        if option not in own and (option not in _COMMON or option in signature):
            problems.append(unknown_name(f"option of {source}:", option, {*own, *_COMMON}))
            continue
        try:
            values[option] = _value(value, hints.get(option, str)) if isinstance(value, str) else value
        except ValueError:
            kind = {bool: "true or false", int: "a whole number", float: "a number"}[_kinds(hints[option])[0]]
            problems.append(f"option {option} of {source} must be {kind}, got '{value}'")
    if problems:
        raise ConfigError(problems)
    given = {option: value for option, value in values.items() if option in own}
    # a reader's own option of the same name (Visual Genome's number of test images) is not the common one
    shared = {option: value for option, value in values.items() if option in _COMMON}
    return given, {
        option: value for option, value in shared.items() if option not in own or option == "check_files"
    }


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
