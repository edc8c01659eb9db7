"""``sarb list``: what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sarb.auto.names import Tie, Ties, tie
from sarb.data import DATASETS, load
from sarb.registry import BACKBONES, METHODS, NETWORKS, summary
from sarb.rows import ROWS, Row
from sarb.settings import RECIPES, read_recipe, recipe_names

#: concepts of a category that are shown
SHOWN = 8


def listing(what: str) -> dict[str, str]:
    """Name -> one line of description."""
    if what == "rows":
        return {name: _describe(row) for name, row in ROWS.items()}
    if what == "recipes":
        return {name: _first_line(name) for name in recipe_names()}
    registry = {"methods": METHODS, "networks": NETWORKS, "backbones": BACKBONES, "datasets": DATASETS}[what]
    default = read_recipe(None)["train"].get(what.removesuffix("s"))
    found = {**registry, **{f"{name}:NAME": target for name, target in registry.families.items()}}
    return {
        name: summary(target) + (" (default)" if name == default else "") for name, target in found.items()
    }


def concepts(source: str, options: Mapping[str, str], overrides: Mapping[str, Sequence[str]]) -> Ties:
    """Tie the categories of a data source to the concepts of the backbone."""
    return tie(load(source, **options).categories, overrides)


def describe(ties: Ties) -> str:
    """Return a line per category: its name, how it is tied and to what; then how many are."""
    rows = [(tie.category, _how(tie), _shown(tie)) for tie in ties]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    lines = [f"{name:{widths[0]}}  {how:{widths[1]}}  {shown}".rstrip() for name, how, shown in rows]
    return "\n".join([*lines, "", f"{ties.tied.sum()} of {len(ties)} categories are tied to concepts"])


def _how(tie: Tie) -> str:
    return f"{tie.how}: {tie.word}" if tie.concepts else tie.how


def _shown(tie: Tie) -> str:
    more = len(tie.names) - SHOWN
    return ", ".join(tie.names[:SHOWN]) + (f", +{more} more" if more > 0 else "")


def _first_line(recipe: str) -> str:
    return (RECIPES / f"{recipe}.toml").read_text(encoding="utf-8").split("\n")[0].lstrip("# ")


def _describe(row: Row) -> str:
    options = {
        **{f"network.{key}": value for key, value in row.network_options.items()},
        **{f"method.{key}": value for key, value in row.method_options.items()},
    }
    return f"network {row.network}, method {row.method}" + "".join(
        f", {key}={value}" for key, value in options.items()
    )
