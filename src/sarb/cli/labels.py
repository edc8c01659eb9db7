"""``sarb calibrate``, ``complete`` and ``suggest``: from a trained model to finished labels."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sarb.cli.common import (
    ExcelSafe,
    Json,
    Options,
    check_one_output,
    echo,
    end_with,
    errors_file,
    examples,
    file_or_stdout,
    pairs,
)
from sarb.cli.following import after_filling, after_training, say_next
from sarb.cli.parts import (
    Address,
    Engine,
    FeatureEngine,
    FeatureWorkers,
    PartSize,
    features_by,
    file_or_parts,
    is_parquet,
    keeps_parts,
    not_with_parts,
    only_with_parts,
    tell,
    wants_parts,
)
from sarb.errors import ConfigError

if TYPE_CHECKING:
    from sarb.labelling.completion import Filled

Run = Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")]
Source = Annotated[
    str | None, typer.Option("--data", help="Data source.", show_default="the run's own", metavar="SRC")
]
Batch = Annotated[int, typer.Option(help="Images per step.", min=1)]
Which = Annotated[
    str,
    typer.Option(help="Scores to use: model, or oof (out-of-fold) for the training images.", metavar="KIND"),
]

CALIBRATE = examples(
    "sarb calibrate runs/demo",
    "sarb calibrate runs/demo --folds 5 --method isotonic",
    "sarb calibrate runs/demo --undo",
)
COMPLETE = examples(
    "sarb complete runs/demo --out filled.csv",
    "sarb complete runs/demo --out filled.csv --min-confidence 0.9",
    "sarb complete runs/demo --out wide.csv --to wide --min-precision 0.95",
)
SUGGEST = examples(
    "sarb suggest runs/demo --out ask.csv", "sarb suggest runs/demo --budget 500 --out ask.csv"
)


def calibrate(
    run: Run,
    folds: Annotated[
        int, typer.Option(help="Trainings, each without one part of the known labels.", min=2)
    ] = 3,
    method: Annotated[str, typer.Option(help="platt, temperature or isotonic.")] = "platt",
    seed: Annotated[int, typer.Option(help="Seed of the parts.")] = 0,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the calibration of the run.")] = False,
    engine: FeatureEngine = None,
    address: Address = None,
    workers: FeatureWorkers = 0,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Calibrate probabilities and thresholds on out-of-fold scores of the known labels."""
    from sarb.workflows.calibration import calibrate_session, describe, undo_calibration

    if undo:
        undo_calibration(run)
        if not quiet:
            echo(f"{run}: not calibrated any more; report and metrics show that", err=True)
        return
    with features_by(engine, address, workers):
        found = calibrate_session(run, folds=folds, method=method, seed=seed, progress=not quiet)
    if as_json:
        kept = {key: found.figures[key] for key in ("calibration_error", "brier_score", "OF1", "extreme")}
        echo(json.dumps({"method": found.method, "source": found.source, **kept}, indent=2))
    elif not quiet:
        echo(describe(found, run), err=True)
        echo(f"{run}: report and metrics show this now; export again what you exported before", err=True)
        say_next(after_training(run))


