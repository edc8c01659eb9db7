"""``sarb tune``: search settings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import (
    SKIPPED,
    Address,
    EngineName,
    Options,
    SlurmOptions,
    echo,
    examples,
    folder_to_write,
    pairs,
)
from sarb.jobs.engines import Engine

TUNE = examples(
    "sarb tune --data demo --known 0.1 --method sarb --trials 20 --out runs/tuned",
    "sarb tune --data labels.csv -o encoding=binary --method asl --search lr=1e-4..1e-2:log "
    "--search method.gamma_negative=1..6 --out runs/tuned",
    "sarb tune --data demo --network pooled --search epochs=5,10,20 --sampler grid --out runs/epochs",
    "sarb tune small --data labels.csv -o encoding=binary --row Ours --prune --jobs 2 --out runs/ours",
)


def tune(
    data: Annotated[str, typer.Option(help="Data source, as for 'sarb train'.", metavar="SRC")],
    out: Annotated[
        Path,
        typer.Option(help="Folder for the trials and the result.", metavar="DIR", callback=folder_to_write),
    ],
    recipe: Annotated[
        str | None, typer.Argument(help="Recipe: a built-in name (see 'sarb list recipes') or a TOML file.")
    ] = None,
    option: Options = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            help="A setting and what to try: lr=1e-4..1e-1:log, epochs=5..20 or method.form=batch,image; repeatable.",
            show_default="the learning rate, and what the method declares",
            metavar="NAME=VALUES",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Trials in all.", show_default="20, or all points of a grid", min=1)
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(help="A row of the paper or of a later method, by name; see 'sarb list rows'."),
    ] = None,
    method: Annotated[str | None, typer.Option(help="Training method; see 'sarb list methods'.")] = None,
    network: Annotated[str | None, typer.Option(help="Network; see 'sarb list networks'.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Backbone; see 'sarb list backbones'.")] = None,
    known: Annotated[float, typer.Option(help="Share of the training labels to keep.")] = 1.0,
    single_positive: Annotated[
        bool, typer.Option("--single-positive", help="Keep one known positive of each image, nothing else.")
    ] = False,
    mask_seed: Annotated[
        int | None, typer.Option(help="Seed for choosing the labels to hide.", show_default="--seed")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of every trial.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate, if it is not searched.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side of the square input in pixels.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every training, and of the search.", show_default="0")
    ] = None,
    words: Annotated[str | None, typer.Option(help="Word vectors in GloVe format.", metavar="FILE")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, the same in all trials.", metavar="NAME=VALUE"),
    ] = None,
    valid: Annotated[
        float | None,
        typer.Option(
            help="Share of the training images to judge on.",
            show_default="the data's validation images, else 0.2",
        ),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What to judge by, on known validation labels: mAP, OF1, CF1 …")
    ] = "mAP",
    sampler: Annotated[str, typer.Option(help="How values are chosen: tpe, random or grid.")] = "tpe",
    prune: Annotated[
        bool, typer.Option("--prune", help="End a trial that falls below the median of the earlier ones.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Trials to run in parallel, each in its own process.", min=1)] = 1,
    threads: Annotated[
        int, typer.Option(help="Threads per trial; changing this changes rounding.", min=1)
    ] = 1,
    engine: EngineName = "local",
    address: Address = None,
    slurm: SlurmOptions = None,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep the weights of all trials, not only of the best.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Search settings: train many times, judge on known labels of validation images, keep the best recipe.

    To resume, start the same command again: finished trials are kept, and an interrupted one continues.
    """
    from sarb.workflows.tuning import tune as start

    tuned = start(
        data,
        out=out,
        search=search or [],
        trials=trials,
        recipe=recipe,
        data_options=pairs(option),
        row=row,
        known=known,
        single_positive=single_positive,
        mask_seed=mask_seed,
        valid=valid,
        metric=metric,
        sampler=sampler,
        prune=prune,
        jobs=jobs,
        threads=threads,
        engine=Engine(engine, address, tuple(slurm or ())),
        keep_models=keep_models,
        assignments=set_ or [],
        command=shlex.join(["sarb", *sys.argv[1:]]),
        progress=not quiet,
        method=method,
        network=network,
        backbone=backbone,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        image_size=image_size,
        seed=seed,
        words=words,
    )
    best = tuned.best
    if not quiet:
        echo(str(tuned))
        echo(f"recipe: {tuned.recipe}; weights: {best.folder}; page: {tuned.page}")
    for number, error in tuned.lost.items():
        echo(f"sarb: lost: trial {number}: {error}", err=True)
    if tuned.lost:
        raise typer.Exit(SKIPPED)
