"""``sarb train``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import SKIPPED, Options, echo, end_with, examples, folder_to_write, pairs
from sarb.cli.following import after_training, say_next
from sarb.cli.parts import Address, FeatureEngine, features_by

TRAIN = examples(
    "sarb train --data demo --known 0.1 --out runs/demo",
    "sarb train --data labels.csv -o encoding=binary --out runs/mine",
    "sarb train --data labels.csv -o encoding=binary --method sarb --epochs 15 --out runs/sarb",
    'sarb train --data demo --row "Ours w/ SAM" --known 0.1 --out runs/sam',
    "sarb train coco2014 --data coco:/data/coco --known 0.1 --set backbone.weights=resnet101.pth --out runs/coco",
    "sarb train --data demo --known 0.1 --out runs/demo --resume",
)


def train(
    recipe: Annotated[
        str | None, typer.Argument(help="Recipe: a built-in name (see 'sarb list recipes') or a TOML file.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Data source: demo, labels.csv, coco:DIR, voc:DIR, vg:DIR.", metavar="SRC"),
    ] = None,
    option: Options = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Training method; see 'sarb list methods'.",
            show_default="auto, or sarb with another --network",
        ),
    ] = None,
    on_top: Annotated[
        bool,
        typer.Option(
            "--on-top", help="Train --method on what method auto leaves over, and keep it if that helps."
        ),
    ] = False,
    network: Annotated[
        str | None,
        typer.Option(
            help="Network to train; see 'sarb list networks'.",
            show_default="probe, or ssgrl with another --method",
        ),
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Feature extractor: see 'sarb list backbones', or timm:NAME, hf:NAME.")
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(help="A row of the paper or of a later method, by name; see 'sarb list rows'."),
    ] = None,
    claims: Annotated[
        str | None,
        typer.Option(help="What method auto may use: strict, no-names or names.", show_default="names"),
    ] = None,
    finetune: Annotated[
        bool,
        typer.Option(
            "--finetune",
            help="Method auto also trains the last stage of the backbone, and keeps it if that helps.",
        ),
    ] = False,
    known: Annotated[
        float, typer.Option(help="Share of the training labels to keep; 1 hides nothing.")
    ] = 1.0,
    single_positive: Annotated[
        bool,
        typer.Option(
            "--single-positive",
            help="Keep one known positive of each image and nothing else; not with --known.",
        ),
    ] = False,
    mask_seed: Annotated[
        int | None, typer.Option(help="Seed for choosing the labels to hide.", show_default="--seed")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the training images; with auto, of what it trains.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate; with auto, of what it trains.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side of the square input in pixels.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.", show_default="0")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder.", show_default="runs/DATA-METHOD-KNOWN", callback=folder_to_write),
    ] = None,
    valid: Annotated[float | None, typer.Option(help="Share of training images kept for validation.")] = None,
    words: Annotated[
        str | None,
        typer.Option(help="Word vectors in GloVe format, or hf:NAME; not used by auto.", metavar="FILE"),
    ] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Run or model to start from; auto takes over its backbone.", metavar="MODEL"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    checkpoint_every: Annotated[
        str | None,
        typer.Option(
            help="Steps (200) or time (5m) between two checkpoints; 'epoch' saves only whole epochs.",
            show_default="10m",
            metavar="N|TIME",
        ),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after this many epochs without a better validation mAP.")
    ] = None,
    cache: Annotated[bool | None, typer.Option("--cache/--no-cache", help="Use the feature cache.")] = None,
    cache_views: Annotated[
        int | None, typer.Option(help="Train on V cached augmented views of each image.", metavar="V")
    ] = None,
    augment: Annotated[
        bool | None, typer.Option("--augment/--no-augment", help="Random crops and flips.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that decode images; 0 decodes in threads. With --engine: workers; 0 is one per core."
        ),
    ] = None,
    engine: FeatureEngine = None,
    address: Address = None,
    precision: Annotated[str | None, typer.Option(help="no (fp32), fp16, bf16 or fp64.")] = None,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile the trained part with torch.compile.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting, e.g. method.folds=10; with --method sarb also method.alpha=0.3.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    track: Annotated[
        list[str] | None, typer.Option(help="Also log to tensorboard or wandb; repeatable.", metavar="NAME")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print a row per epoch and other details.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")] = False,
) -> None:
    """Train a model on partial labels, test it, and write the run folder and its report.

    By default it fits method auto: simple models on frozen features. --method sarb trains the paper's method.
    """
    from sarb.runs.folder import RunFolder
    from sarb.workflows.training import train_session

    given = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "image_size": image_size,
        "cache": cache,
        "cache_views": cache_views,
        "augment": augment,
        "workers": workers,
        "precision": precision,
        "compile": compile_ or None,
        "checkpoint_every": checkpoint_every,
        "patience": patience,
        "words": words,
        "method": method,
        "network": network,
        "backbone": backbone,
    }
    with features_by(engine, address, workers):
        folder, report = train_session(
            recipe=recipe,
            source=data,
            data_options=pairs(option),
            row=row,
            known=known,
            single_positive=single_positive,
            mask_seed=mask_seed,
            seed=seed,
            out=out,
            valid=valid,
            init=init,
            resume=resume,
            assignments=[
                *(set_ or []),
                *([f"method.claims={claims}"] if claims is not None else []),
                *(["method.finetune=true"] if finetune else []),
            ],
            given=given,
            quiet=quiet,
            verbose=verbose,
            track=track or [],
            on_top=on_top,
        )
    run = RunFolder(folder)
    if not quiet:
        echo(str(report))
        echo(f"report: {run.report_page}")
        say_next(after_training(folder))
    skipped = [(row["file_name"], row["reason"]) for row in run.errors()]
    # torchrun takes any code but 0 for a crash and would stop or repeat the finished run
    end_with(skipped, code=SKIPPED if os.environ.get("WORLD_SIZE", "1") == "1" else 0)
