"""The paper's ablation table and its table of fixed α and β, on shares and seeds that all rows have."""

from __future__ import annotations

from collections.abc import Sequence

from sarb.reproduce import published
from sarb.reproduce.comparison import INTERPOLATED, PLAIN, Line, over
from sarb.reproduce.names import ABLATION, COMPARISON, FIXED, FIXED_VALUES
from sarb.reproduce.results import Number, Results
from sarb.reproduce.tables import Group, Table


def ablation_tables(results: Results, title: str, paper: str | None) -> list[Table]:
    """Average mAP per ablation row; the last column has the published averages over all nine proportions."""
    blocks = [results.rows(block) for block in ABLATION]
    blocks = [sorted(present, key=block.index) for present, block in zip(blocks, ABLATION, strict=True)]
    rows = [row for block in blocks for row in block]
    results = results.common(rows)
    shares = results.shares(rows)
    if not {*rows} - {*COMPARISON} or not shares:
        return []
    metrics = ("mAP", *(["mAP_interpolated"] if paper else []))
    lines = [tuple(_line(results, row, shares, metrics, paper) for row in block) for block in blocks if block]
    beside = [f"{title}, mAP int.", f"published, {published.TITLES[paper]}"] if paper else []
    head = ("Method", f"{title}, mAP", *beside)
    groups = tuple(Group((), block, "none") for block in lines)
    notes = [over(shares), PLAIN]
    if paper:
        notes.append(
            "mAP int. is interpolated mAP, as in the paper. Published averages are over all nine proportions."
        )
    return [Table("ablation", "Ablation: average mAP", head, groups, tuple(notes))]


def _line(
    results: Results, row: str, shares: Sequence[float], metrics: Sequence[str], paper: str | None
) -> Line:
    numbers = [results.average(row, shares, metric) for metric in metrics]
    if paper:
        numbers.append(_published(paper, row))
    return row, tuple(numbers)


def fixed_tables(results: Results, title: str, paper: str | None) -> list[Table]:
    """Average mAP with α or β fixed at five values, and with α or β learned."""
    rows = [f"{name}={value}" for name in FIXED for value in FIXED_VALUES]
    results = results.common(results.rows([*rows, *FIXED.values()]))
    shares = results.shares(rows)
    if not shares:
        return []
    metric = "mAP_interpolated" if paper else "mAP"
    lines: list[Line] = []
    for name, learned in FIXED.items():
        chosen = [*(f"{name}={value}" for value in FIXED_VALUES), learned]
        lines.append((name, tuple(results.average(row, shares, metric) for row in chosen)))
    groups = [Group((title,), tuple(lines), "none")]
    if paper:
        given: list[Line] = [
            (
                name,
                (
                    *(_published(paper, f"{name}={value}") for value in FIXED_VALUES),
                    _published(paper, learned),
                ),
            )
            for name, learned in FIXED.items()
        ]
        groups.append(Group((f"published, {published.TITLES[paper]}",), tuple(given), "none"))
    head = ("Data", "Method", *(f"{value:g}" for value in FIXED_VALUES), "learned")
    notes = (over(shares), INTERPOLATED if paper else PLAIN)
    return [Table("fixed", "Average mAP with α or β fixed", head, tuple(groups), notes)]


def _published(paper: str, row: str) -> Number | None:
    value = published.number(paper, row, None, "mAP")
    return None if value is None else Number(value)
