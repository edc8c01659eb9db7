"""Write the tables, the figures and the ``README.md`` of the field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sarb.files import atomic_write, write_csv
from sarb.report.markdown import inline
from sarb.reproduce.field import tables
from sarb.reproduce.field.figures import map_figure, rank_figure
from sarb.reproduce.field.protocol import SINGLE, SINGLE_VALID_KNOWN, TRIAL_KNOWN, TRIAL_VALID
from sarb.reproduce.field.ranking import Block, Standing, standing
from sarb.reproduce.field.resamples import Resamples
from sarb.reproduce.field.run import Field
from sarb.reproduce.field.work import folder_of
from sarb.runs.folder import ERRORS


def write_page(field: Field, command: str) -> Path:
    """Write everything that the finished trainings give; return the page."""
    out = Path(field.plan.out)
    rows = [row for row in field.rows if any(job.row == row for job in field.done.lines)]
    name = field.data.name
    parts = [f"# The field on {inline(name)}", *([f"```console\n$ {command}\n```"] if command else [])]
    parts.append(_protocol(field))
    for table in tables.metric_tables(field.done, rows, name):
        table.write(out / "tables")
        parts.append(table.to_markdown().rstrip())
    if text := tables.idle_sentence(field.done, rows):
        parts.append(text)
    if (cost := tables.cost_table(field.done, rows, name)) is not None:
        cost.write(out / "tables")
        parts.append(cost.to_markdown().rstrip())
    if rows:
        file = map_figure(field.done, rows, out / "figures")[0]
        parts.append(f"![mAP of every row](figures/{file.name})")
    parts += _standing(field, out)
    if text := tables.trial_table(field.tried, field.chosen, field.cells):
        parts.append(f"## Trials\n\n{text}")
    if text := tables.published_table(rows, field.done):
        parts.append(
            f"## Published numbers\n\nOther data, other backbones: not comparable with ours line by line.\n\n{text}"
        )
    parts += _failures(field, out)
    with atomic_write(out / "README.md") as opened:
        opened.write("\n\n".join(parts) + "\n")
    return out / "README.md"


def _protocol(field: Field) -> str:
    """How the numbers were made."""
    done = sum(job in field.done.lines for job in field.cells)
    tried = sum(job in field.tried.lines for job in field.trials)
    finished = f"{done} of {len(field.cells)} cells are finished ([results.csv](results.csv))"
    end = ["Test photos choose nothing.", "± is the sample standard deviation over seeds."]
    if not field.trials:
        return " ".join(
            [f"{finished}.", "There are no trials: every row is trained with its published options.", *end]
        )
    numbers = sorted({job.trial + 1 for job in field.trials if job.trial is not None})
    sentences = [
        f"{finished}, and {tried} of {len(field.trials)} trials ([trials.csv](trials.csv)).",
        f"Every row has {numbers[-1]} trials in each setting: its published options first, then others.",
        *_with_fewer(field),
        f"A trial trains on {100 * (1 - TRIAL_VALID):g} % of the training photos and is judged by mAP on the known "
        f"labels of the rest, under a mask that no cell uses, at {100 * TRIAL_KNOWN:g} % known in `partial`.",
        "The best options are then trained on all training photos and tested once for each mask.",
    ]
    if any(job.setting == SINGLE for job in field.cells):
        sentences += [
            f"With single positives, the validation photos of the trials keep {100 * SINGLE_VALID_KNOWN:g} % of all "
            "their labels, because one present label alone ranks nothing.",
            "EPR and ROLE get the number of present labels per photo from them.",
        ]
    return " ".join([*sentences, *end])


def _with_fewer(field: Field) -> list[str]:
    """Rows with a cell, and without all trials: a cheaper command has trained them with their published options."""
    named = []
    for row in field.rows:
        cells = [job for job in field.cells if job.row == row and job in field.done.lines]
        settings = dict.fromkeys(job.setting for job in cells)
        without = dict.fromkeys(job.setting for job in cells if field.chosen(job) is None)
        if without:
            where = "" if without == settings else f" ({', '.join(without)})"
            named.append(f"{inline(row)}{where}")
    return [f"**Not all trials, so published options: {', '.join(named)}.**"] if named else []


def _standing(field: Field, out: Path) -> list[str]:
    """Ranks and differences with their intervals, as table, CSV and figure."""
    where = standings(field)
    if where is None:
        return []
    rank_figure(where, out / "figures")
    columns = ("setting", "known", "row", "behind", "low", "high", "mean_rank", "rank_low", "rank_high")
    lines = [
        (*column, row, *(f"{value:.3f}" for value in (*behind[place], *where.ranks[place])))
        for column, behind in where.behind.items()
        for place, row in enumerate(where.rows)
    ]
    write_csv(out / "standing.csv", columns, lines)
    left = [row for row in field.rows if row not in where.rows]
    text = (
        "Intervals are 95 %, by a bootstrap over the test photos that all methods share: they say which differences "
        "other photos could undo, not what another mask would change. The shaded band is Nemenyi's critical difference"
        f" ({where.critical:.1f} ranks); it takes the {where.blocks} cells as independent, so it is a rough guide."
    )
    missing = [f"Not ranked, because a cell is missing: {', '.join(map(inline, left))}."] if left else []
    return [
        "## What is inside the noise",
        text,
        tables.standing_table(where),
        *tables.noise_sentences(where),
        *missing,
        "![Mean ranks](figures/ranks.png)",
    ]


def standings(field: Field) -> Standing | None:
    """Rank the rows by the resamples of their cells; a block that most rows lack is left out."""
    kept = Resamples(Path(field.plan.out) / "resamples.csv")
    blocks: dict[Block, dict[str, NDArray[np.float64]]] = {}
    for job in field.cells:
        if job in field.done.lines:
            options = field.done.lines[job]["options"].split()
            found = kept.of(job, options, folder_of(field.plan, job, options))
            if found is not None:
                blocks.setdefault(Block(job.setting, job.known, job.seed), {})[job.row] = found
    if not blocks:
        return None
    kept.write()
    most = max(map(len, blocks.values()))
    return standing({block: found for block, found in blocks.items() if 2 * len(found) > most})


def _failures(field: Field, out: Path) -> list[str]:
    rows = [(str(job), error) for job, error in field.failed]
    if not rows:
        (out / ERRORS).unlink(missing_ok=True)
        return []
    write_csv(out / ERRORS, ("training", "error"), rows)
    return ["## Failed\n\n" + "\n".join(f"- {inline(job)}: {inline(error, 500)}" for job, error in rows)]
