"""What the sub-commands share: options of a data source, examples in the help."""

from __future__ import annotations

from typing import Annotated

import typer

from sarb.errors import ConfigError

Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Option of the data source, key=value; repeatable.", metavar="KEY=VALUE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


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
