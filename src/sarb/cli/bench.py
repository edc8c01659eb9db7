"""``sarb bench``: the benchmarks of the source checkout; they are not part of the installed package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

import sarb
from sarb.cli.common import Json
from sarb.errors import SarbError


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Cases with one of these in their name; all but the slow ones by default."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="The same as NAMES.", metavar="NAME...")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="The slow cases as well, minutes each on a CPU.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the names and stop.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Toy sizes and one round: shows that it runs.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(help="Rounds of every case.", min=1)] = None,
    coco256: Annotated[
        Path | None, typer.Option(help="Folder of the coco256 data set.", metavar="DIR")
    ] = None,
    as_json: Json = False,
    out: Annotated[Path | None, typer.Option(help="JSON to write.", metavar="FILE")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Table to write, e.g. benchmarks/RESULTS.md.", metavar="FILE")
    ] = None,
) -> None:
    """Measure speed and memory beside the plain formulas and a floor; needs a source checkout."""
    flags = {"--all": everything, "--list": listed, "--quick": quick, "--json": as_json}
    values = {"--rounds": rounds, "--coco256": coco256, "--out": out, "--markdown": markdown}
    arguments = [flag for flag, given in flags.items() if given]
    arguments += [word for flag, value in values.items() if value is not None for word in (flag, str(value))]
    chosen = [*(only or []), *(names or [])]
    raise typer.Exit(_run([*arguments, *(["--only", *chosen] if chosen else [])]))


def _run(arguments: list[str]) -> int:
    """Hand over to ``benchmarks.bench``, which stands beside ``src`` in a checkout."""
    root = Path(sarb.__file__).resolve().parents[2]
    if not (root / "benchmarks" / "bench.py").is_file():
        raise SarbError(
            "bench: the benchmarks are part of the source, not of the installed package; "
            "get the source of sarb and run 'pip install -e .' or 'make bench' in it"
        )
    sys.path.insert(0, str(root))
    try:
        return int(importlib.import_module("benchmarks.bench").main(arguments))
    except SystemExit as stop:  # a name that no case has
        raise SarbError(str(stop)) from None
