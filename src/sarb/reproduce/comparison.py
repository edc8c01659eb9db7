"""The paper's comparison: the average of each metric, then mAP, OF1 and CF1 at each known share."""

from __future__ import annotations

from collections.abc import Sequence

from sarb.reproduce import published
from sarb.reproduce.names import COMPARISON
from sarb.reproduce.results import Number, Results
from sarb.reproduce.tables import Group, Table

Line = tuple[str, tuple[Number | None, ...]]
PLAIN = "mAP is plain mAP, as computed by scikit-learn."
INTERPOLATED = "mAP is interpolated mAP, as in the paper."


def percent(share: float) -> str:
    """0.1 -> ``10 %``."""
    return f"{100 * share:g} %"


def over(shares: Sequence[float]) -> str:
    """Say which proportions an average is over, and whether these are all nine."""
    if tuple(shares) == published.ALL_NINE:
        return "Averages are over all nine proportions of known labels."
    if len(shares) == 1:
        return f"Only one of the nine proportions was run, so averages are for {percent(shares[0])} alone."
    run = ", ".join(map(percent, shares))
    return f"Averages are over the {len(shares)} proportions that were run ({run}), not all nine."


def comparison_tables(results: Results, title: str, rows: Sequence[str], paper: str | None) -> list[Table]:
    """All tables of the comparison.

    Args:
        results: results of the cells.
        title: name of the data.
        rows: rows to show.
        paper: the paper's data set to show beside ours, if any.
    """
    shares = results.shares(rows)
    if not rows or not shares:
        return []
    precisions = ("mAP", "mAP_interpolated") if paper else ("mAP",)
    tables = [_averages(results, title, rows, shares, paper)]
    tables += [_by_share(results, title, rows, shares, (metric,), paper) for metric in precisions]
    return [*tables, _by_share(results, title, rows, shares, ("OF1", "CF1"), paper)]


def _averages(
    results: Results, title: str, rows: Sequence[str], shares: Sequence[float], paper: str | None
) -> Table:
    metrics = ("mAP", *(["mAP_interpolated"] if paper else []), "OP", "OR", "OF1", "CP", "CR", "CF1")
    lines: list[Line] = [
        (row, tuple(results.average(row, shares, metric) for metric in metrics)) for row in rows
    ]
    groups = [Group((title,), tuple(lines))]
    notes = [over(shares), PLAIN]
    if paper:
        groups.append(
            Group((f"published, {published.TITLES[paper]}",), tuple(_averaged(paper, metrics, shares)))
        )
        notes.append("mAP int. is interpolated mAP, as in the paper.")
        if tuple(shares) != published.ALL_NINE:
            notes.append(
                "The paper reports OP, OR, CP and CR only as averages over all nine, so they are left out."
            )
    names = tuple("Avg. " + metric.replace("mAP_interpolated", "mAP int.") for metric in metrics)
    caption = "Average mAP, OP, OR, OF1 and CP, CR, CF1"
    return Table("averages", caption, ("Data", "Method", *names), tuple(groups), tuple(notes))


def _averaged(paper: str, metrics: Sequence[str], shares: Sequence[float]) -> list[Line]:
    """The paper's averages; its mAP goes in the column of interpolated mAP only."""
    return [
        (
            row,
            tuple(
                None if metric == "mAP" else _plain(published.average(paper, row, shares, metric))
                for metric in metrics
            ),
        )
        for row in COMPARISON
    ]


def _by_share(
    results: Results,
    title: str,
    rows: Sequence[str],
    shares: Sequence[float],
    metrics: Sequence[str],
    paper: str | None,
) -> Table:
    several = len(metrics) > 1
    # plain and interpolated mAP are different numbers and are never shown in one table
    beside = paper if metrics != ("mAP",) else None
    groups = []
    for metric in metrics:
        lines: list[Line] = [
            (
                row,
                (
                    *(results.number(row, known, metric) for known in shares),
                    results.average(row, shares, metric),
                ),
            )
            for row in rows
        ]
        groups.append(Group((title, *([metric] if several else [])), tuple(lines)))
    for metric in metrics if beside else ():
        assert beside is not None
        given: list[Line] = [
            (
                row,
                (
                    *(_plain(published.number(beside, row, known, metric)) for known in shares),
                    _plain(published.average(beside, row, shares, metric)),
                ),
            )
            for row in COMPARISON
        ]
        lead = (f"published, {published.TITLES[beside]}", *([metric] if several else []))
        groups.append(Group(lead, tuple(given)))
    last = "Average" if several else "Ave. mAP"
    head = ("Data", *(["Metric"] if several else []), "Method", *map(percent, shares), last)
    note = {"mAP": [PLAIN], "mAP_interpolated": [INTERPOLATED]}.get(metrics[0], [])
    names = " and ".join(metrics).replace("_interpolated", " (interpolated)")
    caption = f"{names} at each proportion of known labels"
    return Table("-".join(metrics), caption, head, tuple(groups), (over(shares), *note))


def _plain(value: float | None) -> Number | None:
    return None if value is None else Number(value)
