"""Run all benchmarks with one command.

    python -m benchmarks.bench                      all cases except the slow ones
    python -m benchmarks.bench --all --coco256 DIR --markdown benchmarks/RESULTS.md
    python -m benchmarks.bench --only decouple graph --json

A case times the literal formula of the paper, our implementation and a lower bound (the floor), alternating
in one process; see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import pkgutil
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import cases as folder
from benchmarks.formatting import format_bytes, format_ratio, format_seconds
from benchmarks.harness import Case, Result, run

COLUMNS = (
    "case",
    "literal",
    "ours",
    "ratio",
    "literal memory",
    "our memory",
    "memory ratio",
    "floor",
    "× floor",
    "/s",
)


def collect(**options: Any) -> list[Case]:
    """Return the cases of all modules in ``benchmarks/cases``; each gets the options that it accepts."""
    collected: list[Case] = []
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        make = getattr(importlib.import_module(f"{folder.__name__}.{module.name}"), "cases", None)
        if make is not None:
            taken = inspect.signature(make).parameters
            collected += make(**{name: value for name, value in options.items() if name in taken})
    return collected


def choose(cases: Sequence[Case], only: Sequence[str], everything: bool) -> list[Case]:
    """Return the cases whose name contains one of ``only``; without it, all that are not slow."""
    if only:
        missing = [text for text in only if not any(text.lower() in case.name.lower() for case in cases)]
        if missing:
            raise SystemExit(
                f"bench: no case has {', '.join(map(repr, missing))} in its name (--list shows them all)"
            )
        return [case for case in cases if any(text.lower() in case.name.lower() for text in only)]
    return [case for case in cases if everything or not case.slow]


def measure(cases: list[Case], rounds: int | None = None) -> Iterator[Result]:
    """Run the cases in order; a failure is reported and does not stop the others."""
    while cases:  # popping a case frees its memory before the next one starts
        case = cases.pop(0)
        print(f"… {case.name}", file=sys.stderr, flush=True)
        try:
            yield run(case, rounds)
        except Exception as error:
            traceback.print_exc()
            yield Result(case.name, case.note, skipped=f"failed: {type(error).__name__}: {error}")


def context(arguments: Sequence[str]) -> dict[str, Any]:
    """Return date, commit, command and machine."""
    from benchmarks.machine import machine  # imports torch, which --help does not need

    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "command": shlex.join(["python", "-m", "benchmarks.bench", *arguments]),
        "machine": machine(),
    }


def _commit() -> str:
    def git(*words: str) -> str:
        command = ["git", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "--short", "HEAD") or "unknown"
    changed = git("status", "--porcelain", "--", ":/src", ":/benchmarks/*.py")
    return f"{commit} with uncommitted changes" if changed else commit


def cells(result: Result) -> tuple[str, ...]:
    """Return one row of the table, with dashes for missing values."""
    if result.skipped:
        return (result.name, *["–"] * (len(COLUMNS) - 1))
    return (
        result.name,
        format_seconds(result.literal),
        format_seconds(result.ours),
        format_ratio(result.ratio),
        format_bytes(result.literal_memory),
        format_bytes(result.ours_memory),
        format_ratio(result.memory_ratio),
        format_seconds(result.floor),
        format_ratio(result.distance),
        "–" if result.per_second is None else f"{result.per_second:,.1f}",
    )


def table(results: Sequence[Result]) -> str:
    """Return a table for the console, with the notes below."""
    rows = [COLUMNS, *map(cells, results)]
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers in rows:
        aligned = [cell.rjust(width) for cell, width in zip(numbers, widths, strict=True)]
        lines.append("  ".join([name.ljust(first), *aligned]))
    remarks = [f"{result.name}: {_remark(result)}" for result in results if _remark(result)]
    return "\n".join([*lines, "", *remarks])


def _remark(result: Result) -> str:
    if result.skipped.startswith("failed"):
        return result.skipped
    return f"skipped, {result.skipped}" if result.skipped else result.note


def markdown(results: Sequence[Result], measured: Mapping[str, Any]) -> str:
    """Return the content of RESULTS.md: machine, table and notes."""
    computer = measured["machine"]
    speeds = ", ".join(f"{name} {value:g}" for name, value in computer["gflops"].items())
    versions = ", ".join(f"{name} {version}" for name, version in computer["versions"].items())
    rows = [(*cells(result), str(result.rounds or "–"), _remark(result)) for result in results]
    lines = [
        "# Speed and memory",
        "",
        f"{measured['date']}, commit {measured['commit']}, `{measured['command']}`",
        "",
        f"{computer['gpu'] or computer['processor']}, "
        f"{computer['cores']} cores, {computer['threads']} threads, "
        f"load {computer['load']:.1f} at the start; {versions}. "
        f"Measured: GFLOP/s of matrix products ({speeds}); "
        f"copy {computer['copy_gigabytes_per_second']:g} GB/s.",
        "",
        "Times are medians, ratios are medians of the ratios within a round, memory is the peak that one "
        "call adds. [README.md](README.md) explains the columns.",
        "",
        "| " + " | ".join((*COLUMNS, "rounds", "note")) + " |",
        "|---|" + "--:|" * len(COLUMNS) + "---|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="run cases with one of these in their name"
    )
    parser.add_argument("--all", action="store_true", help="run the slow cases too (minutes each on a CPU)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument(
        "--quick", action="store_true", help="toy sizes and one round, only to see that it runs"
    )
    parser.add_argument("--rounds", type=int, help="number of rounds, instead of each case's own")
    parser.add_argument("--coco256", type=Path, metavar="DIR", help="folder of the coco256 data set")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the JSON to a file")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="also write the table, e.g. to benchmarks/RESULTS.md"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks; return 1 if a case failed."""
    argv = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(argv)
    cases = collect(quick=options.quick, coco256=options.coco256)
    chosen = choose(cases, options.only, options.all or options.list)
    if options.list:
        print("\n".join(f"{case.name}{'  (slow)' if case.slow else ''}" for case in chosen))
        return 0
    measured = context(argv)
    results: list[Result] = []
    text = ""
    for result in measure(chosen, 1 if options.quick and options.rounds is None else options.rounds):
        results.append(result)
        # write after every case, because the last ones take long
        content = {**measured, "results": [result.as_dict() for result in results]}
        text = json.dumps(content, indent=2, ensure_ascii=False)
        if options.out is not None:
            options.out.write_text(text + "\n", encoding="utf-8")
        if options.markdown is not None:
            options.markdown.write_text(markdown(results, measured), encoding="utf-8")
    print(text if options.json else table(results))
    return int(any(result.skipped.startswith("failed") for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
