"""``sarb evaluate``, ``predict``, ``explain``, ``export`` and ``report``: use a trained model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Json, Options, end_with, errors_file, examples, pairs
from sarb.errors import ConfigError, SarbError

Run = Annotated[Path, typer.Argument(help="Run folder or model folder.", metavar="RUN")]
RunOrHub = Annotated[Path, typer.Argument(help="Run folder, model folder or hub id.", metavar="RUN")]
Batch = Annotated[int, typer.Option(help="Images per step.")]
Workers = Annotated[
    int, typer.Option(help="Processes that decode images; 0 decodes ahead in threads.", min=0)
]
#: images of a run's test split on which an export is compared
COMPARED = 14

EVALUATE = examples(
    "sarb evaluate runs/demo",
    "sarb evaluate runs/demo --data labels.csv -o encoding=binary --split test --json",
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
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    out: Annotated[
        Path | None, typer.Option(help="Folder for metrics.json, per_category.csv and plots.")
    ] = None,
    batch_size: Batch = 32,
    workers: Workers = 0,
    as_json: Json = False,
) -> None:
    """Compare a model's scores with known labels; unknown labels are never scored."""
    from sarb.runs.folder import ERRORS
    from sarb.workflows.evaluation import evaluate_session

    skipped: list[tuple[str, str]] = []
    report = evaluate_session(
        run, data, pairs(option), split, batch_size=batch_size, workers=workers, skipped=skipped
    )
    if out is not None:
        report.save(out)
    typer.echo(report.to_json().rstrip() if as_json else str(report))
    end_with(skipped, out / ERRORS if out is not None else None)


def predict(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="Run folder or model folder; not with --onnx.", metavar="RUN", show_default=False
        ),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Argument(help="Image files or folders.", metavar="IMAGES", show_default=False),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(help="Use this exported model, without torch, instead of RUN.", metavar="FILE"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write.", metavar="FILE")] = None,
    top_k: Annotated[int | None, typer.Option(help="Only the K most probable labels.", min=1)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Only labels at least this probable.", min=0, max=1)
    ] = None,
    batch_size: Batch = 32,
    workers: Workers = 0,
    as_json: Json = False,
) -> None:
    """Print or save the labels of images."""
    from sarb.workflows.prediction import predict_session

    given = [*([run] if onnx is not None and run is not None else []), *(images or [])]
    model = run if onnx is None else onnx
    if model is None:
        raise ConfigError(["predict: no model given, neither RUN nor --onnx FILE"])
    if not given:
        raise ConfigError([f"predict: no image given after the model {model}"])
    scores = predict_session(
        model, given, out, top_k, threshold, as_json, onnx=onnx, batch_size=batch_size, workers=workers
    )
    end_with(scores.skipped, errors_file(out))


def report(run: Run) -> None:
    """Write a run's report.html and plots again."""
    from sarb.report import write_report
    from sarb.runs.folder import CONFIG
    from sarb.runs.lookup import missing

    if not run.exists():
        raise missing(run)
    if not (run / CONFIG).is_file():
        raise SarbError(f"{run}: not a run folder (no {CONFIG})")
    typer.echo(str(write_report(run)))


def explain(
    run: RunOrHub,
    image: Annotated[Path, typer.Argument(help="Image file.", metavar="IMAGE")],
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Category to look for; repeatable.", show_default="those the model finds", metavar="NAME"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Picture to write.", metavar="FILE.png")] = None,
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
        typer.echo(f"heat maps: {out}", err=True)
    typer.echo(json.dumps(found.to_dict(), ensure_ascii=False) if as_json else str(found))


def export(
    run: RunOrHub,
    out: Annotated[Path, typer.Argument(help="File to write: model.onnx or model.pt2.", metavar="FILE")],
    format: Annotated[
        str | None, typer.Option(help="onnx or torch (torch.export).", show_default="by the name of the file")
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            help="Image or folder to compare on; repeatable.", show_default="some of the run's test images"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a model as one file for other programs, after comparing it with torch."""
    from sarb.data.images import find_images
    from sarb.inference.export import export
    from sarb.model import load_model

    chosen = find_images(images) if images else _test_images(run)
    done = export(load_model(run), out, format=format, images=chosen)
    if as_json:
        found = {"path": str(done.path), "format": done.format, "bytes": done.size, "images": done.images}
        typer.echo(json.dumps({**found, "differences": done.differences}))


def _test_images(run: Path) -> list[Path]:
    """Some of the test images of a run, if they are still there."""
    from sarb.runs.folder import RunFolder

    labels = RunFolder(run).test
    paths = [] if labels is None else [Path(path) for path in labels.paths[:COMPARED]]
    return [path for path in paths if path.is_file()]
