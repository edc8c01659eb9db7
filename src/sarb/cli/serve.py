"""``sarb serve``: try a model on photos and review labels in the browser."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Annotated

import typer

from sarb.cli.common import Options, examples, file_to_write, pairs
from sarb.errors import ConfigError, SarbError
from sarb.label_studio.host import DEFAULT_URL, TOKEN, URL

EPILOG = examples(
    "sarb serve runs/demo",
    "sarb serve runs/mine --labels labels.csv -o encoding=binary --out reviewed.csv",
    "sarb serve runs/mine --labels labels.csv -o encoding=binary --ask test",
    "sarb serve runs/demo --port 0",
    "sarb serve runs/mine --label-studio --port 9090 --retrain-after 50",
)
REVIEW_ONLY = "-o, --out and --assist are only for a review; add --labels SRC"


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
            show_default="reviewed.csv next to the labels, audited-test.csv for --ask test",
            metavar="FILE",
            callback=file_to_write,
        ),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(
            help="Photos to ask about: train, valid or test. Answers about test photos go to their own file. "
            "Without --labels, the run's own data are reviewed.",
            show_default="train",
            metavar="SPLIT",
        ),
    ] = None,
    assist: Annotated[
        bool, typer.Option("--assist", help="Show the model's opinion with every question, not on a key.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; on any other than this computer, requests need a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes any free port.", min=0, max=65535)
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that requests must know; SARB_TOKEN does the same.",
            show_default="a new token with another --host than this computer, else none",
            metavar="FILE",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="Certificate for HTTPS, PEM.", metavar="FILE")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM.", metavar="FILE")] = None,
    label_studio: Annotated[
        bool, typer.Option("--label-studio", help="Be an ML backend of Label Studio.")
    ] = False,
    label_studio_url: Annotated[
        str, typer.Option(help="Address of Label Studio.", envvar=URL, metavar="URL")
    ] = DEFAULT_URL,
    local_root: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of Label Studio's local files; repeatable.", metavar="DIR"),
    ] = None,
    retrain_after: Annotated[
        int | None,
        typer.Option(
            help="Train again after N answered images; 0: only on Label Studio's Start training.",
            show_default="never",
            min=0,
            metavar="N",
        ),
    ] = None,
) -> None:
    """Try a model on photos and review unknown labels in the browser; also serves a JSON API."""
    if labels is None and ask is None and (option or out is not None or assist) and not label_studio:
        raise ConfigError([REVIEW_ONLY])
    if not label_studio and (local_root or retrain_after is not None):
        raise ConfigError(["--local-root and --retrain-after are only for --label-studio"])
    if label_studio and (ask is not None or assist):
        raise ConfigError(
            ["--ask and --assist are for a review here, and --label-studio for one there; choose"]
        )
    if (tls_certificate is None) != (tls_key is None):
        raise ConfigError(["--tls-certificate and --tls-key go together"])
    missing = [
        name for name in ("fastapi", "uvicorn", "python_multipart") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise SarbError(
            f"sarb serve needs {', '.join(missing)}; install them with: pip install 'sarb[serve]'"
        )
    from sarb.serve.label_studio_open import LabelStudio
    from sarb.serve.start import serve as start

    backend = None
    if label_studio:
        token = os.environ.get(TOKEN, "")
        backend = LabelStudio(label_studio_url, token, tuple(local_root or ()), retrain_after)
    code = start(
        run,
        labels=labels,
        options=pairs(option),
        out=out,
        ask=ask,
        assist=assist,
        host=host,
        port=port,
        token_file=token_file,
        tls=(tls_certificate, tls_key) if tls_certificate and tls_key else None,
        label_studio=backend,
    )
    if code:  # stopped by a signal, as servers are; not KeyboardInterrupt, whose message is about training
        raise SystemExit(code)