def complete(
    run: Run,
    out: Annotated[
        str,
        typer.Option(
            help="File to write, with conflicts.csv beside it, - prints it; or a folder or address for Parquet parts.",
            metavar="FILE|DIR",
            callback=file_or_parts,
        ),
    ],
    data: Source = None,
    option: Options = None,
    to: Annotated[
        str, typer.Option(help="long, wide, open_images or label_studio.", metavar="FORMAT")
    ] = "long",
    min_confidence: Annotated[
        float | None, typer.Option(help="Fill in a label only if it is at least this probable.", min=0, max=1)
    ] = None,
    min_precision: Annotated[
        float | None,
        typer.Option(help="Fill in present labels so that this share of them is correct.", min=0, max=1),
    ] = None,
    scores: Which = "model",
    split: Annotated[
        str | None,
        typer.Option(
            help="Images to fill in: all, train, valid or test.", show_default="all; train with --to wide"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    engine: Engine = None,
    address: Address = None,
    part_size: PartSize = 1024,
    batch_size: Batch = 32,
    workers: Annotated[
        int | None, typer.Option(help="With parts: workers.", show_default="one per core", min=1)
    ] = None,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Fill in unknown labels; known ones are never changed, doubtful ones are listed in conflicts.csv."""
    sure: dict[str, float | None] = {"min_confidence": min_confidence, "min_precision": min_precision}
    if wants_parts(out, engine):
        from sarb.bulk.joined import one_file
        from sarb.bulk.session import complete as complete_parts

        replaces = overwrite and one_file(out) is None
        not_with_parts(to=to != "long", scores=scores != "model", overwrite=replaces, excel_safe=excel_safe)
        how: dict[str, Any] = {"engine": engine or "local", "address": address, "part_size": part_size}
        how |= {"batch_size": batch_size, "workers": workers or 0, "progress": True, "overwrite": overwrite}
        with keeps_parts():
            done = complete_parts(run, data, out, data_options=pairs(option), split=split, **sure, **how)
        tell(done, as_json)
        return
    only_with_parts(address=address, workers=workers)
    if to == "long" and is_parquet(out):
        raise ConfigError(
            [f"--out {out}: a long table is a CSV; add --engine local for Parquet, without conflicts.csv"]
        )
    file = Path(out)
    check_one_output(file, as_json)
    if excel_safe and to not in ("long", "open_images"):
        raise ConfigError(
            [f"--excel-safe is for tables of our own form; --to {to} keeps every name as it is"]
        )
    from sarb.workflows.completion import complete_session

    filled = complete_session(
        run,
        file,
        source=data,
        data_options=pairs(option),
        to=to,
        **sure,
        which=scores,
        split=split,
        overwrite=overwrite,
        batch_size=batch_size,
        progress=True,
    )
    _tell_filled(filled, file, sure, as_json)
    if not as_json:
        say_next(after_filling(run, data, pairs(option)))
    end_with(filled.scores.skipped, errors_file(file))


def _tell_filled(filled: Filled, out: Path, sure: Mapping[str, float | None], as_json: bool) -> None:
    """Say what was filled in, and how sure that is."""
    if as_json:
        numbers = filled.summary().items()
        found = {name: _number(value) for name, value in numbers}
        groups = [
            {**{name: _number(value) for name, value in one._asdict().items()}, "rough": bool(one.rough)}
            for one in filled.backing
        ]
        echo(json.dumps({**found, "backing": groups}, indent=2, ensure_ascii=False))
        return
    echo(f"{out}: {filled}", err=True)
    if filled.caution:
        echo(f"{filled.caution} (all: --json)", err=True)
    if filled.given.values.size and not filled.given.known.all() and not filled.present.any():
        echo(_nothing_present(sure["min_confidence"], sure["min_precision"]), err=True)


def _number(value: float | str) -> float | str | None:
    """A value for JSON, which has no nan."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _nothing_present(min_confidence: float | None, min_precision: float | None) -> str:
    """Why nothing was filled as present, and what to do."""
    asked = {"--min-confidence": min_confidence, "--min-precision": min_precision}
    lower = "".join(f"lower {flag}, or " for flag, value in asked.items() if value is not None)
    return f"nothing filled as present: no label is that certain; {lower}answer questions in the browser"


def suggest(
    run: Run,
    out: Annotated[
        Path, typer.Option(help="CSV to write; - prints it.", metavar="FILE", callback=file_or_stdout)
    ],
    budget: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of questions.",
            show_default="1 % of the unknown labels, at least 50, at most 2,000",
            min=1,
        ),
    ] = None,
    data: Source = None,
    option: Options = None,
    scores: Which = "model",
    weight: Annotated[
        list[str] | None,
        typer.Option(help="finds, uncertainty, cooccurrence, rarity or diversity.", metavar="NAME=NUMBER"),
    ] = None,
    batch_size: Batch = 32,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Choose the unknown labels of the training images that a person should answer next."""
    from sarb.workflows.completion import suggest_session, suggest_weights

    check_one_output(out, as_json)
    asked, scores_of = suggest_session(
        run,
        budget,
        out,
        source=data,
        data_options=pairs(option),
        which=scores,
        weights=suggest_weights(pairs(weight)),
        batch_size=batch_size,
        progress=True,
    )
    if as_json:
        questions = [question._asdict() for question in asked.questions]
        echo(json.dumps(questions, indent=2, ensure_ascii=False))
    how_many = (
        "" if budget else " (1 % of the unknown labels, at least 50, at most 2,000; --budget changes it)"
    )
    echo(f"{out}: {len(asked):,} questions{how_many}\n{asked.outlook}", err=True)
    if not as_json:
        say_next(after_filling(run, data, pairs(option)))
    end_with(scores_of.skipped, errors_file(out))
