"""``sarb`` itself: the sub-commands by name, signals, errors and exit codes."""

from __future__ import annotations

import signal
import sys
import traceback
import warnings
from typing import Annotated, Any

import typer

from sarb import __version__
from sarb.cli.bench import bench
from sarb.cli.common import examples
from sarb.cli.data import data_app
from sarb.cli.hints import usage_hint
from sarb.cli.labels import CALIBRATE, COMPLETE, SUGGEST, calibrate, complete, suggest
from sarb.cli.listing import LIST, list_
from sarb.cli.model import (
    EVALUATE,
    EXPLAIN,
    EXPORT,
    PREDICT,
    REPORT,
    evaluate,
    explain,
    export,
    predict,
    report,
)
from sarb.cli.reproduce import EPILOG as REPRODUCE
from sarb.cli.reproduce import reproduce
from sarb.cli.serve import EPILOG as SERVE
from sarb.cli.serve import serve
from sarb.cli.training import TRAIN, train
from sarb.errors import SarbError

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
app.command(epilog=REPRODUCE)(reproduce)
app.command(epilog=SERVE)(serve)
app.command(epilog=CALIBRATE)(calibrate)
app.command(epilog=COMPLETE)(complete)
app.command(epilog=SUGGEST)(suggest)
app.command(epilog=examples("sarb bench --only decouple graph", "sarb bench --quick"))(bench)
app.command(epilog=EXPLAIN)(explain)
app.command(epilog=EXPORT)(export)
app.command(epilog=TRAIN)(train)
app.command(epilog=EVALUATE)(evaluate)
app.command(epilog=PREDICT)(predict)
app.command(epilog=REPORT)(report)
app.command("list", epilog=LIST)(list_)


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
        code = _fail("sarb: interrupted; finished epochs and cached features are saved", 130)
    except _Terminated:
        code = _fail("sarb: terminated; finished epochs and cached features are saved", 143)
    except Exception as error:
        code = _other(error)
    sys.exit(code or 0)


def _other(error: Exception) -> int:
    if isinstance(error, typer.Abort):
        return _fail("sarb: interrupted; finished epochs and cached features are saved", 130)
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
        traceback.print_exception(error)
    print(message, file=sys.stderr)
    return code
