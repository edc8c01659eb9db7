"""``sarb data``: check, describe and convert a data source without changing it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Json, Options, examples, pairs

data_app = typer.Typer(
    help="Check, describe and convert data sources.",
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
    typer.echo(checked.to_json() if as_json else str(checked))
    if not checked.ok:
        raise typer.Exit(2)


@data_app.command(
    epilog=examples(
        "sarb data stats labels.csv -o encoding=binary",
        "sarb data stats voc:/data/VOCdevkit --html stats.html",
    )
)
def stats(
    source: Source,
    option: Options = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots and sample images.")] = None,
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
    typer.echo(statistics.to_json().rstrip() if as_json else str(statistics))
    if html is not None:
        save_stats(statistics, html, samples=samples, seed=seed, images=images)
        typer.echo(f"page: {html}", err=True)


@data_app.command(
    epilog=examples(
        "sarb data convert labels.csv -o encoding=binary --to parquet --out labels.parquet",
        "sarb data convert coco:/data/coco --to csv --out coco.csv --encoding words",
    )
)
def convert(
    source: Source,
    out: Annotated[Path, typer.Option(help="File to write.", metavar="FILE")],
    option: Options = None,
    to: Annotated[
        str | None, typer.Option(help="Format.", show_default="suffix of FILE", metavar="FORMAT")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the labels.", show_default="same as the source")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write the labels of a source as a table, and print the command that reads it."""
    from sarb.data.writers.write import convert as convert_source

    command = convert_source(source, out, to, encoding, overwrite=overwrite, options=pairs(option))
    typer.echo(f"{out} written; read it with: {command}")
