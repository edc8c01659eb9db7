"""``sarb data``: check, describe, convert and audit a data source without changing it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import (
    ExcelSafe,
    Json,
    Options,
    echo,
    end_with,
    errors_file,
    examples,
    file_or_stdout,
    file_to_write,
    folder_to_write,
    pairs,
)
from sarb.cli.following import after_audit, after_checking, say_next
from sarb.files import is_stdout

data_app = typer.Typer(
    help="Check, describe, convert and audit data sources.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Source = Annotated[str, typer.Argument(help="Data source: demo, labels.csv, coco:DIR …", metavar="SRC")]
Images = Annotated[bool, typer.Option("--images/--no-images", help="Open the image files.")]


@data_app.command(
    epilog=examples(
        "sarb data check labels.csv -o encoding=binary",
        "sarb data check coco:/data/coco --no-images --json > found.json",
    )
)
def check(
    source: Source,
    option: Options = None,
    images: Images = True,
    limit: Annotated[int, typer.Option(help="Findings to show per kind; all are counted.", min=1)] = 20,
    as_json: Json = False,
) -> None:
    """Find all problems in a data source; the exit code is 2 if it cannot be used for training."""
    from sarb.data.check.source import check as check_source

    checked = check_source(source, open_images=images, limit=limit, progress=True, **pairs(option))
    echo(checked.to_json() if as_json else str(checked))
    if not checked.ok:
        raise typer.Exit(2)
    if not as_json:
        say_next(after_checking(source, checked.reading))


@data_app.command(
    epilog=examples(
        "sarb data stats labels.csv -o encoding=binary",
        "sarb data stats voc:/data/VOCdevkit --html stats.html",
    )
)
def stats(
    source: Source,
    option: Options = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with plots and sample images.", callback=file_to_write),
    ] = None,
    images: Images = True,
    samples: Annotated[int, typer.Option(help="Number of sample images.", min=0)] = 24,
    seed: Annotated[int, typer.Option(help="Seed for choosing the samples.")] = 0,
    as_json: Json = False,
) -> None:
    """Count labels per category, image and pair; print a table or JSON, or write a page with plots."""
    from sarb.data import load
    from sarb.data.check.stats import stats as count_labels
    from sarb.workflows.statistics import save_stats

    statistics = count_labels(load(source, **pairs(option)))
    echo(statistics.to_json().rstrip() if as_json else str(statistics))
    if html is not None:
        save_stats(statistics, html, samples=samples, seed=seed, images=images)
        echo(f"page: {html}", err=True)
    if not as_json:
        say_next(after_checking(source, pairs(option)))


@data_app.command(
    epilog=examples(
        "sarb data convert labels.csv -o encoding=binary --to parquet --out labels.parquet",
        "sarb data convert coco:/data/coco --to csv --out coco.csv --encoding words",
        "sarb data convert demo --known 0.3 --out gaps.csv",
    )
)
def convert(
    source: Source,
    out: Annotated[
        Path, typer.Option(help="File to write; - prints it.", metavar="FILE", callback=file_or_stdout)
    ],
    option: Options = None,
    to: Annotated[
        str | None, typer.Option(help="Format.", show_default="suffix of FILE", metavar="FORMAT")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the labels.", show_default="same as the source")
    ] = None,
    known: Annotated[
        float,
        typer.Option(help="Share of the training labels to write; the others are unknown.", min=0, max=1),
    ] = 1.0,
    single_positive: Annotated[
        bool,
        typer.Option(
            "--single-positive",
            help="Write one known positive of each training image and nothing else; not with --known.",
        ),
    ] = False,
    mask_seed: Annotated[int, typer.Option(help="Seed for choosing the labels to hide.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
    excel_safe: ExcelSafe = False,
) -> None:
    """Write the labels of a source as a table, and print the command that reads it."""
    from sarb.data.writers.write import convert as convert_source

    command = convert_source(
        source,
        out,
        to,
        encoding,
        overwrite=overwrite,
        options=pairs(option),
        known=known,
        single_positive=single_positive,
        mask_seed=mask_seed,
    )
    echo(f"{out} written; read it with: {command}", err=is_stdout(out))


@data_app.command(
    epilog=examples(
        "sarb data audit runs/demo --out audit",
        "sarb data audit runs/demo --data labels.csv -o encoding=binary --out audit --overwrite",
    )
)
def audit(
    run: Annotated[Path, typer.Argument(help="Run folder.", metavar="RUN")],
    out: Annotated[
        Path,
        typer.Option(help="Folder for audit.html and audit.csv.", metavar="DIR", callback=folder_to_write),
    ],
    data: Annotated[
        str | None, typer.Option(help="Data source.", show_default="the run's own", metavar="SRC")
    ] = None,
    option: Options = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier audit in DIR.")] = False,
    batch_size: Annotated[int, typer.Option(help="Images per step.", min=1)] = 32,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Find duplicates, leakage, doubtful labels, faulty or odd images and categories that overlap."""
    from sarb.workflows.audit import PAGE, TABLE, audit_session

    found = audit_session(
        run,
        out,
        source=data,
        data_options=pairs(option),
        overwrite=overwrite,
        batch_size=batch_size,
        progress=True,
    )
    echo(found.to_json() if as_json else str(found), err=not as_json)
    echo(f"page: {out / PAGE}\ntable: {out / TABLE}", err=True)
    if not as_json:
        if found.findings:
            unchanged = shlex.join(["sarb", *map(str, after_audit(run, data, pairs(option), 0))])
            echo(
                "correct your table or replace photos (sarb changes neither), then train again; "
                f"if nothing was changed: {unchanged}",
                err=True,
            )
        say_next(after_audit(run, data, pairs(option), len(found.findings)))
    end_with(found.skipped, errors_file(out / TABLE))
