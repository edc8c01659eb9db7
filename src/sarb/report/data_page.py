"""How the statistics of a data set look: as text for the console, and as one self-contained html."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

import numpy as np

import sarb
from sarb.data.check.stats import BINS, SplitStats, Stats
from sarb.data.dataset import Dataset
from sarb.labels import ABSENT, PRESENT
from sarb.report import html, plots
from sarb.report.report import number
from sarb.report.style import Theme, short

#: characters of a line of text
WIDE = 80
#: a longer list is shown as its two ends: in the console, in the picture, in the table of the page
PRINTED = 24
DRAWN = 60
LISTED = 1000
#: categories of the heat map, and what the bins of an image's known share are called
MAPPED = 60
SHARES = [f"{10 * place}–{10 * place + 10} %" for place in range(BINS)]
#: side of a thumbnail in pixels; labels named below it; categories at each end with pictures, and how many
#: pictures
SIDE = 160
NAMED = 12
ENDS = 4
STRIP = 4


def render(stats: Stats) -> str:
    """Lay the statistics out as plain text of 80 columns."""
    names = [split.name for split in stats.splits]
    others = [split for split in stats.splits if split is not stats.main]
    binned = zip(SHARES, *(split.share_histogram.tolist() for split in stats.splits), strict=True)
    shares = [[label, *(f"{count:,}" for count in counts)] for label, *counts in binned if any(counts)]
    header = [f"category ({stats.main.name})", "present", "absent", "known", "rate"]
    pairs = [
        [
            f"{short(pair.given, 22)} → {short(pair.other, 22)}",
            _percent(pair.probability),
            f"{pair.both:,} of {pair.support:,}",
            _percent(pair.overall),
        ]
        for pair in stats.pairs[:8]
    ]
    blocks = [
        [_plain(f"{stats.name}: {_count(len(stats.categories), 'category', 'categories')}")],
        _columns(["", *names], _measures(stats)),
        _columns(["images by known share", *names], shares),
        _columns([*header, *(f"in {split.name}" for split in others)], _category_rows(stats, others)),
        _columns([f"appear together ({stats.main.name})", "P", "images", "overall"], pairs),
        [textwrap.fill(f"- {_plain(remark)}", WIDE, subsequent_indent="  ") for remark in _remarks(stats)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, none without rows; its first column gives way when the numbers need the room."""
    from rich.cells import cell_len, set_cell_size

    table = [[_plain(row[0]), *row[1:]] for row in (header, *rows)]
    widths = [max(len(row[place]) for row in table if place < len(row)) for place in range(1, len(header))]
    room = WIDE - sum(widths) - 2 * len(widths)
    first = min(room, max(cell_len(row[0]) for row in table))
    lines = []
    for name, *numbers in table:
        fitted = name if cell_len(name) <= first else set_cell_size(name, first - 1).rstrip() + "…"
        cells = [text.rjust(width) for text, width in zip(numbers, widths, strict=False)]
        lines.append("  ".join([set_cell_size(fitted, first), *cells]).rstrip())
    return lines if rows else []


def _measures(stats: Stats) -> list[list[str]]:
    """One row per measure, one column per split."""
    measures: list[tuple[str, Callable[[SplitStats], str]]] = [
        ("images", lambda split: f"{split.images:,}"),
        ("known labels", lambda split: _percent(split.known_share)),
        ("known positives per image, mean", lambda split: number(split.mean_positives, 2)),
        ("known positives per image, median", lambda split: number(split.median_positives)),
        (
            "known positives per image, most",
            lambda split: f"{split.max_positives:,}" if split.images else "n/a",
        ),
        ("all positives per image, estimate", lambda split: number(split.estimated_positives, 2)),
        ("images without any known label", lambda split: f"{split.without_known:,}"),
        ("images without a known positive", lambda split: f"{split.without_positive:,}"),
    ]
    return [[label, *(spell(split) for split in stats.splits)] for label, spell in measures]


