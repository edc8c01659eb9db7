"""``sarb list``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sarb.cli.common import Json, Options, echo, examples, pairs
from sarb.errors import ConfigError, unknown_name

LIST = examples(
    "sarb list rows",
    "sarb list methods",
    "sarb list concepts --data labels.csv -o encoding=binary --tie 'mouse=computer mouse' --tie kite=",
)
LISTS = ("rows", "methods", "networks", "backbones", "datasets", "recipes", "concepts")


def list_(
    what: Annotated[str, typer.Argument(help="|".join(LISTS), metavar="WHAT")],
    data: Annotated[
        str | None,
        typer.Option(help="concepts: data source whose categories are looked up.", metavar="SRC"),
    ] = None,
    option: Options = None,
    tie: Annotated[
        list[str] | None,
        typer.Option(
            help="concepts: what a category means, by hand; nothing after = unties it; repeatable.",
            metavar="NAME=CONCEPT[,CONCEPT]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List rows, methods, networks, backbones, data formats or recipes; or the concepts tied to categories."""
    if what not in LISTS:
        raise ConfigError([unknown_name("list", what, LISTS)])
    if what == "concepts":
        _concepts(data, option, tie, as_json)
        return
    if data is not None or option or tie:
        raise ConfigError([f"--data, -o and --tie belong to 'sarb list concepts', not to 'sarb list {what}'"])
    from sarb.workflows.listing import listing

    lines = listing(what)
    echo(
        json.dumps(lines, indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(f"{name:26} {text}" for name, text in lines.items())
    )


def _concepts(data: str | None, option: list[str] | None, tie: list[str] | None, as_json: bool) -> None:
    if data is None:
        raise ConfigError(["sarb list concepts needs the data whose categories it looks up: --data SRC"])
    overrides = _overrides(tie)
    from sarb.workflows.listing import concepts, describe

    ties = concepts(data, pairs(option), overrides)
    echo(json.dumps(ties.to_dict(), indent=2, ensure_ascii=False) if as_json else describe(ties))


def _overrides(tie: list[str] | None) -> dict[str, list[str]]:
    """``NAME=CONCEPT,CONCEPT`` -> {name: [concept, concept]}."""
    overrides: dict[str, list[str]] = {}
    for text in tie or []:
        name, equals, values = text.rpartition("=")
        if not equals:
            raise ConfigError([f"--tie {text}: expected NAME=CONCEPT, e.g. --tie 'mouse=computer mouse'"])
        overrides[name.strip()] = [value.strip() for value in values.split(",") if value.strip()]
    return overrides
