"""``sarb evaluate``, ``predict``, ``explain``, ``export`` and ``report``: use a trained model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

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
    file_to_write,
    folder_to_write,
    pairs,
)
from sarb.cli.following import after_comparing, after_measuring, say_next, unused
from sarb.cli.parts import (
    Address,
    Engine,
    PartSize,
    file_or_parts,
    is_parquet,
    keeps_parts,
    not_with_parts,
    only_with_parts,
    tell,
    wants_parts,
)
from sarb.errors import ConfigError, SarbError

Run = Annotated[Path, typer.Argument(help="Run folder or model folder.", metavar="RUN")]
RunOrHub = Annotated[Path, typer.Argument(help="Run folder, model folder or hub id.", metavar="RUN")]
Batch = Annotated[int, typer.Option(help="Images per step.", min=1)]
Workers = Annotated[
    int, typer.Option(help="Processes that decode images; 0 decodes ahead in threads.", min=0)
]
#: images of a run's test split on which an export is compared
COMPARED = 14

EVALUATE = examples(
    "sarb evaluate runs/demo",
    "sarb evaluate runs/demo --data held.csv -o encoding=binary --json",
    "sarb evaluate runs/demo --data labels.csv -o encoding=binary --split test",
)
COMPARE = examples(
    "sarb compare runs/first runs/second --out runs/compared",
    "sarb compare runs/first runs/second --data held_out.csv -o encoding=binary --split all",
)
PREDICT = examples(
    "sarb predict runs/demo photo.jpg",
    "sarb predict runs/demo photos/ --out predictions.csv --threshold 0.5",
    "sarb predict --onnx model.onnx photo.jpg",
)
EXPLAIN = examples(
    "sarb explain runs/demo photo.jpg --category dog --out dog.png",
    "sarb explain runs/demo photo.jpg --json",
)
EXPORT = examples("sarb export runs/demo model.onnx", "sarb export runs/demo model.pt2")
REPORT = examples("sarb report runs/demo")


def evaluate(
    run: Run,
    data: Annotated[
        str | None, typer.Option(help="Data source.", show_default="the run's own", metavar="SRC")
    ] = None,
    option: Options = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="train, valid, test or all.",
            show_default="test; all if --data has no splits",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for metrics.json, per_category.csv and plots.", callback=folder_to_write),
    ] = None,
    batch_size: Batch = 32,
    workers: Workers = 0,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Compare a model's scores with known labels; unknown labels are never scored."""
    from sarb.runs.folder import ERRORS
    from sarb.workflows.evaluation import evaluate_session

    skipped: list[tuple[str, str]] = []
    report = evaluate_session(
        run,
        data,
        pairs(option),
        split,
        batch_size=batch_size,
        workers=workers,
        skipped=skipped,
    )
    if out is not None:
        report.save(out)
    echo(report.to_json().rstrip() if as_json else str(report))
    if not as_json:
        say_next(after_measuring(run))
    end_with(skipped, out / ERRORS if out is not None else None)


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders; each is compared with the first.", metavar="RUN RUN..."),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            help="Images to score and compare on.",
            show_default="the test images that the runs share",
            metavar="SRC",
        ),
    ] = None,
    option: Options = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="With --data: train, valid, test or all.", show_default="test; all if SRC has no splits"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for comparison.html and comparison.csv.", metavar="DIR", callback=folder_to_write
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    batch_size: Batch = 32,
    workers: Workers = 0,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Compare runs on the same test images; say where no difference can be seen."""
    from sarb.report.compared import PAGE
    from sarb.runs.folder import ERRORS
    from sarb.workflows.comparison import compare_session

    found = compare_session(
        runs, data, pairs(option), split, out, seed=seed, batch_size=batch_size, workers=workers
    )
    echo(found.to_json().rstrip() if as_json else str(found))
    if out is not None:
        echo(f"page: {out / PAGE}", err=True)
    if not as_json:
        say_next(after_comparing(found))
    end_with(found.skipped, out / ERRORS if out is not None else None)


def predict(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="Run folder or model folder; not with --onnx.", metavar="RUN", show_default=False
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Argument(
            help="Image files or folders; with parts also lists (CSV, Parquet), shards (.tar) and addresses (s3://…).",
            metavar="IMAGES",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(help="Use this exported model, without torch, instead of RUN.", metavar="FILE"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="CSV to write, - prints it; or a folder or address for Parquet parts.",
            metavar="FILE|DIR",
            callback=file_or_parts,
        ),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the K most probable labels.", min=1)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Only labels at least this probable.", min=0, max=1)
    ] = None,
    engine: Engine = None,
    address: Address = None,
    part_size: PartSize = 1024,
    batch_size: Batch = 32,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that decode images; 0 decodes ahead in threads. With parts: workers; 0 is one per core.",
            min=0,
        ),
    ] = 0,
    excel_safe: ExcelSafe = False,
    as_json: Json = False,
) -> None:
    """Print or save the labels of images."""
    given = [*([str(run)] if onnx is not None and run is not None else []), *(images or [])]
    model = run if onnx is None else onnx
    if model is None:
        raise ConfigError(["predict: no model given, neither RUN nor --onnx FILE"])
    if not given:
        raise ConfigError([f"predict: no image given after the model {model}"])
    how: dict[str, Any] = {"batch_size": batch_size, "workers": workers}
    if engine is None and is_parquet(out):
        engine = "local"
    if wants_parts(out, engine):
        from sarb.bulk.session import predict as predict_parts

        not_with_parts(onnx=onnx, excel_safe=excel_safe)
        how |= {"engine": engine or "local", "address": address, "part_size": part_size, "progress": True}
        with keeps_parts():
            done = predict_parts(model, given, str(out), top_k=top_k, threshold=threshold, **how)
        tell(done, as_json)
        return
    only_with_parts(address=address)
    from sarb.workflows.prediction import predict_session

    file = None if out is None else Path(out)
    check_one_output(file, as_json)
    paths = [Path(image) for image in given]
    scores = predict_session(model, paths, file, top_k, threshold, as_json, onnx=onnx, **how)
    if onnx is None and not as_json and scores.paths:
        say_next(["explain", model, scores.paths[0], "--out", unused(Path("explained.png"))])
    end_with(scores.skipped, errors_file(file))


def report(run: Run) -> None:
    """Write a run's report.html and plots again."""
    from sarb.report import write_report
    from sarb.runs.folder import CONFIG
    from sarb.runs.lookup import missing

    if not run.exists():
        raise missing(run)
    if not (run / CONFIG).is_file():
        raise SarbError(f"{run}: not a run folder (no {CONFIG})")
    echo(str(write_report(run)))
    say_next(after_measuring(run))


