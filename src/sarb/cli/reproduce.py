"""``sarb reproduce``: the paper's tables and figures, and the field after it, on any data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sarb.cli.common import Address, EngineName, Options, SlurmOptions, examples, folder_to_write, pairs
from sarb.errors import ConfigError
from sarb.jobs.engines import Engine

EPILOG = examples(
    "sarb reproduce comparison --data demo --quick --out grids/quick",
    "sarb reproduce comparison --data coco:/data/coco --recipe coco2014 --out grids/coco",
    "sarb reproduce comparison --data labels.csv -o encoding=binary "
    "--known 0.1 --seeds 0,1,2 --out grids/mine",
    "sarb reproduce ablation --data demo --known 0.1 --jobs 2 --out grids/demo",
    "sarb reproduce comparison --data coco:/data/coco --engine slurm --slurm partition=gpu --jobs 8 --out grids/coco",
    'sarb reproduce comparison --data demo --set "Ours*:method.start=0.3" '
    "--published coco2014 --out grids/demo",
    "sarb reproduce field --data demo --quick --rows AN,SPLC,Ours --trials 1 --out grids/field",
)


def reproduce(
    table: Annotated[
        str,
        typer.Argument(
            help="Which table: comparison, ablation, fixed, figures, or field (every method, tuned alike).",
            metavar="TABLE",
        ),
    ],
    data: Annotated[str, typer.Option(help="Data source, as for 'sarb train'.", metavar="SRC")],
    out: Annotated[
        Path, typer.Option(help="Folder for the results.", metavar="DIR", callback=folder_to_write)
    ],
    option: Options = None,
    known: Annotated[
        str | None,
        typer.Option(help="Known proportions, e.g. 0.1,0.5,0.9.", show_default="all nine; field: 0.1,0.5"),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, e.g. 0,1,2.", show_default="0; field: 0,1,2")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Rows to run, e.g. SSGRL,Ours; see 'sarb list rows'.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe: a built-in name or a TOML file.")] = None,
    words: Annotated[Path | None, typer.Option(help="Word vectors in GloVe format.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Backbone; see 'sarb list backbones'.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs for every row.")] = None,
    valid: Annotated[
        float | None, typer.Option(help="Fraction of the training images to hold out for validation.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting, for all rows or for some: 'Ours*:method.start=0.3'.",
            metavar="[ROW:]NAME=VALUE",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Cells to run in parallel, each in its own process.", min=1)] = 1,
    threads: Annotated[
        int, typer.Option(help="Threads per cell; changing this changes rounding.", min=1)
    ] = 1,
    engine: EngineName = "local",
    address: Address = None,
    slurm: SlurmOptions = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--no-full", help="Also run the pooled baseline, at each proportion and with all labels."
        ),
    ] = True,
    published: Annotated[
        str | None, typer.Option(help="Show the paper's numbers as well: coco2014, vg200 or voc2007.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Toy size, to check that the grid runs.")] = False,
    run: Annotated[
        bool,
        typer.Option("--run/--no-run", help="Run missing cells; --no-run only rewrites tables and figures."),
    ] = True,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep the weights of finished cells.")
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="field: partial or single-positive; repeatable.", show_default="both"),
    ] = None,
    trials: Annotated[
        int,
        typer.Option(
            help="field: trials of each method and setting; 1: published options, no trials.", min=1
        ),
    ] = 3,
    reports: Annotated[bool, typer.Option("--reports", help="Write a report.html for every cell.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Run a grid of the paper's rows and write a CSV line per run, the tables and the figures.

    To resume, start the same command again: finished cells are kept, and an interrupted one continues.
    """
    from sarb.reproduce import QUICK, Plan

    options: dict[str, Any] = dict(pairs(option))
    if quick:
        recipe = recipe or QUICK["recipe"]
        options = {**(QUICK["data_options"] if data == "demo" else {}), **options}
    plan = Plan(
        source=data,
        out=str(out),
        data_options=options,
        recipe=recipe,
        assignments=tuple(set_ or ()),
        given={"epochs": epochs, "words": str(words) if words else None, "backbone": backbone},
        valid=valid,
        threads=threads,
        keep_models=keep_models,
        reports=reports,
    )
    common = {
        "rows": [row.strip() for row in rows.split(",")] if rows else None,
        "jobs": jobs,
        "run": run,
        "command": shlex.join(["sarb", *sys.argv[1:]]),
        "progress": not quiet,
        "engine": Engine(engine, address, tuple(slurm or ())),
    }
    if known:
        common["shares"] = _numbers("--known", known, float)
    elif quick:
        common["shares"] = QUICK["shares"]
    if seeds:
        common["seeds"] = _numbers("--seeds", seeds, int)
    if table == "field":
        _refuse_in_field({"--valid": valid, "--published": published, "--no-full": not full})
        page, failed = _field(plan, trials, setting, common)
    else:
        page, failed = _table(table, plan, full, published, common)
    if not quiet:
        typer.echo(f"tables and figures: {page}")
    if failed:
        raise typer.Exit(3)


def _refuse_in_field(given: dict[str, Any]) -> None:
    """Raise for options that only the paper's tables have."""
    if wrong := [flag for flag, value in given.items() if value]:
        raise ConfigError([f"{flag}: not for 'sarb reproduce field'" for flag in wrong])


def _field(
    plan: Any, trials: int, setting: list[str] | None, common: dict[str, Any]
) -> tuple[Path, list[Any]]:
    from sarb.reproduce.field import SETTINGS, reproduce_field

    return reproduce_field(plan, trials=trials, settings=setting or SETTINGS, **common)


def _table(
    table: str, plan: Any, full: bool, published: str | None, common: dict[str, Any]
) -> tuple[Path, list[Any]]:
    from sarb.reproduce import reproduce as start

    outcome = start(table, plan, full=full, beside=published, **common)
    return outcome.page, list(outcome.failed)


def _numbers(flag: str, text: str, number: type) -> list[Any]:
    """``"0.1,0.5"`` -> [0.1, 0.5]."""
    try:
        return [number(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ConfigError([f"{flag} {text}: expected numbers separated by commas ({error})"]) from error
