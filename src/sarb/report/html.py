"""Small pieces of an HTML page. Everything that came from a user passes through :func:`escape` here."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from sarb.errors import ImageError
from sarb.report.style import Theme

if TYPE_CHECKING:
    from PIL.Image import Image

#: colours kept in an embedded plot; enough for smooth text, and a quarter of the size
EMBEDDED_COLOURS = 160


def escape(text: Any) -> str:
    """Make user text safe inside an element or a quoted attribute."""
    return html.escape(str(text), quote=True)


def page(title: str, body: str) -> str:
    """Put a body into the page with its style and script inside."""
    template = resources.files("sarb.report").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=escape(title), body=body)


def section(heading: str, *parts: str, ident: str = "") -> str:
    """A section with a heading; ``parts`` are ready HTML."""
    return f'<section id="{escape(ident)}"><h2>{escape(heading)}</h2>{"".join(parts)}</section>\n'


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{escape(kind)}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def card(label: str, value: str, note: str = "", main: bool = False) -> str:
    """A headline number."""
    kind = "card main" if main else "card"
    return (
        f'<div class="{kind}"><span class="label">{escape(label)}</span>'
        f'<span class="value">{escape(value)}</span><span class="note">{escape(note)}</span></div>'
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of named facts."""
    return '<dl class="facts">' + "".join(_fact(name, value) for name, value in pairs) + "</dl>"


def _fact(name: str, value: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def details(summary: str, content: str) -> str:
    """Something to unfold; ``content`` is ready HTML."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def code(text: str) -> str:
    """A block of text in fixed width."""
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], sortable: bool = False) -> str:
    """A table of ready-made cells (``<td>…</td>``); a sortable one is sorted by a click on a heading."""
    titles = "".join(
        f'<th scope="col"><button type="button">{escape(name)}</button></th>'
        if sortable
        else f'<th scope="col">{escape(name)}</th>'
        for name in header
    )
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    kind = "table sortable" if sortable else "table"
    head = f"<thead><tr>{titles}</tr></thead>"
    return f'<div class="scroll"><table class="{kind}">{head}<tbody>{body}</tbody></table></div>'


def cell(text: str, value: float | None = None, kind: str = "") -> str:
    """A table cell of plain text; ``value`` is what it is sorted by."""
    attributes = f' class="{escape(kind)}"' if kind else ""
    attributes += f' data-value="{value!r}"' if value is not None else ""
    return f"<td{attributes}>{escape(text)}</td>"


def meter(text: str, percent: float) -> str:
    """A table cell with a number above a small bar."""
    bar = f'<i style="--share:{max(0.0, percent):.1f}"></i>'
    return f'<td data-value="{percent!r}" class="meter">{bar}{escape(text)}</td>'


def plot(draw: Callable[[Theme], bytes], light: bytes, alternative: str, caption: str = "") -> str:
    """A picture in both colour schemes; ``light`` is the one already rendered for the plots folder."""
    dark = data_uri(_fewer_colours(draw("dark")), "image/png")
    bright = data_uri(_fewer_colours(light), "image/png")
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure><div class="scroll"><picture><source media="screen and (prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{bright}" alt="{escape(alternative)}"></picture></div>{note}</figure>'
    )


def photo(picture: Image, alternative: str) -> str:
    """A JPEG thumbnail."""
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "JPEG", quality=82, optimize=True)
    return (
        f'<img src="{data_uri(buffer.getvalue(), "image/jpeg")}" alt="{escape(alternative)}" loading="lazy">'
    )


def thumbnail(place: Path, side: int) -> str:
    """A small picture of an image file; of one that cannot be read, a tile with the reason."""
    from sarb.data.images import decode

    try:
        picture = decode(place, draft=side)
    except ImageError as error:
        reason = str(error).removeprefix(f"{place}: ")
        return f'<div class="broken" title="{escape(reason)}"><span>{escape(reason)}</span></div>'
    picture.thumbnail((side, side))
    return photo(picture, place.name)


def tile(picture: str, path: str, labels: Iterable[str], more: str, note: str) -> str:
    """A picture (ready HTML) of a file with its labels, what could not be listed of them, and a note."""
    chips = "".join(f"<span>{escape(label)}</span>" for label in labels) + (
        f"<em>{escape(more)}</em>" if more else ""
    )
    return (
        f'<article class="sample">{picture}<h3 title="{escape(path)}">{escape(Path(path).name)}</h3>'
        f'<p class="chips">{chips}</p><p class="note">{escape(note)}</p></article>'
    )


def strip(name: str, note: str, pictures: str) -> str:
    """A named row of pictures (ready HTML)."""
    heading = f'{escape(name)} <span class="note">{escape(note)}</span>'
    return f'<article class="strip"><h4>{heading}</h4><div>{pictures}</div></article>'


def data_uri(content: bytes, kind: str) -> str:
    """Spell bytes as an address that needs no file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _fewer_colours(png: bytes) -> bytes:
    """Re-encode a plot with a palette."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.convert("RGB").quantize(EMBEDDED_COLOURS, dither=Image.Dither.NONE).save(
            buffer, "PNG", optimize=True
        )
    return buffer.getvalue()
