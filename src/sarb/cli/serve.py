"""``sarb serve``: try a model on photos and review labels in the browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Options, examples, pairs
from sarb.errors import ConfigError, SarbError

EPILOG = examples(
    "sarb serve runs/demo",
    "sarb serve runs/mine --labels labels.csv -o encoding=binary --out reviewed.csv",
    "sarb serve runs/demo --port 0",
)


def serve(
    run: Annotated[Path, typer.Argument(help="Run folder or model folder.", metavar="RUN")],
    labels: Annotated[
        str | None, typer.Option(help="Data source with unknown labels to review.", metavar="SRC")
    ] = None,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="CSV to write the answers to.",
            show_default="reviewed.csv next to the labels",
            metavar="FILE",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default only this computer has access.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes any free port.", min=0, max=65535)
    ] = 8000,
) -> None:
    """Try a model on photos and review unknown labels in the browser; also serves a JSON API."""
    if labels is None and (option or out is not None):
        raise ConfigError(["-o and --out are only for a review; add --labels SRC"])
    missing = [
        name for name in ("fastapi", "uvicorn", "python_multipart") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise SarbError(
            f"sarb serve needs {', '.join(missing)}; install them with: pip install 'sarb[serve]'"
        )
    from sarb.serve.start import serve as start

    code = start(run, labels=labels, options=pairs(option), out=out, host=host, port=port)
    if code:  # stopped by a signal, as servers are; not KeyboardInterrupt, whose message is about training
        raise SystemExit(code)
