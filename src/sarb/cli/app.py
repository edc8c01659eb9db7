"""The command line: one sub-command per verb, each a thin layer over the library."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from sarb import __version__
from sarb.cli.bench import bench
from sarb.cli.common import Json, Options, examples, pairs
from sarb.cli.data import data_app
from sarb.cli.hints import usage_hint
from sarb.cli.labels import CALIBRATE, COMPLETE, SUGGEST, calibrate, complete, suggest
from sarb.cli.model import explain, export
from sarb.cli.reproduce import EPILOG, reproduce
from sarb.cli.serve import EPILOG as SERVE_EXAMPLES
from sarb.cli.serve import serve
from sarb.errors import ConfigError, SarbError, unknown_name

app = typer.Typer(
    name="sarb",
    help="Multi-label image recognition with partial labels: learn every label from a few.",
    epilog="Start with: sarb train --data demo --known 0.1 --out runs/demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data_app, name="data")
app.command(epilog=EPILOG)(reproduce)
app.command(epilog=SERVE_EXAMPLES)(serve)
app.command(epilog=CALIBRATE)(calibrate)
app.command(epilog=COMPLETE)(complete)
app.command(epilog=SUGGEST)(suggest)
app.command(epilog=examples("sarb bench --only decouple graph", "sarb bench --quick"))(bench)

app.command(
    epilog=examples(
        "sarb explain runs/demo photo.jpg --category dog --out dog.png",
        "sarb explain runs/demo photo.jpg --json",
    )
)(explain)
app.command(epilog=examples("sarb export runs/demo model.onnx", "sarb export runs/demo model.pt2"))(export)

Run = Annotated[Path, typer.Argument(help="Run folder or model folder.", metavar="RUN")]
Batch = Annotated[int, typer.Option(help="Images per step.")]
Workers = Annotated[
    int, typer.Option(help="Processes that decode images; 0 decodes ahead in threads.", min=0)
]


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if version:
        typer.echo(f"sarb {__version__}")
        raise typer.Exit()


@app.command(
    epilog=examples(
        "sarb train --data demo --known 0.1 --out runs/demo",
        "sarb train --data labels.csv -o encoding=binary --method sarb --epochs 15 --out runs/mine",
        'sarb train --data demo --row "Ours w/ SAM" --known 0.1 --out runs/sam',
        "sarb train coco2014 --data coco:/data/coco --known 0.1 --set backbone.weights=resnet101.pth --out runs/coco",
        "sarb train --data demo --known 0.1 --out runs/demo --resume",
    )
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
    method: Annotated[str | None, typer.Option(help="How to train; see 'sarb list methods'.")] = None,
    network: Annotated[str | None, typer.Option(help="What to train; see 'sarb list networks'.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Image to map; see 'sarb list backbones'.")] = None,
    row: Annotated[str | None, typer.Option(help="A row of the paper by name; see 'sarb list rows'.")] = None,
    known: Annotated[
        float, typer.Option(help="Share of the training labels to keep; 1 hides nothing.")
    ] = 1.0,
    mask_seed: Annotated[
        int | None, typer.Option(help="Seed of what is hidden.", show_default="--seed")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Images per step.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side of the square input in pixels.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything.", show_default="0")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder.", show_default="runs/DATA-METHOD-KNOWN")
    ] = None,
    valid: Annotated[float | None, typer.Option(help="Share of training images kept for validation.")] = None,
    words: Annotated[Path | None, typer.Option(help="Word vectors in GloVe format.")] = None,
    init: Annotated[Path | None, typer.Option(help="Run or model to start from.", metavar="MODEL")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many epochs without a better validation mAP.")
    ] = None,
    cache: Annotated[bool | None, typer.Option("--cache/--no-cache", help="Use the feature cache.")] = None,
    cache_views: Annotated[
        int | None, typer.Option(help="Train on so many cached augmented views of each image.", metavar="V")
    ] = None,
    augment: Annotated[
        bool | None, typer.Option("--augment/--no-augment", help="Random crops and flips.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that decode images; 0 decodes in threads.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="no (fp32), fp16 or bf16.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any setting, e.g. method.alpha=0.3, network.csrl=sam, lr.sd=0.1.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    track: Annotated[
        list[str] | None, typer.Option(help="Also log to tensorboard or wandb; repeatable.", metavar="NAME")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Train a recogniser from partial labels, test it, write the run folder and its report."""
    from sarb.runs.checkpoint import read_errors
    from sarb.workflows.session import list_skipped, train_session

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
        "patience": patience,
        "words": words,
        "method": method,
        "network": network,
        "backbone": backbone,
    }
    folder, report = train_session(
        recipe=recipe,
        source=data,
        data_options=pairs(option),
        row=row,
        known=known,
        mask_seed=mask_seed,
        seed=seed,
        out=out,
        valid=valid,
        init=init,
        resume=resume,
        assignments=set_ or [],
        given=given,
        quiet=quiet,
        track=track or [],
    )
    if not quiet:
        typer.echo(str(report))
        typer.echo(f"report: {folder / 'report.html'}")
    skipped = [(row["file_name"], row["reason"]) for row in read_errors(folder)]
    list_skipped(skipped)
    # torchrun takes any code but 0 for a crash and would stop or repeat the finished run
    if skipped and os.environ.get("WORLD_SIZE", "1") == "1":
        raise typer.Exit(3)


