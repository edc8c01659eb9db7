"""The rows of each of the paper's tables, in its order, and the cells they need."""

from __future__ import annotations

from collections.abc import Sequence

from sarb.errors import ConfigError, check_share, unknown_name
from sarb.reproduce.cells import Cell
from sarb.rows import ROWS

OURS = "Ours"
BASELINE = "SSGRL"
POOLED = "Pooled"
COMPARISON = (BASELINE, "GCN-ML", "KGGR", "Curriculum labeling", "partial-BCE", OURS)
#: the three blocks of the paper's ablation table
ABLATION = (
    ("Ours w/ SAM", "Ours w/ SD", "IP-Mixup", "FM-Mixup"),
    (BASELINE, "Ours ILRB", "Ours ILRB fixed alpha", "Ours PLRB", "Ours PLRB fixed beta"),
    (OURS,),
)
FIXED_VALUES = (0.1, 0.3, 0.5, 0.7, 0.9)
#: row with a fixed value -> the row that learns it
FIXED = {"Ours ILRB fixed alpha": "Ours ILRB", "Ours PLRB fixed beta": "Ours PLRB"}
#: row with PLRB, and the same row without it
LOSS = (OURS, "Ours ILRB")

TABLES: dict[str, tuple[str, ...]] = {
    "comparison": COMPARISON,
    "ablation": tuple(row for block in ABLATION for row in block),
    "fixed": (*(f"{row}={value}" for row in FIXED for value in FIXED_VALUES), *FIXED.values()),
    "figures": COMPARISON,
}
ORDER = tuple(dict.fromkeys((*COMPARISON[:-1], POOLED, OURS, *TABLES["ablation"], *TABLES["fixed"], *ROWS)))


def cells_of(
    table: str, rows: Sequence[str] | None, shares: Sequence[float], seeds: Sequence[int], full: bool
) -> list[Cell]:
    """The cells of a table, ordered by seed and then share, so that a stopped grid is still useful.

    Args:
        table: a key of ``TABLES``.
        rows: row names; None uses the paper's.
        shares: known shares.
        seeds: seeds for hiding labels and for training.
        full: also run the pooled baseline at these shares, and once with all labels (for the room closed).
    """
    if table not in TABLES:
        raise ConfigError([unknown_name("table", table, TABLES)])
    chosen = list(dict.fromkeys(rows if rows is not None else TABLES[table]))
    problems = [unknown_name("row", row, ROWS) for row in chosen if row not in ROWS]
    problems += [
        f"no {name}: give at least one" for name, given in (("seed", seeds), ("share", shares)) if not given
    ]
    if problems:
        raise ConfigError(problems)
    for share in shares:
        check_share("known", share)
        if share == 0:
            raise ConfigError(["known must be above 0: without known labels there is nothing to learn from"])
    compared = table in ("comparison", "figures")
    if compared and full and POOLED not in chosen:
        chosen.append(POOLED)
    cells = [Cell(row, share, seed) for seed in seeds for share in sorted(shares) for row in chosen]
    if table == "figures":
        cells += [Cell(row, min(shares), seeds[0]) for row in LOSS]
    if compared and full:
        cells.append(Cell(POOLED, 1.0, seeds[0]))
    return list(dict.fromkeys(cells))
