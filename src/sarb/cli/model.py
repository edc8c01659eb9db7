"""``sarb explain`` and ``sarb export``: look into a trained model, and take it elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Json
from sarb.errors import ConfigError

Run = Annotated[Path, typer.Argument(help="Run folder, model folder or hub id.", metavar="RUN")]
#: images of a run's test split on which an export is compared
COMPARED = 14


def explain(
    run: Run,
    image: Annotated[Path, typer.Argument(help="Image file.", metavar="IMAGE")],
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Category to look for; repeatable.", show_default="those the model finds", metavar="NAME"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Picture to write.", metavar="FILE.png")] = None,
    maps: Annotated[
        str, typer.Option(help="attention (where it looked) or evidence (what each place added).")
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
    run: Run,
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
    from sarb.labels import LabelMatrix

    file = run / "test_labels.npz"
    paths = [Path(path) for path in LabelMatrix.load(file).paths[:COMPARED]] if file.is_file() else []
    return [path for path in paths if path.is_file()]
