"""Render HTML pages from ``templates/``, which escape every value, and describe what templates are given."""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from PIL import Image

from sarb.data.images import decode
from sarb.errors import ImageError
from sarb.report.report import number
from sarb.report.style import Theme

#: colours of an embedded plot: enough for smooth text at a quarter of the size
EMBEDDED_COLOURS = 160
#: a matrix of more categories than this needs more room
LARGE_MATRIX = 40


def render(template: str, **values: Any) -> str:
    """Fill in a template; raise an error if a value it uses is missing."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("sarb.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@dataclass(frozen=True)
class Card:
    """A headline number."""

    label: str
    value: str
    note: str = ""
    main: bool = False


@dataclass(frozen=True)
class Cell:
    """A table cell.

    Attributes:
        text: what is shown.
        value: the number to sort by.
        style: a CSS class.
        bar: percent, drawn as a small bar under the text.
        link: the address the text links to.
    """

    text: str
    value: float | None = None
    style: str = ""
    bar: float | None = None
    link: str = ""


def number_cell(value: float | None, style: str = "") -> Cell:
    """A cell that shows a metric to one decimal and sorts by the exact value; ``n/a`` has no value."""
    text = number(value)
    return Cell(text, None if text == "n/a" else value, style)


def meter_cell(percent: float) -> Cell:
    """A cell that shows a percentage above a small bar."""
    return Cell(number(percent), percent, "meter", bar=max(0.0, percent))


@dataclass(frozen=True)
class Table:
    """A table; ``sortable`` sorts by a click on a heading, ``tall`` scrolls in its own box."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = False
    tall: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot in both colour schemes, as data URIs, with its alt text, caption and CSS class."""

    light: str
    dark: str
    alternative: str
    caption: str = ""
    style: str = ""


def plot(
    draw: Callable[[Theme], bytes], light: bytes, alternative: str, caption: str = "", style: str = ""
) -> Plot:
    """Embed a plot in both colour schemes; ``light`` is already rendered, for the plots folder."""
    return Plot(_embedded_plot(light), _embedded_plot(draw("dark")), alternative, caption, style)


@dataclass(frozen=True)
class PlottedTable:
    """A table and a plot of it."""

    table: Table
    plot: Plot


def matrix_style(categories: int) -> str:
    """CSS class of a matrix: a large one is drawn wider on a phone."""
    return "matrix large" if categories > LARGE_MATRIX else "matrix"


@dataclass(frozen=True)
class Photo:
    """A thumbnail as a data URI with its alt text, or the reason why the image cannot be read."""

    source: str
    alternative: str
    fault: str = ""


def photo(picture: Image.Image, alternative: str) -> Photo:
    """Embed a picture as a JPEG."""
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "JPEG", quality=82, optimize=True)
    return Photo(data_uri(buffer.getvalue(), "image/jpeg"), alternative)


def thumbnail(path: Path, side: int) -> Photo:
    """Embed an image file in at most ``side`` × ``side`` pixels."""
    try:
        picture = decode(path, draft=side)
    except ImageError as error:
        return Photo("", path.name, fault=str(error).removeprefix(f"{path}: "))
    picture.thumbnail((side, side))
    return photo(picture, path.name)


def data_uri(content: bytes, media_type: str) -> str:
    """Encode bytes as a data URI."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def _embedded_plot(png: bytes) -> str:
    """Re-encode a plot with a palette: a quarter of the size."""
    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        palette = picture.convert("RGB").quantize(EMBEDDED_COLOURS, dither=Image.Dither.NONE)
        palette.save(buffer, "PNG", optimize=True)
    return data_uri(buffer.getvalue(), "image/png")
