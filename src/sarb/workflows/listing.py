"""``sarb list``: what there is to choose from."""

from __future__ import annotations

from sarb.data import DATASETS
from sarb.registry import BACKBONES, METHODS, NETWORKS, summary
from sarb.rows import ROWS, Row
from sarb.settings import RECIPES, recipe_names


def listing(what: str) -> dict[str, str]:
    """Name -> one line of description."""
    if what == "rows":
        return {name: _describe(row) for name, row in ROWS.items()}
    if what == "recipes":
        return {name: _first_line(name) for name in recipe_names()}
    registry = {"methods": METHODS, "networks": NETWORKS, "backbones": BACKBONES, "datasets": DATASETS}[what]
    return {name: summary(target) for name, target in registry.items()}


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