def _category_rows(stats: Stats, others: Sequence[SplitStats]) -> list[list[str]]:
    """The most and the least frequent categories, and between them how many are left out."""
    main = stats.main
    rows = []
    for index in _ends(stats, PRINTED):
        present = int(main.present[index])
        absent = int(main.absent[index])
        known = (present + absent) / main.images if main.images else None
        counts = [f"{present:,}", f"{absent:,}", _percent(known), _percent(main.rate[index])]
        rows.append([stats.categories[index], *counts, *(f"{split.present[index]:,}" for split in others)])
    if len(rows) < len(stats.categories):
        rows.insert(PRINTED // 2, [f"… {len(stats.categories) - len(rows):,} more …"])
    return rows


def _ends(stats: Stats, limit: int) -> list[int]:
    """Categories by frequency; of more than ``limit`` (an even number) the two ends."""
    order: list[int] = np.argsort(-stats.main.present, kind="stable").tolist()
    return order if len(order) <= limit else [*order[: limit // 2], *order[-limit // 2 :]]


def _remarks(stats: Stats) -> list[str]:
    """What a person should know before training, one sentence each."""
    remarks = []
    for split in stats.splits:
        if not split.images:
            remarks.append(f"{split.name} holds no image")
        elif not split.known.any():
            remarks.append(f"{split.name} holds no known label at all")
        else:
            for kind, counts in (("positive", split.present), ("negative", split.absent)):
                names = stats.missing(split, counts)
                more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
                if names:
                    said = ", ".join(short(name, 30) for name in names[:8])
                    remarks.append(f"{split.name}: no known {kind} of {said}{more}")
    if (counted := len(stats.together.order)) < (total := len(stats.categories)):
        remarks.append(f"pairs were counted among the {counted:,} most frequent of {total:,} categories")
    if any(split.known_share not in (1.0, None) for split in stats.splits):
        remarks.append(
            "the estimate assumes that labels are known or not by chance: the sum over categories of "
            "present / known; a category without a known label adds nothing"
        )
    return remarks


def data_page(stats: Stats, *, samples: int = 24, seed: int = 0, images: bool = True) -> str:
    """Return the page: numbers, pictures of the counts, and thumbnails of seeded random images unless left
    out.
    """
    parts = [
        ("splits", "Split by split", _splits_section(stats)),
        ("categories", "Category by category", _categories_section(stats)),
        ("images", "Image by image", _images_section(stats)),
        ("together", "What appears together", _together_section(stats)),
        ("samples", "Sample images", _samples_section(stats, samples, seed, images)),
    ]
    links = "".join(f'<a href="#{ident}">{html.escape(heading)}</a>' for ident, heading, _ in parts)
    body = [_headline(stats), f'<nav aria-label="Sections">{links}</nav>', _cards(stats)]
    body += [html.section(heading, content, ident=ident) for ident, heading, content in parts]
    body.append(f"<footer>Written by sarb {html.escape(sarb.__version__)}.</footer>")
    return html.page(f"{stats.name} · data", "\n".join(body))


def _headline(stats: Stats) -> str:
    images = _count(sum(split.images for split in stats.splits), "image", "images")
    text = f"{images} and {_count(len(stats.categories), 'category', 'categories')}; of the {stats.main.name} labels "
    text += f"{_percent(stats.main.known_share)} are known."
    heading = f'<p class="eyebrow">data set</p><h1>{html.escape(stats.name)}</h1>'
    return f"<header>{heading}{html.paragraph(text, 'lead')}</header>"


def _cards(stats: Stats) -> str:
    main = stats.main
    shown = np.count_nonzero(stats.main.present)
    counts = ", ".join(f"{split.images:,} {split.name}" for split in stats.splits)
    cards = [
        html.card("Known labels", _percent(main.known_share), f"of the {main.name} split", main=True),
        html.card("Images", f"{sum(split.images for split in stats.splits):,}", counts),
        html.card("Categories", f"{len(stats.categories):,}", f"{shown:,} with a known positive"),
        html.card("Positives", number(main.mean_positives, 2), f"known, per {main.name} image"),
        html.card("All positives", number(main.estimated_positives, 2), f"estimate, per {main.name} image"),
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


def _splits_section(stats: Stats) -> str:
    rows = [[html.cell(text) for text in row] for row in _measures(stats)]
    remarks = "".join(f"<li>{html.escape(remark)}</li>" for remark in _remarks(stats))
    return html.table(["", *(split.name for split in stats.splits)], rows) + (
        f"<ul>{remarks}</ul>" if remarks else ""
    )


def _categories_section(stats: Stats) -> str:
    """Picture and table of the categories."""
    main = stats.main
    unknown = stats.main.unknown
    bars = [
        (stats.categories[index], int(main.present[index]), int(main.absent[index]), int(unknown[index]))
        for index in _ends(stats, DRAWN)
    ]
    caption = f"Labels of the {main.name} split, most frequent category first, with the number of images that show it."
    caption += _left_out(stats, DRAWN)
    picture = _plot(lambda theme: plots.label_counts(bars, theme=theme), caption)
    header = ["category"]
    for split in stats.splits:
        header += [f"{split.name} {name}" for name in ("present", "absent", "unknown", "known", "rate")]
    rows = [_category_cells(stats, index) for index in _ends(stats, LISTED)]
    note = "Click a heading to sort. The rate is the share of presence among the known labels."
    listing = html.table(header, rows, sortable=True).replace('"scroll"', '"scroll tall"', 1)
    return picture + html.paragraph(note + _left_out(stats, LISTED), "note") + listing


def _category_cells(stats: Stats, index: int) -> list[str]:
    cells = [html.cell(stats.categories[index])]
    for split in stats.splits:
        counts = [int(table[index]) for table in (split.present, split.absent, split.unknown)]
        cells += [html.cell(f"{count:,}", count) for count in counts]
        for part, whole in ((counts[0] + counts[1], split.images), (counts[0], counts[0] + counts[1])):
            share = part / whole if whole else None
            cells.append(html.cell(_percent(share), share))
    return cells


def _images_section(stats: Stats) -> str:
    """Histograms over images: how much is known of each, and how much it shows."""
    shares = {split.name: split.share_histogram.tolist() for split in stats.splits}
    caption = "Share of an image's labels that is known; 100 % belongs to the last bar."
    known = _plot(lambda theme: plots.image_histogram(shares, SHARES, "known labels", theme=theme), caption)
    labels, positives = plots.fewer_bars({split.name: split.by_positives.tolist() for split in stats.splits})
    caption = "Known positives of an image. Unknown labels may hide more."
    return known + _plot(
        lambda theme: plots.image_histogram(positives, labels, "known positives", theme=theme), caption
    )


def _together_section(stats: Stats) -> str:
    """Heat map and the surest pairs."""
    if not stats.pairs:
        return html.paragraph("No image is known to show two categories, so nothing is drawn.", "absent")
    together = stats.together
    names = [stats.categories[index] for index in stats.together.order[:MAPPED]]
    graph = together.graph(MAPPED)
    caption = f"How often the column's category is present in {together.split} images that show the row's, counted on "
    caption += "known labels only; never seen together and not known look the same. What goes together stands together."
    if len(names) < len(stats.categories):
        caption += f" The {len(names)} most frequent of {len(stats.categories):,} categories are shown."
    picture = _plot(lambda theme: plots.cooccurrence(graph, names, theme=theme), caption)
    kind = "matrix large" if len(names) > 40 else "matrix"
    rows = [
        [
            html.cell(f"{pair.given} → {pair.other}"),
            html.cell(_percent(pair.probability), pair.probability),
            html.cell(f"{pair.both:,}", pair.both),
            html.cell(f"{pair.support:,}", pair.support),
            html.cell(_percent(pair.overall), pair.overall),
        ]
        for pair in stats.pairs
    ]
    header = ["given → also present", "P", "both present", "out of", "overall"]
    listing = html.table(header, rows, sortable=True).replace('"scroll"', '"scroll tall"', 1)
    note = "Surest first: by the lower end of the 95 % interval of P. Overall is the rate among known labels."
    return picture.replace("<figure>", f'<figure class="{kind}">', 1) + html.paragraph(note, "note") + listing


def _samples_section(stats: Stats, samples: int, seed: int, images: bool) -> str:
    """Seeded random images of all splits, then some of the most and the least frequent categories."""
    if not images or stats.data is None or not stats.data.splits:
        return html.paragraph("No picture is shown: pictures were left out, or there is no image.", "absent")
    random = np.random.default_rng(seed)
    splits = stats.data.splits
    first = np.cumsum([0, *map(len, splits.values())])
    tiles = []
    for drawn in np.sort(random.choice(first[-1], min(max(0, samples), first[-1]), replace=False)):
        place = int(np.searchsorted(first, drawn, side="right")) - 1
        name = list(splits)[place]
        tiles.append(_sample(name, splits[name], int(drawn - first[place])))
    text = f"{_count(len(tiles), 'image', 'images')} drawn at random (seed {seed}), with the labels known present."
    content = html.paragraph(text) + f'<div class="thumbs">{"".join(tiles)}</div>'
    strips = "".join(_strip(stats, splits[stats.main.name], index, random) for index in _frequent(stats))
    heading = f"<h3>Most and least frequent categories of {html.escape(stats.main.name)}</h3>"
    return f'{content}{heading}<div class="strips">{strips}</div>' if strips else content


def _sample(split: str, dataset: Dataset, row: int) -> str:
    """One image with its known labels."""
    values = dataset.labels.values[row]
    path = dataset.labels.paths[row]
    present = [dataset.categories[index] for index in np.flatnonzero(values == PRESENT)]
    more = (
        f"and {len(present) - NAMED} more"
        if len(present) > NAMED
        else ""
        if present
        else "none known present"
    )
    note = f"{split} · {np.count_nonzero(values == ABSENT):,} known absent"
    return html.tile(html.thumbnail(dataset.root / path, SIDE), path, present[:NAMED], more, note)


def _strip(stats: Stats, dataset: Dataset, index: int, random: np.random.Generator) -> str:
    """A category with a few images that show it."""
    rows = np.flatnonzero(dataset.labels.values[:, index] == PRESENT)
    chosen = np.sort(random.choice(rows, min(STRIP, len(rows)), replace=False))
    tiles = "".join(html.thumbnail(dataset.root / dataset.labels.paths[row], SIDE) for row in chosen)
    known = _count(len(rows), "known positive", "known positives")
    return html.strip(stats.categories[index], known, tiles)


def _frequent(stats: Stats) -> list[int]:
    """The most and the least frequent categories that have a known positive."""
    shown = [index for index in stats.together.order.tolist() if stats.main.present[index]]
    return shown if len(shown) <= 2 * ENDS else [*shown[:ENDS], *shown[-ENDS:]]


def _plot(draw: Callable[[Theme], bytes], caption: str) -> str:
    return html.plot(draw, draw("light"), caption, caption)


def _left_out(stats: Stats, limit: int) -> str:
    """A sentence about the categories between the two ends that are shown."""
    if len(stats.categories) <= limit:
        return ""
    left_out = len(stats.categories) - 2 * (limit // 2)
    return f" The {limit // 2} most and the {limit // 2} least frequent are shown, {left_out:,} are left out."


def _percent(share: float | None) -> str:
    return "n/a" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def _count(number_of: int, one: str, many: str) -> str:
    return f"{number_of:,} {one if number_of == 1 else many}"


def _plain(text: str) -> str:
    """One line without anything a terminal would obey."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "�" for sign in text)
