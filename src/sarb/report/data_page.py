"""``data_page``: the statistics of a data set as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sarb
from sarb.data.check.stats import Stats
from sarb.data.dataset import Dataset
from sarb.labels import ABSENT, PRESENT
from sarb.report import html, plots
from sarb.report.data_text import SHARES, ends, measures, percent, remarks
from sarb.report.report import count, number
from sarb.report.style import Theme

#: a longer list of categories is shown as its two ends: in the plot, in the table
DRAWN = 60
LISTED = 1000
#: categories of the heat map
MAPPED = 60
#: side of a thumbnail in pixels, and labels listed below it
SIDE = 160
NAMED = 12
#: categories at each end that get sample images, and images per category
ENDS = 4
STRIP = 4


def data_page(stats: Stats, *, samples: int = 24, seed: int = 0, images: bool = True) -> str:
    """Return the page: numbers, plots and, with ``images``, thumbnails of seeded random images."""
    return html.render(
        "data.html",
        version=sarb.__version__,
        name=stats.name,
        summary=_summary(stats),
        cards=_cards(stats),
        measures=_measures(stats),
        remarks=remarks(stats),
        categories=_categories(stats),
        left_out=_left_out(stats, LISTED),
        histograms=_histograms(stats),
        together=_together(stats),
        samples=_samples(stats, samples, seed) if images else None,
    )


def _summary(stats: Stats) -> str:
    images = count(sum(split.images for split in stats.splits), "image", "images")
    categories = count(len(stats.categories), "category", "categories")
    known = percent(stats.main.known_share)
    return f"{images} and {categories}; {known} of the {stats.main.name} labels are known."


def _cards(stats: Stats) -> list[html.Card]:
    main = stats.main
    shown = np.count_nonzero(stats.main.present)
    counts = ", ".join(f"{split.images:,} {split.name}" for split in stats.splits)
    return [
        html.Card("Known labels", percent(main.known_share), f"of the {main.name} split", main=True),
        html.Card("Images", f"{sum(split.images for split in stats.splits):,}", counts),
        html.Card("Categories", f"{len(stats.categories):,}", f"{shown:,} with a known positive"),
        html.Card("Positives", number(main.mean_positives, 2), f"known, per {main.name} image"),
        html.Card("All positives", number(main.estimated_positives, 2), f"estimate, per {main.name} image"),
    ]


def _measures(stats: Stats) -> html.Table:
    rows = [[html.Cell(text) for text in row] for row in measures(stats)]
    return html.Table(["", *(split.name for split in stats.splits)], rows)


def _categories(stats: Stats) -> html.PlottedTable:
    """Plot and table of the categories."""
    main = stats.main
    bars = [
        (stats.categories[index], int(main.present[index]), int(main.absent[index]), int(main.unknown[index]))
        for index in ends(stats, DRAWN)
    ]
    caption = f"Labels of the {main.name} split, most frequent category first, "
    caption += f"with the number of images that show it.{_left_out(stats, DRAWN)}"
    header = ["category"]
    for split in stats.splits:
        header += [f"{split.name} {name}" for name in ("present", "absent", "unknown", "known", "rate")]
    rows = [_category_cells(stats, index) for index in ends(stats, LISTED)]
    table = html.Table(header, rows, sortable=True, tall=True)
    return html.PlottedTable(table, _plot(lambda theme: plots.label_counts(bars, theme=theme), caption))


def _category_cells(stats: Stats, index: int) -> list[html.Cell]:
    cells = [html.Cell(stats.categories[index])]
    for split in stats.splits:
        counts = [int(table[index]) for table in (split.present, split.absent, split.unknown)]
        cells += [html.Cell(f"{number_of:,}", number_of) for number_of in counts]
        for part, whole in ((counts[0] + counts[1], split.images), (counts[0], counts[0] + counts[1])):
            share = part / whole if whole else None
            cells.append(html.Cell(percent(share), share))
    return cells


def _histograms(stats: Stats) -> list[html.Plot]:
    """Histograms over images: share of known labels, and number of known positives."""
    shares = {split.name: split.share_histogram.tolist() for split in stats.splits}
    caption = "Share of each image's labels that are known; 100 % counts in the last bar."
    known = _plot(lambda theme: plots.image_histogram(shares, SHARES, "known labels", theme=theme), caption)
    labels, positives = plots.fewer_bars({split.name: split.by_positives.tolist() for split in stats.splits})
    caption = "Known positives per image. There may be more among the unknown labels."
    shown = _plot(
        lambda theme: plots.image_histogram(positives, labels, "known positives", theme=theme), caption
    )
    return [known, shown]


def _together(stats: Stats) -> html.PlottedTable | None:
    """Heat map and the most certain pairs; None if there are no pairs."""
    if not stats.pairs:
        return None
    together = stats.together
    names = [stats.categories[index] for index in stats.together.order[:MAPPED]]
    graph = together.graph(MAPPED)
    caption = (
        f"How often the column's category is present in {together.split} images that show the row's. "
        "Counted on known labels only; pairs never seen together and unknown pairs look the same. Categories "
        "that appear together are placed next to each other."
    )
    if len(names) < len(stats.categories):
        caption += f" The {len(names)} most frequent of {len(stats.categories):,} categories are shown."
    rows = [
        [
            html.Cell(f"{pair.given} → {pair.other}"),
            html.Cell(percent(pair.probability), pair.probability),
            html.Cell(f"{pair.both:,}", pair.both),
            html.Cell(f"{pair.support:,}", pair.support),
            html.Cell(percent(pair.overall), pair.overall),
        ]
        for pair in stats.pairs
    ]
    header = ["given → also present", "P", "both present", "out of", "overall"]
    style = html.matrix_style(len(names))
    picture = _plot(lambda theme: plots.cooccurrence(graph, names, theme=theme), caption, style)
    return html.PlottedTable(html.Table(header, rows, sortable=True, tall=True), picture)


@dataclass(frozen=True)
class Tile:
    """An image with its labels, how many more it has, and a note."""

    photo: html.Photo
    path: str
    labels: Sequence[str]
    more: str
    note: str

    @property
    def name(self) -> str:
        """The file name without its folder."""
        return Path(self.path).name


@dataclass(frozen=True)
class Strip:
    """A category with a few images that show it."""

    category: str
    note: str
    photos: Sequence[html.Photo]


@dataclass(frozen=True)
class Samples:
    """Random images of all splits, and one strip per category from the main split."""

    drawn: str
    tiles: Sequence[Tile]
    split: str
    strips: Sequence[Strip]


def _samples(stats: Stats, samples: int, seed: int) -> Samples | None:
    """Seeded random images, then images of the most and the least frequent categories."""
    if stats.data is None or not stats.data.splits:
        return None
    random = np.random.default_rng(seed)
    splits = stats.data.splits
    first = np.cumsum([0, *map(len, splits.values())])
    tiles = []
    for drawn in np.sort(random.choice(first[-1], min(max(0, samples), first[-1]), replace=False)):
        index = int(np.searchsorted(first, drawn, side="right")) - 1
        name = list(splits)[index]
        tiles.append(_tile(name, splits[name], int(drawn - first[index])))
    drawn_images = count(len(tiles), "image", "images")
    text = f"{drawn_images} drawn at random (seed {seed}), with their known positive labels."
    main = stats.main.name
    strips = [_strip(stats, splits[main], category, random) for category in _frequent(stats)]
    return Samples(text, tiles, main, strips)


def _tile(split: str, dataset: Dataset, row: int) -> Tile:
    """One image with its known labels."""
    values = dataset.labels.values[row]
    path = dataset.labels.paths[row]
    present = [dataset.categories[index] for index in np.flatnonzero(values == PRESENT)]
    more = "" if present else "no known positives"
    if len(present) > NAMED:
        more = f"and {len(present) - NAMED} more"
    note = f"{split} · {np.count_nonzero(values == ABSENT):,} known absent"
    return Tile(html.thumbnail(dataset.root / path, SIDE), path, present[:NAMED], more, note)


def _strip(stats: Stats, dataset: Dataset, category: int, random: np.random.Generator) -> Strip:
    rows = np.flatnonzero(dataset.labels.values[:, category] == PRESENT)
    chosen = np.sort(random.choice(rows, min(STRIP, len(rows)), replace=False))
    photos = [html.thumbnail(dataset.root / dataset.labels.paths[row], SIDE) for row in chosen]
    return Strip(stats.categories[category], count(len(rows), "known positive", "known positives"), photos)


def _frequent(stats: Stats) -> list[int]:
    """The most and the least frequent categories that have a known positive."""
    shown = [index for index in stats.together.order.tolist() if stats.main.present[index]]
    return shown if len(shown) <= 2 * ENDS else [*shown[:ENDS], *shown[-ENDS:]]


def _plot(draw: Callable[[Theme], bytes], caption: str, style: str = "") -> html.Plot:
    return html.plot(draw, draw("light"), caption, caption, style)


def _left_out(stats: Stats, limit: int) -> str:
    """A sentence about categories that are not shown."""
    if len(stats.categories) <= limit:
        return ""
    left_out = len(stats.categories) - 2 * (limit // 2)
    return f" The {limit // 2} most and the {limit // 2} least frequent are shown, {left_out:,} are left out."
