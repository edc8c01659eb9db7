"""The tables of the field."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sarb.methods.base import Method
from sarb.metrics.bootstrap import Interval
from sarb.registry import METHODS, find
from sarb.report.markdown import inline
from sarb.reproduce.field.lines import Lines
from sarb.reproduce.field.protocol import PARTIAL, Job
from sarb.reproduce.field.published import beside
from sarb.reproduce.field.ranking import Standing, inside_the_noise
from sarb.reproduce.results import Number, summary
from sarb.reproduce.tables import Group, Table
from sarb.rows import ROWS

METRICS = ("mAP", "OF1", "CF1")
#: a method is idle if it completes at most this many labels per known one
IDLE = 0.001
Column = tuple[str, float]


def title(column: Column) -> str:
    """``10 % known`` or ``single-positive``."""
    setting, known = column
    return f"{100 * known:g} % known" if setting == PARTIAL else setting


def columns_of(done: Lines) -> list[Column]:
    """The settings and shares with results, partial ones first."""
    found = {(job.setting, job.known) for job in done.lines}
    return sorted(found, key=lambda column: (column[0] != PARTIAL, column[1]))


def values(done: Lines, row: str, column: Column, metric: str) -> list[float]:
    """The numbers of a row over its seeds, of those that have one."""
    chosen = [line for job, line in done.lines.items() if (job.row, job.setting, job.known) == (row, *column)]
    return [float(line[metric]) for line in chosen if line[metric]]


def metric_tables(done: Lines, rows: Sequence[str], data: str) -> list[Table]:
    """MAP, OF1 and CF1 of every row, one table for each setting and share."""
    tables = []
    for column in columns_of(done):
        lines = tuple(
            (row, tuple(summary(values(done, row, column, metric)) for metric in METRICS))
            for row in rows
            if values(done, row, column, "mAP")
        )
        seeds = {job.seed for job in done.lines if (job.setting, job.known) == column}
        note = f"Seeds {', '.join(map(str, sorted(seeds)))}: each hides other labels and starts elsewhere."
        name = f"field-{title(column).replace(' % known', '').replace(' ', '-')}"
        head = ("Data", "Method", *METRICS)
        tables.append(Table(name, f"The field, {title(column)}", head, (Group((data,), lines),), (note,)))
    return tables


def idle_rows(done: Lines, rows: Sequence[str]) -> dict[Column, list[str]]:
    """The rows whose methods completed next to nothing in the last epoch of each cell, for each setting and share."""
    found = {}
    for column in columns_of(done):
        idle = []
        for row in rows:
            completed = values(done, row, column, "completed")
            known = values(done, row, column, "known_labels")
            method: type[Method] = find("method", METHODS, ROWS[row].method)
            if method.completes and completed and max(completed) <= IDLE * min(known, default=0):
                idle.append(row)
        if idle:
            found[column] = idle
    return found


def idle_sentence(done: Lines, rows: Sequence[str]) -> str:
    """Say which rows do not show what their completed labels do; "" without any."""
    where: dict[str, list[str]] = {}
    for column, idle in idle_rows(done, rows).items():
        where.setdefault(", ".join(map(inline, idle)), []).append(title(column))
    if not where:
        return ""
    told = "; ".join(f"{names} ({', '.join(titles)})" for names, titles in where.items())
    return (
        f"**Completed (almost) no unknown label in the last epoch: {told}.** Such a row shows what else the "
        "method does, not what its completed labels are worth."
    )


def cost_table(done: Lines, rows: Sequence[str], data: str) -> Table | None:
    """Seconds of the cores and memory of a training at the smallest share; the median over seeds."""
    columns = columns_of(done)
    if not columns:
        return None
    column = columns[0]
    lines = []
    for row in rows:
        if seconds := values(done, row, column, "cpu_seconds"):
            memory = values(done, row, column, "peak_mb")
            lines.append((row, (_median(seconds), _median(memory))))
    note = (
        "Training and test with features cached, except for rows that need pixels. Time is that of the cores, so "
        "other work on the machine does not count. The median over seeds."
    )
    head = ("Data", "Method", "seconds of a core", "peak MB")
    group = Group((data,), tuple(lines), "smallest")
    return Table("field-cost", f"What a training costs, {title(column)}", head, (group,), (note,))


def _median(found: Sequence[float]) -> Number | None:
    return Number(sorted(found)[(len(found) - 1) // 2]) if found else None


def standing_table(where: Standing) -> str:
    """Mean ranks and differences to the best, as Markdown."""
    columns = list(where.behind)
    head = ["Method", "mean rank", *(f"mAP − best, {title(column)}" for column in columns)]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for place, row in enumerate(where.rows):
        cells = [_interval(where.behind[column][place], "{:+.1f}") for column in columns]
        lines.append([inline(row), _interval(where.ranks[place], "{:.1f}"), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def noise_sentences(where: Standing) -> list[str]:
    """Which rows cannot be told from the best, for each setting and share."""
    found = []
    for column, behind in where.behind.items():
        names = inside_the_noise(where.rows, behind)
        others = (
            f"cannot be told from the best ({len(names)} with it)"
            if len(names) > 1
            else "is ahead of all others"
        )
        found.append(f"{title(column)}: {', '.join(map(inline, names))} {others}.")
    return found


def _interval(found: Interval, form: str) -> str:
    shown = form.format(found.value)
    if found.low != found.low or found.low == found.high:
        return shown.replace("-", "−")
    return f"{shown} ({form.format(found.low)} to {form.format(found.high)})".replace("-", "−")


def trial_table(tried: Lines, chosen: Callable[[Job], tuple[str, ...] | None], cells: Sequence[Job]) -> str:
    """What the trials of each row and setting reached, and which options were chosen, as Markdown; "" without any."""
    lines = ["| Method | setting | validation mAP of the trials | chosen |", "|---|---|---|---|"]
    for job in dict.fromkeys(Job(cell.row, cell.setting, 0, 0) for cell in cells):
        mine = [
            line
            for trial, line in tried.lines.items()
            if (trial.row, trial.setting) == (job.row, job.setting)
        ]
        if mine:
            reached = ", ".join(f"{float(line['valid_mAP']):.1f}" for line in mine)
            options = chosen(job)
            shown = "–" if options is None else f"`{' '.join(options)}`"
            lines.append(f"| {inline(job.row)} | {job.setting} | {reached} | {shown} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def published_table(rows: Sequence[str], done: Lines) -> str:
    """Published numbers with their source, beside ours at the same share, as Markdown; "" without any."""
    settings = {job.setting for job in done.lines}
    found = beside(rows, sorted(settings))
    if not found:
        return ""
    lines = [
        "| Method | data | known | published mAP | ours here | source | what differs |",
        "|---|---|---|---:|---:|---|---|",
    ]
    for line in found:
        known = line["known_percent"]
        share = float(known) / 100 if known.isdigit() else 1.0
        ours = summary(values(done, line["row"], (line["setting"], share), "mAP"))
        shown = (
            line["setting"] if not known else f"{known} %" if known.isdigit() else f"{known} of 10 to 90 %"
        )
        cells = (inline(line["row"]), line["dataset"], shown, line["value"])
        text = "–" if ours is None else f"{ours.value:.1f}"
        lines.append(
            f"| {' | '.join(cells)} | {text} | {inline(line['source'], 200)} | {inline(line['differs'], 300)} |"
        )
    return "\n".join(lines)