@app.command(
    epilog=examples(
        "sarb evaluate runs/demo",
        "sarb evaluate runs/demo --data labels.csv -o encoding=binary --split test --json",
    )
)
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
    from sarb.workflows.session import evaluate_session, list_skipped

    skipped: list[tuple[str, str]] = []
    report = evaluate_session(
        run, data, pairs(option), split, batch_size=batch_size, workers=workers, skipped=skipped
    )
    if out is not None:
        report.save(out)
    typer.echo(report.to_json().rstrip() if as_json else str(report))
    list_skipped(skipped, out / "errors.csv" if out is not None else None)
    if skipped:
        raise typer.Exit(3)


@app.command(
    epilog=examples(
        "sarb predict runs/demo photo.jpg",
        "sarb predict runs/demo photos/ --out predictions.csv --threshold 0.5",
        "sarb predict --onnx model.onnx photo.jpg",
    )
)
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
        float | None, typer.Option(help="Only labels at least so probable.", min=0, max=1)
    ] = None,
    batch_size: Batch = 32,
    workers: Workers = 0,
    as_json: Json = False,
) -> None:
    """Label images."""
    from sarb.workflows.session import predict_session

    given = [*([run] if onnx is not None and run is not None else []), *(images or [])]
    model = run if onnx is None else onnx
    if model is None:
        raise ConfigError(["predict: no model given, neither RUN nor --onnx FILE"])
    if not given:
        raise ConfigError([f"predict: no image given after the model {model}"])
    skipped = predict_session(
        model, given, out, top_k, threshold, as_json, onnx=onnx, batch_size=batch_size, workers=workers
    )
    if skipped:
        raise typer.Exit(3)


@app.command(epilog=examples("sarb report runs/demo"))
def report(run: Run) -> None:
    """Write a run's report.html and plots anew."""
    from sarb.inference.hub import missing
    from sarb.report import write_report

    if not run.exists():
        raise missing(run)
    if not (run / "config.json").is_file():
        raise SarbError(f"{run}: not a run folder (no config.json)")
    typer.echo(str(write_report(run)))


LISTS = ("rows", "methods", "networks", "backbones", "datasets", "recipes")


@app.command("list", epilog=examples("sarb list rows", "sarb list methods"))
def list_(
    what: Annotated[str, typer.Argument(help="|".join(LISTS), metavar="WHAT")],
    as_json: Json = False,
) -> None:
    """List what there is to choose from."""
    if what not in LISTS:
        raise ConfigError([unknown_name("list", what, LISTS)])
    from sarb.workflows.session import listing

    lines = listing(what)
    typer.echo(
        json.dumps(lines, indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(f"{name:26} {text}" for name, text in lines.items())
    )


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _terminate(*_: Any) -> None:
    raise _Terminated


def main() -> None:
    """Run the command line with the exit codes of interfaces.md."""
    signal.signal(signal.SIGTERM, _terminate)
    warnings.showwarning = lambda message, *_, **__: print(f"sarb: warning: {message}", file=sys.stderr)
    try:
        code = app(prog_name="sarb", standalone_mode=False)
        if code == 130:  # typer has caught Ctrl-C
            raise KeyboardInterrupt
    except SarbError as error:
        code = _fail(f"sarb: {error}", 2, error)
    except KeyboardInterrupt:
        code = _fail("sarb: interrupted; the last finished epoch is saved", 130)
    except _Terminated:
        code = _fail("sarb: terminated; the last finished epoch is saved", 143)
    except Exception as error:
        code = _other(error)
    sys.exit(code or 0)


def _other(error: Exception) -> int:
    if isinstance(error, typer.Abort):
        return _fail("sarb: interrupted; the last finished epoch is saved", 130)
    # A usage error of click. typer carries its own copy of click, so its class cannot be named here.
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        error.show()
        hint = usage_hint(error, sys.argv)
        return _fail(hint, 2) if hint else 2
    return _fail(
        f"sarb: a bug of ours, please report it with the output of --debug: {type(error).__name__}: {error}",
        1,
        error,
    )


def _fail(message: str, code: int, error: BaseException | None = None) -> int:
    if error is not None and "--debug" in sys.argv:
        import traceback

        traceback.print_exception(error)
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
