"""One look for all plots: colours, fonts and sizes in a light and a dark theme, without pyplot."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sarb.errors import ConfigError, unknown_name
from sarb.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme = Literal["light", "dark"]

#: inches; at this width 9 pt text is easy to read on the page
WIDTH = 9.0
DOTS_PER_INCH = 144


@dataclass(frozen=True)
class Colours:
    """The colours of one theme; ``series`` can be told apart with any colour vision, in this order."""

    background: str
    text: str
    muted: str
    grid: str
    series: tuple[str, ...]
    good: str
    bad: str
    missed: str
    unknown: str
    heat: tuple[str, ...]


THEMES: dict[str, Colours] = {
    "light": Colours(
        background="#ffffff",
        text="#1c2330",
        muted="#667085",
        grid="#e4e7ec",
        series=("#2f6fdf", "#e07a1f", "#0f9488", "#9b51d0", "#c63d6b", "#8a6d00", "#4b5565"),
        good="#1a8f4c",
        bad="#cf3434",
        missed="#b97400",
        unknown="#7a8496",
        heat=("#f5f7fb", "#b9d1f5", "#5e97e8", "#2259b8", "#0c2a63"),
    ),
    "dark": Colours(
        background="#181c24",
        text="#e7eaf0",
        muted="#98a2b3",
        grid="#2b313d",
        series=("#6ea3ff", "#f2a35e", "#43c6b7", "#c08bf0", "#f0779f", "#d9b64a", "#a9b3c4"),
        good="#4cc982",
        bad="#ff7b72",
        missed="#f0b24a",
        unknown="#98a2b3",
        heat=("#1b2029", "#1f3c6e", "#2f6fdf", "#86b4ff", "#e6f0ff"),
    ),
}


@contextmanager
def style(theme: Theme = "light") -> Iterator[Colours]:
    """Set the style while a plot is drawn **and** rendered, then restore matplotlib's settings."""
    if theme not in THEMES:
        raise ConfigError([unknown_name("theme", theme, THEMES)])
    import matplotlib

    colours = THEMES[theme]
    with matplotlib.rc_context(_settings(colours)), warnings.catch_warnings():
        # Names in a script the font lacks are drawn as boxes; a warning would not help the user.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield colours


def _settings(colours: Colours) -> Any:
    """Matplotlib settings of a theme (typed Any: matplotlib's own type lists 300 names per version)."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "text.parse_math": False,  # a category may be called "US$ or CA$"
        "text.color": colours.text,
        "figure.facecolor": colours.background,
        "savefig.facecolor": colours.background,
        "savefig.dpi": DOTS_PER_INCH,
        "axes.facecolor": colours.background,
        "axes.edgecolor": colours.grid,
        "axes.labelcolor": colours.muted,
        "axes.titlecolor": colours.text,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": colours.grid,
        "grid.linewidth": 0.8,
        "xtick.color": colours.muted,
        "ytick.color": colours.muted,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "lines.linewidth": 1.8,
        "legend.frameon": False,
        "legend.fontsize": 8,
    }


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure with its own Agg canvas."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Figure) -> bytes:
    """Render a figure; call it inside :func:`style`, because ticks are created while drawing."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def write_png(path: str | Path, picture: bytes) -> Path:
    """Write a rendered plot atomically."""
    with atomic_write(path, "wb") as file:
        file.write(picture)
    return Path(path)


def say(axes: Axes, sentence: str, colours: Colours) -> None:
    """Show a sentence instead of an empty plot."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, sentence, ha="center", va="center", color=colours.muted, transform=axes.transAxes)


def short(name: str, length: int = 24) -> str:
    """Cut a long name: ``'a very long name'`` -> ``'a very lo…'``; line breaks and tabs become spaces."""
    name = " ".join(name.split()) or name
    return name if len(name) <= length else name[: length - 1].rstrip() + "…"
