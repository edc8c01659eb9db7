"""``load``: every source of images and labels becomes a :class:`Data`.

A source is a name (``demo``), a scheme with a place (``coco:DIR``, ``table:FILE`` …), or a path whose kind
is plain to see, see :mod:`sarb.data.detect`.
"""

from __future__ import annotations

import importlib
import inspect
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
from sarb.options import TEXT_WORDS, check, from_text, hints_of, plain_number

#: name -> "module:function"; a reader whose first argument has no default takes a place, ``name:PLACE``
DATASETS: dict[str, str] = {
    "demo": "sarb.data.demo.dataset:load_demo",
    "table": "sarb.data.readers.table:load_table",
    "list": "sarb.data.readers.list_table:load_list",
    "folder": "sarb.data.readers.folder:load_folder",
    "npy": "sarb.data.readers.npy:load_npy",
    "coco": "sarb.data.readers.coco:load_coco",
    "lvis": "sarb.data.readers.lvis:load_lvis",
    "voc": "sarb.data.readers.voc:load_voc",
    "vg": "sarb.data.readers.visual_genome:load_visual_genome",
    "open_images": "sarb.data.readers.open_images:load_open_images",
    "chexpert": "sarb.data.readers.chexpert:load_chexpert",
    "nus_wide": "sarb.data.readers.nus_wide:load_nus_wide",
    "label_studio": "sarb.data.readers.label_studio:load_label_studio",
    "cvat": "sarb.data.readers.cvat:load_cvat",
}
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
    located = _takes_place(reader)
    if located and not place:
        raise DataError(f"source '{name}' needs a place: {name}:{'FILE' if name in FILES else 'DIR'}")
    if place and not located:
        raise DataError(f"source '{name}' takes no place, got '{place}'")
    if located and not Path(place).expanduser().exists():
        near = near_path(Path(place).expanduser())
        hint = f". Did you mean '{name}:{near}'?" if near is not None else ""
        raise DataError(f"{place}: no such file or folder (read as source '{name}'){hint}")
    guessed = "" if str(source).startswith(name) else f" (what {source} was taken for)"
    own, common = _convert(f"source '{name}'{guessed}", reader, options)
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
    own = _own_hints(_reader(name))
    return [*own, *(option for option in _COMMON if option not in own)]


#: options every source has, with their types
_COMMON = {name: hint for name, hint in hints_of(finish).items() if name != "data"}


def _reader(name: str) -> Callable[..., Any]:
    module, _, function = DATASETS[name].partition(":")
    return typing.cast(Callable[..., Any], getattr(importlib.import_module(module), function))


def _takes_place(reader: Callable[..., Any]) -> bool:
    """Whether the first argument of a reader is the file or folder to read."""
    first = next(iter(inspect.signature(reader).parameters.values()), None)
    return first is not None and first.default is inspect.Parameter.empty


def _own_hints(reader: Callable[..., Any]) -> dict[str, Any]:
    """Options of a reader's own with their types."""
    return dict(list(hints_of(reader).items())[int(_takes_place(reader)) :])


def _convert(
    source: str, reader: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Convert text, check all options; return the reader's own options and the common ones."""
    own = _own_hints(reader)
    hints = {**_COMMON, **own}
    values = {
        option: from_text(value, hints.get(option, Any)) if isinstance(value, str) else plain_number(value)
        for option, value in options.items()
    }
    problems = check(
        values,
        hints,
        unknown=lambda option: unknown_name(f"option of {source}:", option, hints),
        label=lambda option: f"option {option} of {source}",
        choice_label=lambda option: f"value of option {option}:",
        words=TEXT_WORDS,
    )
    if problems:
        raise ConfigError(problems)
    given = {option: value for option, value in values.items() if option in own}
    # a reader's own option of the same name (Visual Genome's number of test images) is not the common one
    common = {
        option: value for option, value in values.items() if option not in own or option == "check_files"
    }
    return given, common
