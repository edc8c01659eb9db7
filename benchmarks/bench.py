"""All benchmarks with one command.

    python -m benchmarks.bench                      every case but the slow ones
    python -m benchmarks.bench --all --coco256 DIR --markdown benchmarks/RESULTS.md
    python -m benchmarks.bench --only decouple graph --json

A case times the formula as the paper prints it, ours, and a floor, in turns in one process; see
benchmarks/README.md.
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
from benchmarks.harness import Case, Result, machine, run

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
    """Cases of every module of ``benchmarks/cases``, each given the options that its ``cases`` function
    takes.
    """
    found: list[Case] = []
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        make = getattr(importlib.import_module(f"{folder.__name__}.{module.name}"), "cases", None)
        if make is not None:
            taken = inspect.signature(make).parameters
            found += make(**{name: value for name, value in options.items() if name in taken})
    return found


def choose(cases: Sequence[Case], only: Sequence[str], everything: bool) -> list[Case]:
    """Cases whose name contains one of ``only``; without it all, the slow ones on request."""
    if only:
        missing = [text for text in only if not any(text.lower() in case.name.lower() for case in cases)]
        if missing:
            raise SystemExit(
                f"bench: no case has {', '.join(map(repr, missing))} in its name (--list shows them all)"
            )
        return [case for case in cases if any(text.lower() in case.name.lower() for text in only)]
    return [case for case in cases if everything or not case.slow]


def measure(cases: list[Case], rounds: int | None = None) -> Iterator[Result]:
    """Run cases one after the other; one that fails is told and does not stop the others."""
    while cases:  # a case is let go before the next one, with all the memory it holds
        case = cases.pop(0)
        print(f"… {case.name}", file=sys.stderr, flush=True)
        try:
            yield run(case, rounds)
        except Exception as error:
            traceback.print_exc()
            yield Result(case.name, case.note, skipped=f"failed: {type(error).__name__}: {error}")


def context(arguments: Sequence[str]) -> dict[str, Any]:
    """When, what and where: date, commit, command, machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "command": shlex.join(["python", "-m", "benchmarks.bench", *arguments]),
        "machine": machine(),
    }


def _commit() -> str:
    def git(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], capture_output=True, text=True, cwd=Path(__file__).parent, check=False
        )
        return answer.stdout.strip() if answer.returncode == 0 else ""

    changed = (
        " with uncommitted changes"
        if git("status", "--porcelain", "--", ":/src", ":/benchmarks/*.py")
        else ""
    )
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def cells(result: Result) -> tuple[str, ...]:
    """One line of the table; a dash where there is nothing to say."""
    if result.skipped:
        return (result.name, *["–"] * (len(COLUMNS) - 1))
    memory = [_bytes(result.literal_memory), _bytes(result.ours_memory), _times(result.memory_ratio)]
    speed = f"{result.per_second:,.1f}" if result.per_second is not None else "–"
    times = [_seconds(result.literal), _seconds(result.ours), _times(result.ratio)]
    return (result.name, *times, *memory, _seconds(result.floor), _times(result.distance), speed)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,.2f} s"
        if value >= 1
        else f"{1e3 * value:.3g} ms"
        if value >= 1e-3
        else f"{1e6 * value:.3g} µs"
    )


def _bytes(value: int | None) -> str:
    return "–" if value is None else f"{value / 1e6:,.0f} MB"


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}×" if value < 10 else f"{value:,.0f}×"


def table(results: Sequence[Result]) -> str:
    """For the console: numbers to the right, notes below."""
    rows = [COLUMNS, *map(cells, results)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return "\n".join(
        [*lines, "", *(f"{result.name}: {text}" for result in results if (text := _remark(result)))]
    )


def _remark(result: Result) -> str:
    if result.skipped.startswith("failed"):
        return result.skipped
    return f"skipped, {result.skipped}" if result.skipped else result.note


def markdown(results: Sequence[Result], told: Mapping[str, Any]) -> str:
    """RESULTS.md: where and how, the table, the notes."""
    here = told["machine"]
    speeds = ", ".join(f"{name} {value:g}" for name, value in here["gflops"].items())
    versions = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    place = f"{here['gpu'] or here['processor']}, {here['cores']} cores, {here['threads']} threads"
    lines = [
        "# Speed and memory",
        "",
        f"{told['date']}, commit {told['commit']}, `{told['command']}`",
        "",
        f"{place}, load {here['load']:.1f} at the start; {versions}. Measured: GFLOP/s of matrix products ({speeds}); "
        f"copy {here['copy_gigabytes_per_second']:g} GB/s.",
        "",
        "Times are medians, ratios medians of the ratios within a round, memory the peak that one call adds; what the "
        "columns mean is told in [README.md](README.md).",
        "",
        "| " + " | ".join((*COLUMNS, "rounds", "note")) + " |",
        "|---|" + "--:|" * len(COLUMNS) + "---|",
        *(
            f"| {' | '.join((*cells(result), str(result.rounds or '–'), _remark(result)))} |"
            for result in results
        ),
    ]
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="cases with one of these in their name"
    )
    parser.add_argument("--all", action="store_true", help="the slow cases as well (minutes each on a CPU)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument(
        "--quick", action="store_true", help="toy sizes and one round: shows that it runs, no more"
    )
    parser.add_argument("--rounds", type=int, help="so many rounds instead of each case's own number")
    parser.add_argument("--coco256", type=Path, metavar="DIR", help="folder of the coco256 data set")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON to a file")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table, e.g. benchmarks/RESULTS.md"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; 1 if a case failed."""
    argv = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(argv)
    chosen = choose(
        collect(quick=options.quick, coco256=options.coco256), options.only, options.all or options.list
    )
    if options.list:
        print("\n".join(f"{case.name}{'  (slow)' if case.slow else ''}" for case in chosen))
        return 0
    told = context(argv)
    results, text = list[Result](), ""
    for result in measure(chosen, 1 if options.quick and options.rounds is None else options.rounds):
        results.append(result)  # and is written at once: the last cases take long
        text = json.dumps(
            {**told, "results": [each.as_dict() for each in results]}, indent=2, ensure_ascii=False
        )
        if options.out is not None:
            options.out.write_text(text + "\n", encoding="utf-8")
        if options.markdown is not None:
            options.markdown.write_text(markdown(results, told), encoding="utf-8")
    print(text if options.json else table(results))
    return int(any(result.skipped.startswith("failed") for result in results))


if __name__ == "__main__":
    raise SystemExit(main())
