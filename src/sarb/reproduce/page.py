"""Write all tables and figures of a ``results.csv``, and the ``README.md`` that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.files import atomic_write, write_csv
from sarb.report.markdown import inline
from sarb.reproduce import published
from sarb.reproduce.ablation import ablation_tables, fixed_tables
from sarb.reproduce.cells import Cell, Plan
from sarb.reproduce.comparison import comparison_tables, percent
from sarb.reproduce.figures import loss_figure, share_figures
from sarb.reproduce.gains import gain_tables, steadiness_table
from sarb.reproduce.names import COMPARISON, LOSS, POOLED, TABLES
from sarb.reproduce.results import Results
from sarb.reproduce.tables import Table
from sarb.runs.folder import ERRORS, RunFolder


def write_page(
    results: Results,
    plan: Plan,
    asked: Sequence[str],
    *,
    title: str,
    paper: str | None,
    command: str,
    failed: Sequence[tuple[Cell, str]],
) -> Path:
    """Write ``tables/``, ``figures/``, ``errors.csv`` and ``README.md``; return the path of the last.

    Args:
        results: all finished cells, including those of earlier grids in this folder.
        plan: the plan of the grid; it knows the folders of the cells.
        asked: requested rows; the comparison shows them in addition to the paper's.
        title: name of the data.
        paper: the paper's data set to show beside ours.
        command: the command of the grid.
        failed: cells that failed, with their errors.
    """
    out = Path(plan.out)
    others = {*TABLES["ablation"], *TABLES["fixed"]} - {*COMPARISON}
    rows = results.rows([*COMPARISON, POOLED, *(row for row in asked if row not in others)])
    tables = [*comparison_tables(results, title, rows, paper), *gain_tables(results, title, rows, paper)]
    tables += [*ablation_tables(results, title, paper), *fixed_tables(results, title, paper)]
    tables += steadiness_table(results, title)
    for table in tables:
        table.write(out / "tables")
    figures = share_figures(results, title, rows, paper, out / "figures")
    losses, known = read_losses(results, plan)
    if losses:
        name = f"Training loss with and without PLRB, {percent(known)} known labels"
        figures[name] = loss_figure(losses, f"{title}, {percent(known)} known labels", out / "figures")
    _write_errors(out / ERRORS, failed, plan)
    with atomic_write(out / "README.md") as file:
        file.write(_text(results, tables, figures, title, paper, command, failed))
    return out / "README.md"


def read_losses(results: Results, plan: Plan) -> tuple[dict[str, NDArray[np.float64]], float]:
    """Loss per step with and without PLRB, at the smallest share for which both run folders exist."""
    for known, seed in sorted({(cell.known, cell.seed) for cell in results.lines}):
        if not all(Cell(row, known, seed) in results.lines for row in LOSS):
            continue
        losses = {}
        for row in LOSS:
            values = RunFolder(plan.folder(Cell(row, known, seed))).step_losses()
            losses[f"{'with' if row == LOSS[0] else 'without'} PLRB ({row})"] = np.array(values)
        if all(len(values) > 2 for values in losses.values()):
            return losses, known
    return {}, 0.0


def _write_errors(path: Path, failed: Sequence[tuple[Cell, str]], plan: Plan) -> None:
    """Write the failed cells; remove the file if there are none."""
    if not failed:
        path.unlink(missing_ok=True)
        return
    rows = [(cell.row, cell.known, cell.seed, error, plan.folder(cell)) for cell, error in failed]
    write_csv(path, ("row", "known", "seed", "error", "folder"), rows)


def _text(
    results: Results,
    tables: Sequence[Table],
    figures: dict[str, list[Path]],
    title: str,
    paper: str | None,
    command: str,
    failed: Sequence[tuple[Cell, str]],
) -> str:
    cells = results.cells()
    seeds = sorted({cell.seed for cell in cells})
    lines = [results.lines[cell] for cell in cells]
    parts = [f"# The paper's tables on {inline(title)}"]
    if command:
        parts.append(f"```console\n$ {command}\n```")
    parts.append(
        f"{len(cells)} finished cells in [results.csv](results.csv), each with its command. "
        f"Backbone {_all(lines, 'backbone')}; epochs {_all(lines, 'epochs')}; "
        f"seeds {', '.join(map(str, seeds))}; threads per cell {_all(lines, 'threads')}. "
        "± is the standard deviation over seeds; the best of each column is bold; "
        "– means not run or undefined."
    )
    if paper:
        parts.append(
            f"Published numbers are the paper's on {published.TITLES[paper]}, trained on the full data set."
        )
    for table in tables:
        parts.append(table.to_markdown().rstrip())
    for name, files in figures.items():
        parts.append(f"**{name}**\n\n![{name}](figures/{files[0].name})")
    if failed:
        parts.append(
            "**Failed cells**\n\n"
            + "\n".join(f"- {inline(str(cell))}: {inline(error, 500)}" for cell, error in failed)
        )
    return "\n\n".join(parts) + "\n"


def _all(lines: Sequence[dict[str, str]], name: str) -> str:
    return ", ".join(dict.fromkeys(line[name] for line in lines))