def explain(
    run: RunOrHub,
    image: Annotated[Path, typer.Argument(help="Image file.", metavar="IMAGE")],
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Category to look for; repeatable.", show_default="those the model finds", metavar="NAME"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Picture to write.", metavar="FILE.png", callback=file_to_write)
    ] = None,
    maps: Annotated[
        str, typer.Option(help="attention (where it looked) or evidence (what each location added).")
    ] = "attention",
    influences: Annotated[int, typer.Option(help="Other categories to name for each score.", min=0)] = 5,
    as_json: Json = False,
) -> None:
    """Show where a model looked for a category, and which other categories moved its score."""
    if out is not None and out.suffix.lower() != ".png":
        raise ConfigError([f"--out: expected a file that ends in .png, got {out.name}"])
    from sarb.inference.explanation import explain
    from sarb.model import load_model

    found = explain(load_model(run), image, category or None, maps=maps, influences=influences)
    if out is not None:
        found.save(out)
        echo(f"heat maps: {out}", err=True)
    echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))
    if not as_json:
        say_next(["serve", run])


def export(
    run: RunOrHub,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="File to write: model.onnx or model.pt2.",
            metavar="FILE",
            show_default=False,
            callback=file_to_write,
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="onnx or torch (torch.export).", show_default="by the name of the file")
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            help="Image or folder to compare on; repeatable.", show_default="some of the run's test images"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The same as FILE.", metavar="FILE", callback=file_to_write)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model as one file for other programs, after comparing it with torch."""
    target = file or out
    if target is None or (file is not None and out is not None):
        raise ConfigError([f"export: expected one file to write, e.g. sarb export {run} model.onnx"])
    from sarb.data.images import find_images
    from sarb.inference.export import export
    from sarb.model import load_model

    chosen = find_images(images) if images else _test_images(run)
    done = export(load_model(run), target, format=format, images=chosen)
    if as_json:
        found = {"path": str(done.path), "format": done.format, "bytes": done.size, "images": done.images}
        echo(json.dumps({**found, "differences": done.differences, "reading": done.reading}))
    elif done.format == "onnx" and chosen:
        say_next(["predict", "--onnx", done.path, chosen[0]])


def _test_images(run: Path) -> list[Path]:
    """Some of the test images of a run, if they are still there."""
    from sarb.runs.folder import RunFolder

    labels = RunFolder(run).test
    paths = [] if labels is None else [Path(path) for path in labels.paths[:COMPARED]]
    return [path for path in paths if path.is_file()]
