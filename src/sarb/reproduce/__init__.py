"""``sarb reproduce``: the paper's tables and figures on any data, with the published numbers beside ours.

names         the rows of each table, and the cells it needs
cells         one cell: a row at one known share and seed
worker        what runs a cell, in a process of sarb.jobs
loading       the data, read once for all cells
results       ``results.csv``: one line per finished cell
tables        a table as Markdown and LaTeX
comparison    the comparison tables
ablation      the ablation table and the table of fixed α and β
gains         gain over the baselines, and the share of the room it closes
figures       metrics against the known share, and the training loss
published     the paper's own numbers
page          write all tables and figures, and the README.md that shows them
field/        every method for partial labels under one protocol
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sarb.errors import ConfigError, check_choice
from sarb.jobs.engines import Engine, Work
from sarb.jobs.local import CELLS
from sarb.jobs.pool import Answer, run_grid
from sarb.progress import Progress
from sarb.reproduce import published
from sarb.reproduce.cells import Cell, Plan, fingerprint, finished
from sarb.reproduce.loading import with_data
from sarb.reproduce.names import ORDER, cells_of
from sarb.reproduce.page import write_page
from sarb.reproduce.results import Results

__all__ = ["QUICK", "Cell", "Outcome", "Plan", "reproduce"]

#: recipe, data options of ``demo`` and known shares for a grid that takes a minute
QUICK: dict[str, Any] = {
    "recipe": str(Path(__file__).parent / "quick.toml"),
    "data_options": {"train": 60, "test": 40, "size": 64},
    "shares": (0.1, 0.5, 0.9),
}


@dataclass(frozen=True)
class Outcome:
    """The result of a grid: its page, and (cell, error) of the cells that failed."""

    page: Path
    failed: list[tuple[Cell, str]]


def reproduce(
    table: str,
    plan: Plan,
    *,
    rows: Sequence[str] | None = None,
    shares: Sequence[float] = published.ALL_NINE,
    seeds: Sequence[int] = (0,),
    jobs: int = 1,
    full: bool = True,
    run: bool = True,
    beside: str | None = None,
    command: str = "",
    progress: bool = True,
    engine: Engine | None = None,
) -> Outcome:
    """Run the unfinished cells of a table, then write tables and figures of all finished cells.

    Args:
        table: comparison, ablation, fixed or figures.
        plan: data, settings and folder.
        rows: row names to run instead of the paper's.
        shares: known shares.
        seeds: each one hides different labels and starts from different weights.
        jobs: number of cells to run at once.
        full: also run the pooled baseline, once with all labels too, and report the room closed.
        run: False writes only tables and figures.
        beside: the paper's data set to show beside ours; None recognises it from the data.
        command: the command shown on the page.
        progress: report progress on stderr.
        engine: where the cells are computed; None for processes here.
    """
    engine = engine or Engine()
    engine.check()
    cells = cells_of(table, rows, shares, seeds, full)
    if jobs < 1 or plan.threads < 1:
        raise ConfigError(["jobs and threads must be at least 1"])
    if beside is not None:
        check_choice("published data set", beside, published.TITLES)
    names = list(dict.fromkeys(cell.row for cell in cells))
    plan.check(names)
    plan, data = with_data(plan)
    mark = fingerprint(data)
    talk = Progress(progress)
    results = Results(Path(plan.out) / "results.csv", ORDER)
    results.check(mark, {row: plan.setup(row) for row in names})
    failed = _run(plan, cells, results, mark, jobs, talk, engine) if run else []
    page = write_page(
        results,
        plan,
        names,
        title=data.name,
        paper=beside or published.recognise(data),
        command=command,
        failed=failed,
    )
    return Outcome(page, failed)


def _run(
    plan: Plan, cells: Sequence[Cell], results: Results, mark: str, jobs: int, talk: Any, engine: Engine
) -> list[tuple[Cell, str]]:
    """Run the missing cells; return those that failed."""
    for cell in cells:
        if cell not in results.lines and (line := finished(plan.folder(cell), mark)) is not None:
            results.add(line)  # it finished just as the grid was killed
    missing = [cell for cell in cells if cell not in results.lines]
    talk.say(
        f"{len(cells)} cells: {len(cells) - len(missing)} already finished, {len(missing)} to run, "
        f"{jobs} at a time"
    )
    failed: list[tuple[Cell, str]] = []

    def done(number: int, answer: Answer) -> str:
        if "line" not in answer:
            failed.append((missing[number], answer["error"]))
            return f"failed: {answer['error']}"
        results.add(answer["line"])
        return f"mAP {answer['line']['mAP']:.1f}, {answer['line']['seconds']:.0f} s"

    tasks = [
        (str(cell), {"cell": dataclasses.asdict(cell), "plan": plan.as_dict(), "data": mark})
        for cell in missing
    ]
    out = Path(plan.out)
    if tasks:
        work = Work(CELLS, plan.threads, min(jobs, len(tasks)), out, out / "runs" / "messages.txt")
        with engine.open(work) as start:
            run_grid(tasks, start, done, jobs=jobs, talk=talk)
    for cell, error in failed:
        print(f"sarb: failed: {cell}: {error}", file=sys.stderr)
    return sorted(failed, key=lambda pair: cells.index(pair[0]))
