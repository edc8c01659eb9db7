"""``sarb`` itself: the sub-commands by name, signals, errors and exit codes."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, TextIO, cast

import typer

from sarb import __version__
from sarb.cli.bench import bench
from sarb.cli.common import examples
from sarb.cli.data import data_app
from sarb.cli.failures import BROKEN_PIPE, describe
from sarb.cli.hints import usage_hint
from sarb.cli.label_studio import pull_app, push_app
from sarb.cli.labels import CALIBRATE, COMPLETE, SUGGEST, calibrate, complete, suggest
from sarb.cli.listing import LIST, list_
from sarb.cli.model import (
    COMPARE,
    EVALUATE,
    EXPLAIN,
    EXPORT,
    PREDICT,
    REPORT,
    compare,
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
from sarb.cli.tuning import TUNE, tune
from sarb.errors import DataNote, SarbError, command_line, printable

app = typer.Typer(
    name="sarb",
    help="Multi-label image recognition with partial labels: learn every label from a few.",
    epilog="Start with: sarb train --data demo --known 0.1 --out runs/demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app.add_typer(push_app, name="push")
data_app.add_typer(pull_app, name="pull")
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
app.command(epilog=TUNE)(tune)
app.command(epilog=EVALUATE)(evaluate)
app.command(epilog=COMPARE)(compare)
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


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning; a note on how a file was read is none."""
    prefix = "" if issubclass(category, DataNote) else "warning: "
    print(printable(f"sarb: {prefix}{message}"), file=sys.stderr)


#: sub-command -> what it has saved when it is interrupted
KEPT = {
    "train": "the last checkpoint and cached features are saved; the same command with --resume continues",
    "reproduce": "finished runs, the last checkpoints and cached features are saved; the same command continues",
    "tune": "finished trials, the last checkpoints and cached features are saved; the same command continues",
    "calibrate": "finished parts and the last checkpoint are saved; the same command continues",
    "serve": "every answer is saved; the same command continues",
}


class _Terminated(BaseException):
    """SIGTERM arrived."""


def _terminate(*_: Any) -> None:
    raise _Terminated


def main() -> None:
    """Run the command line with the exit codes of interfaces.md."""
    signal.signal(signal.SIGTERM, _terminate)
    warnings.showwarning = _show_warning
    # Pillow remarks on damaged metadata without naming the file; what matters becomes an error of ours
    warnings.filterwarnings("ignore", module=r"PIL\b")
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    code = _run()
    try:
        print(end="", flush=True)  # at exit it would be too late for a message
    except OSError as error:
        code = _system(error)
    if code in (0, 3):
        _leave_process_group(code)
    sys.exit(code)


def _leave_process_group(code: int) -> None:
    """Under torch.distributed, end the process here, with all output written.

    Its threads can outlive the group, also one that was left before: while the interpreter was taken apart, they
    aborted 2 of 25 processes that had finished their work ("terminate called without an active exception", no Python
    frame). Only after success: with a collective under way, leaving the group would wait for processes that may be
    gone.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or int(os.environ.get("WORLD_SIZE") or 1) < 2:
        return
    if distributed.is_initialized():
        distributed.destroy_process_group()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run() -> int:
    try:
        with command_line():
            code = app(prog_name="sarb", standalone_mode=False)
        if code == 130:  # typer has caught Ctrl-C
            raise KeyboardInterrupt
        return int(code or 0)
    except SarbError as error:
        return _fail(f"sarb: {error}", 2, error)
    except KeyboardInterrupt:
        return _fail(f"sarb: interrupted{_saved(sys.argv)}", 130)
    except _Terminated:
        return _fail(f"sarb: terminated{_saved(sys.argv)}", 143)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer has caught it
            return BROKEN_PIPE
        if isinstance(stop.code, str):
            raise
        return stop.code or 0  # not raised again: every process has to leave its group
    except OSError as error:
        return _system(error)
    except Exception as error:
        return _other(error)


def _system(error: OSError) -> int:
    """The operating system refused something; an error without a number is not the system's."""
    if error.errno is None:
        return _other(error)
    if error.filename is None:  # it cannot be printed; Python would try once more at exit
        sys.stdout = cast(TextIO, None)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    return _fail(f"sarb: {describe(error)}", 2, error)


def _saved(words: Sequence[str]) -> str:
    """What an interrupted command leaves behind; nothing is said of one that leaves nothing."""
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    return f"; {KEPT[verb]}" if verb in KEPT else ""


def _other(error: Exception) -> int:
    if isinstance(error, typer.Abort):
        return _fail(f"sarb: interrupted{_saved(sys.argv)}", 130)
    # A usage error of click. typer carries its own copy of click, so its class cannot be named here.
    if hasattr(error, "show") and hasattr(error, "exit_code"):
        with suppress(OSError):  # stderr is full, or its reader has gone
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
    with suppress(OSError):  # stderr is full, or its reader has gone
        print(printable(message), file=sys.stderr)
    return code
