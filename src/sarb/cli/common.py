"""What the sub-commands share: options of a data source, examples in the help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sarb.errors import ConfigError
from sarb.files import write_rows

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Option of the data source, key=value; repeatable.", metavar="KEY=VALUE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


#: exit code of a command that is done, but had to leave out some inputs
SKIPPED = 3


def end_with(skipped: Sequence[tuple[str, str]], errors: Path | None = None, code: int = SKIPPED) -> None:
    """List (file name, reason) of the inputs left out, and end with the code that says so; nothing without any.

    Args:
        skipped: what could not be read.
        errors: CSV file to list them in as well.
        code: exit code; 0 goes on.
    """
    for _, reason in skipped:
        typer.echo(f"sarb: skipped: {reason}", err=True)
    if skipped and errors is not None:
        write_rows(errors, [{"file_name": name, "reason": reason} for name, reason in skipped])
    if skipped and code:
        raise typer.Exit(code)


def errors_file(out: Path | None) -> Path | None:
    """Where the inputs that ``out`` lacks are listed: ``OUT.errors.csv``."""
    return None if out is None else out.with_name(out.name + ".errors.csv")


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
