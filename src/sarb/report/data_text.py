"""The statistics of a data set as text for the console; its page shows the same numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

import numpy as np

from sarb.data.check.stats import BINS, SplitStats, Stats
from sarb.report.report import count, number
from sarb.report.style import short

#: characters of a line of text
WIDE = 80
#: a longer list of categories is shown as its two ends
PRINTED = 24
#: what the bins of an image's known share are called
SHARES = [f"{10 * bin}–{10 * bin + 10} %" for bin in range(BINS)]


def render(stats: Stats) -> str:
    """Format the statistics as plain text, 80 columns wide."""
    names = [split.name for split in stats.splits]
    others = [split for split in stats.splits if split is not stats.main]
    binned = zip(SHARES, *(split.share_histogram.tolist() for split in stats.splits), strict=True)
    shares = [[label, *(f"{count:,}" for count in counts)] for label, *counts in binned if any(counts)]
    header = [f"category ({stats.main.name})", "present", "absent", "known", "rate"]
    pairs = [
        [
            f"{short(pair.given, 22)} → {short(pair.other, 22)}",
            percent(pair.probability),
            f"{pair.both:,} of {pair.support:,}",
            percent(pair.overall),
        ]
        for pair in stats.pairs[:8]
    ]
    blocks = [
        [_plain(f"{stats.name}: {count(len(stats.categories), 'category', 'categories')}")],
        _columns(["", *names], measures(stats)),
        _columns(["images by known share", *names], shares),
        _columns([*header, *(f"in {split.name}" for split in others)], _category_rows(stats, others)),
        _columns([f"appear together ({stats.main.name})", "P", "images", "overall"], pairs),
        [textwrap.fill(f"- {_plain(remark)}", WIDE, subsequent_indent="  ") for remark in remarks(stats)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, none without rows; the first column is cut if the numbers need the space."""
    from rich.cells import cell_len, set_cell_size

    table = [[_plain(row[0]), *row[1:]] for row in (header, *rows)]
    widths = [max(len(row[index]) for row in table if index < len(row)) for index in range(1, len(header))]
    room = WIDE - sum(widths) - 2 * len(widths)
    first = min(room, max(cell_len(row[0]) for row in table))
    lines = []
    for name, *numbers in table:
        fitted = name if cell_len(name) <= first else set_cell_size(name, first - 1).rstrip() + "…"
        cells = [text.rjust(width) for text, width in zip(numbers, widths, strict=False)]
        lines.append("  ".join([set_cell_size(fitted, first), *cells]).rstrip())
    return lines if rows else []


def measures(stats: Stats) -> list[list[str]]:
    """One row per measure, one column per split."""
    measures: list[tuple[str, Callable[[SplitStats], str]]] = [
        ("images", lambda split: f"{split.images:,}"),
        ("known labels", lambda split: percent(split.known_share)),
        ("known positives per image, mean", lambda split: number(split.mean_positives, 2)),
        ("known positives per image, median", lambda split: number(split.median_positives)),
        (
            "known positives per image, max",
            lambda split: f"{split.max_positives:,}" if split.images else "n/a",
        ),
        ("all positives per image, estimate", lambda split: number(split.estimated_positives, 2)),
        ("images without any known label", lambda split: f"{split.without_known:,}"),
        ("images without a known positive", lambda split: f"{split.without_positive:,}"),
    ]
    return [[label, *(spell(split) for split in stats.splits)] for label, spell in measures]


def _category_rows(stats: Stats, others: Sequence[SplitStats]) -> list[list[str]]:
    """The most and the least frequent categories; a row between them counts those left out."""
    main = stats.main
    rows = []
    for index in ends(stats, PRINTED):
        present = int(main.present[index])
        absent = int(main.absent[index])
        known = (present + absent) / main.images if main.images else None
        counts = [f"{present:,}", f"{absent:,}", percent(known), percent(main.rate[index])]
        rows.append([stats.categories[index], *counts, *(f"{split.present[index]:,}" for split in others)])
    if len(rows) < len(stats.categories):
        rows.insert(PRINTED // 2, [f"… {len(stats.categories) - len(rows):,} more …"])
    return rows


def ends(stats: Stats, limit: int) -> list[int]:
    """Categories by frequency; if there are more than ``limit`` (an even number), only the two ends."""
    order: list[int] = np.argsort(-stats.main.present, kind="stable").tolist()
    return order if len(order) <= limit else [*order[: limit // 2], *order[-limit // 2 :]]


def remarks(stats: Stats) -> list[str]:
    """What to know before training, one sentence each."""
    sentences = []
    for split in stats.splits:
        if not split.images:
            sentences.append(f"{split.name} has no images")
        elif not split.known.any():
            sentences.append(f"{split.name} has no known labels")
        else:
            for sign, counts in (("positive", split.present), ("negative", split.absent)):
                names = stats.missing(split, counts)
                more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
                if names:
                    listed = ", ".join(short(name, 30) for name in names[:8])
                    sentences.append(f"{split.name}: no known {sign} for {listed}{more}")
    if (counted := len(stats.together.order)) < (total := len(stats.categories)):
        sentences.append(f"pairs were counted among the {counted:,} most frequent of {total:,} categories")
    if any(split.known_share not in (1.0, None) for split in stats.splits):
        sentences.append(
            "the estimate sums present / known over categories and assumes that labels are missing at "
            "random; a category without known labels adds nothing"
        )
    return sentences


def percent(share: float | None) -> str:
    """Format a share: ``'12.5 %'``, or ``'n/a'``."""
    return "n/a" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def _plain(text: str) -> str:
    """One line without control characters."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "�" for sign in text)
