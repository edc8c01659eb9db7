"""What the sub-commands share: options of a data source, examples in the help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sarb.errors import ConfigError, SarbError, printable
from sarb.files import check_writable, excel_safe, is_stdout, write_rows

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Option of the data source, key=value; repeatable.", metavar="KEY=VALUE"
    ),
]


def _write_safely(context: typer.Context, chosen: bool) -> bool:
    if chosen:
        context.with_resource(excel_safe())
    return chosen


ExcelSafe = Annotated[
    bool,
    typer.Option(
        "--excel-safe",
        help="In CSV, put an apostrophe before names that a spreadsheet would run as a formula.",
        callback=_write_safely,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
EngineName = Annotated[
    str, typer.Option(help="Where runs are computed: local, ray or slurm.", metavar="NAME")
]
Address = Annotated[
    str | None,
    typer.Option(
        help="With --engine ray: a running cluster, e.g. auto or ray://HOST:10001.",
        show_default="a new one on this computer",
    ),
]
SlurmOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm",
        help="With --engine slurm: partition, time (minutes), memory (GB), gpus, account …; repeatable.",
        metavar="KEY=VALUE",
    ),
]


#: exit code of a command that is done, but had to leave out some inputs
SKIPPED = 3


def echo(message: object, err: bool = False) -> None:
    """Print a line; names in it, which are somebody else's text, cannot command the terminal."""
    typer.echo(printable(str(message)), err=err)


def end_with(skipped: Sequence[tuple[str, str]], errors: Path | None = None, code: int = SKIPPED) -> None:
    """List (file name, reason) of the inputs left out, and end with the code that says so; nothing without any.

    Args:
        skipped: what could not be read.
        errors: CSV file to list them in as well.
        code: exit code; 0 goes on.
    """
    for _, reason in skipped:
        echo(f"sarb: skipped: {reason}", err=True)
    if skipped and errors is not None:
        write_rows(errors, [{"file_name": name, "reason": reason} for name, reason in skipped])
    if skipped and code:
        raise typer.Exit(code)


def errors_file(out: Path | None) -> Path | None:
    """Where the inputs that ``out`` lacks are listed: ``OUT.errors.csv``; not beside what is printed."""
    return None if out is None or is_stdout(out) else out.with_name(out.name + ".errors.csv")


def file_to_write(path: Path | None) -> Path | None:
    """Refuse, before any work is done, what cannot be written as a file."""
    if path is not None and is_stdout(path):
        raise SarbError(f"{path}: this cannot be printed; expected the name of a file")
    return file_or_stdout(path)


def file_or_stdout(path: Path | None) -> Path | None:
    """The same, for text that may be printed: ``-`` for ``-`` and ``/dev/stdout``."""
    if path is None:
        return None
    if is_stdout(path):
        return Path("-")
    check_writable(path)
    return path


def folder_to_write(path: Path | None) -> Path | None:
    """The same, for a folder."""
    if path is None:
        return None
    if is_stdout(path) or (path.exists() and not path.is_dir()):
        raise SarbError(f"{path}: is not a folder; expected the name of a folder to write")
    check_writable(path / "file")
    return path


def check_one_output(out: Path | None, as_json: bool) -> None:
    """Refuse to print two things."""
    if out is not None and is_stdout(out) and as_json:
        raise ConfigError([f"--out {out} and --json both print; choose one of them"])


def examples(*lines: str) -> str:
    """Return the examples at the end of a command's help."""
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"  $ {line}" for line in lines)


def pairs(options: list[str] | None) -> dict[str, str]:
    """Return the ``-o key=value`` pairs."""
    pairs = {}
    for text in options or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError([f"-o {text}: expected key=value, e.g. -o encoding=binary"])
        pairs[key.strip()] = value.strip()
    return pairs
