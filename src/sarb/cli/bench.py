"""``sarb bench``: run the benchmarks of a source checkout; the installed package does not contain them."""

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
        typer.Argument(
            help="Run only cases whose names contain one of these; by default, all but the slow ones."
        ),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Same as NAMES.", metavar="NAME...")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also run the slow cases (minutes each on a CPU).")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Print the names of the cases and exit.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Toy sizes and one round, to check that it runs.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(help="Rounds per case.", min=1)] = None,
    coco256: Annotated[
        Path | None, typer.Option(help="Folder of the coco256 data set.", metavar="DIR")
    ] = None,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="JSON file to write the results to.", metavar="FILE")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Markdown table to write, e.g. benchmarks/RESULTS.md.", metavar="FILE")
    ] = None,
) -> None:
    """Compare speed and memory with plain formulas and a lower bound; needs a source checkout."""
    flags = {"--all": everything, "--list": listed, "--quick": quick, "--json": as_json}
    values = {"--rounds": rounds, "--coco256": coco256, "--out": out, "--markdown": markdown}
    arguments = [flag for flag, given in flags.items() if given]
    arguments += [word for flag, value in values.items() if value is not None for word in (flag, str(value))]
    chosen = [*(only or []), *(names or [])]
    raise typer.Exit(_run([*arguments, *(["--only", *chosen] if chosen else [])]))


def _run(arguments: list[str]) -> int:
    """Run ``benchmarks.bench``, which is next to ``src`` in a checkout."""
    root = Path(sarb.__file__).resolve().parents[2]
    if not (root / "benchmarks" / "bench.py").is_file():
        raise SarbError(
            "bench: the benchmarks are not in the installed package; "
            "get a source checkout of sarb and run 'pip install -e .' or 'make bench' in it"
        )
    sys.path.insert(0, str(root))
    try:
        return int(importlib.import_module("benchmarks.bench").main(arguments))
    except SystemExit as stop:  # no case has that name
        raise SarbError(str(stop)) from None
