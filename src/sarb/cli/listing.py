"""``sarb list``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sarb.cli.common import Json, examples
from sarb.errors import ConfigError, unknown_name

LIST = examples("sarb list rows", "sarb list methods")
LISTS = ("rows", "methods", "networks", "backbones", "datasets", "recipes")


def list_(
    what: Annotated[str, typer.Argument(help="|".join(LISTS), metavar="WHAT")],
    as_json: Json = False,
) -> None:
    """List what there is to choose from."""
    if what not in LISTS:
        raise ConfigError([unknown_name("list", what, LISTS)])
    from sarb.workflows.listing import listing

    lines = listing(what)
    typer.echo(
        json.dumps(lines, indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(f"{name:26} {text}" for name, text in lines.items())
    )
