"""Time and memory of every part as the number of images (N) or categories (C) grows.

    python -m benchmarks.scale --markdown benchmarks/RESULTS.md     all sizes, up to hours on a busy machine
    python -m benchmarks.scale --quick                              sizes that take seconds
    python -m benchmarks.scale --only SD hide                       measure these again, keep the other rows
    python -m benchmarks.scale --redraw                             make figure and table from the CSV

Every point runs in a separate process, so that it cannot reuse memory of another one. See
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.formatting import format_bytes, format_seconds
from benchmarks.harness import LEAST_MEMORY, Work, peak_memory, seconds, status
from benchmarks.scale_parts import BATCH, DIM, FEW, HIDDEN, PARTS, POSITIVES, SIDE, SOME_IMAGES
from sarb.files import atomic_write

#: a point is repeated until it has taken ENOUGH seconds, but at most REPEATS times
ENOUGH = 2.0
REPEATS = 5
#: largest sizes of a quick run
QUICK = {"N": 100_000, "C": 1_000}
#: the exponent is fitted to sizes of at least this share of the largest; below, fixed costs dominate
UPPER = 1 / 100
#: marks around the section in RESULTS.md
BEGIN = "<!-- scale: begin -->"
END = "<!-- scale: end -->"
#: attribute of a point -> what the figure calls it, and its unit
QUANTITIES = {"seconds": ("time", 1.0), "memory": ("memory", 1e6)}


@dataclass
class Point:
    """One measurement: ``memory`` is what the call adds at its peak, ``process`` the total at that time."""

    part: str
    size: int
    seconds: float | None = None
    memory: int | None = None
    process: int | None = None
    failed: str = ""


def measure(work: Work, warm: Work | None = None) -> dict[str, float | int | None]:
    """Return best time and peak memory, after a small warm-up that loads libraries and starts threads."""
    if warm is not None:
        warm()
    times: list[float] = []
    memory = peak_memory(lambda: times.append(seconds(work)))
    process = status("VmHWM") if memory is not None else None
    while sum(times) < ENOUGH and len(times) < REPEATS:
        times.append(seconds(work))
    return {"seconds": min(times), "memory": memory, "process": process}


def alone(part: str, size: int, limit: float) -> Point:
    """Measure one point in a new process; ``failed`` is set if it fails or takes over ``limit`` seconds."""
    command = [sys.executable, "-m", "benchmarks.scale", "--point", part, str(size)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, cwd=Path(__file__).parents[1]
        )
    except subprocess.TimeoutExpired:
        return Point(part, size, failed=f"over {limit:g} s")
    if done.returncode == -9:
        return Point(part, size, failed="killed, out of memory")
    if done.returncode:
        return Point(part, size, failed=(done.stderr.strip().splitlines() or ["failed"])[-1])
    return Point(part, size, **json.loads(done.stdout))


def exponent(points: Sequence[Point], quantity: str) -> float | None:
    """Return the slope of log ``quantity`` over log size for large sizes; None with fewer than two points.

    Memory that is too small to measure is left out.
    """
    least = LEAST_MEMORY + 1 if quantity == "memory" else 0.0
    values = [(point.size, getattr(point, quantity)) for point in points]
    values = [(size, value) for size, value in values if value and value >= least]
    largest = max((size for size, _ in values), default=0)
    values = [(size, value) for size, value in values if size >= UPPER * largest]
    if len(values) < 2:
        return None
    log_size, log_value = np.log(np.array(values)).T
    return float(np.polyfit(log_size, log_value, 1)[0])


def curves(points: Sequence[Point], grows: str) -> dict[str, list[Point]]:
    """Return the points of every part that grows with N or C, sorted by size."""
    by_size = sorted(points, key=lambda point: point.size)
    lines = {part: [p for p in by_size if p.part == part] for part in PARTS if PARTS[part].grows == grows}
    return {part: line for part, line in lines.items() if line}


def save(path: Path, points: Sequence[Point]) -> None:
    """Write the CSV."""
    with atomic_write(path, "w") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Point)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in points)


def load(path: Path) -> list[Point]:
    """Read what :func:`save` wrote; return an empty list if the file does not exist."""
    if not path.is_file():
        return []
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return [
        Point(
            row["part"],
            int(row["size"]),
            float(row["seconds"]) if row["seconds"] else None,
            int(row["memory"]) if row["memory"] else None,
            int(row["process"]) if row["process"] else None,
            row["failed"],
        )
        for row in rows
    ]


def section(points: Sequence[Point], figure: str) -> str:
    """Return Markdown with the figure and one table each for N and C with fitted exponents."""
    captions = {
        "N": f"As N grows: rows of {FEW} categories; prototypes by known positives, D={DIM}",
        "C": f"As C grows: B={BATCH}, D={DIM}, hidden={HIDDEN}, {SIDE}×{SIDE}, forward and backward, "
        f"a step with Adam; {POSITIVES} positives of each category for prototypes, "
        f"{SOME_IMAGES:,} images for the graph",
    }
    lines = [
        BEGIN,
        "## Growth with N and C",
        "",
        f"![time and memory as N and C grow]({figure})",
        "",
        "`python -m benchmarks.scale`: best time and peak memory of one call, each point in a separate "
        f"process. Exponents are fitted to sizes of at least 1/{1 / UPPER:.0f} of the largest.",
        "",
    ]
    for grows, caption in captions.items():
        if parts := curves(points, grows):
            lines += [f"{caption}.", "", *_table(parts), ""]
    return "\n".join([*lines, END])


def _table(lines: dict[str, list[Point]]) -> list[str]:
    sizes = sorted({point.size for line in lines.values() for point in line})
    head = ["part", *(f"{size:,}" for size in sizes), "time ~", "memory ~"]
    rows = [head, ["---", *["--:"] * (len(head) - 1)]]
    for part, line in lines.items():
        by_size = {point.size: point for point in line}
        slopes = [exponent(line, quantity) for quantity in QUANTITIES]
        fitted = ["–" if slope is None else f"size^{slope:.2f}" for slope in slopes]
        rows.append([part, *(_cell(by_size.get(size)) for size in sizes), *fitted])
    return [f"| {' | '.join(row)} |" for row in rows]


def _cell(point: Point | None) -> str:
    if point is None:
        return "–"
    return point.failed or f"{format_seconds(point.seconds)}, {format_bytes(point.memory)}"


def insert(page: str, text: str) -> str:
    """Replace the section between its marks in a page, or add it at the end."""
    before, mark, rest = page.partition(BEGIN)
    if not mark:
        return f"{page.rstrip()}\n\n{text}\n"
    return before + text + rest.partition(END)[2]


def draw(points: Sequence[Point]) -> bytes:
    """Plot time (top) and memory (bottom) over N (left) and C (right) on logarithmic axes."""
    from sarb.report.style import new_figure, png, style

    labels = {"N": "images, or known positives", "C": "categories"}
    with style() as colours:
        figure = new_figure(9.0, 11.0)
        panels = figure.subplots(2, 2, sharex="col")
        for column, (grows, label) in enumerate(labels.items()):
            for number, (part, line) in enumerate(curves(points, grows).items()):
                look = {
                    "color": colours.series[number % len(colours.series)],
                    "marker": "os^D"[number // len(colours.series) % 4],
                    "label": part + _powers(line, grows),
                }
                for row, (quantity, (_, unit)) in enumerate(QUANTITIES.items()):
                    values = [(point.size, getattr(point, quantity)) for point in line]
                    shown = [(size, value / unit) for size, value in values if value is not None]
                    panels[row][column].plot([x for x, _ in shown], [y for _, y in shown], **look)
            panels[0][column].set(title=f"Time by {label}", ylabel="seconds")
            panels[1][column].set(title="Memory that it adds", ylabel="MB", xlabel=label)
            panels[1][column].legend(loc="upper center", bbox_to_anchor=(0.5, -0.15))
        for panel in panels.flat:
            panel.set(xscale="log", yscale="log")
            panel.xaxis.set_major_formatter(_tick)
            panel.yaxis.set_major_formatter(_tick)
        return png(figure)


def _tick(value: float, _: int) -> str:
    return f"{value:,g}" if value < 1e6 else f"{value / 1e6:,g} M"


def _powers(line: Sequence[Point], grows: str) -> str:
    slopes = {name: exponent(line, quantity) for quantity, (name, _) in QUANTITIES.items()}
    fitted = [f"{name} ~ {grows}^{slope:.2f}" for name, slope in slopes.items() if slope]
    return f": {', '.join(fitted)}" if fitted else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "scale", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="only sizes that take seconds")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART", help="measure parts with one of these in their name"
    )
    parser.add_argument(
        "--limit", type=float, default=900, metavar="SECONDS", help="time limit for a point [%(default)g]"
    )
    parser.add_argument("--redraw", action="store_true", help="measure nothing, use the CSV of --out")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/scale.csv"), metavar="FILE")
    parser.add_argument("--figure", type=Path, default=Path("benchmarks/scale.png"), metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="page in which to replace the section")
    parser.add_argument("--point", nargs=2, metavar=("PART", "SIZE"), help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the measurements; return 1 if a point failed."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.point is not None:
        name, size = options.point
        part = PARTS[name]
        print(json.dumps(measure(part.build(int(size)), part.build(part.sizes[0]))))
        return 0
    wanted = [text.lower() for text in options.only] or [""]
    chosen = [name for name in PARTS if any(text in name.lower() for text in wanted)]
    if not chosen:
        parser.error(f"no part has {', '.join(options.only)} in its name; there are {', '.join(PARTS)}")
    points = load(options.out)
    if not options.redraw:
        points = run(chosen, [point for point in points if point.part not in chosen], options)
    with atomic_write(options.figure, "wb") as file:
        file.write(draw(points))
    text = section(points, options.figure.name)
    if options.markdown is not None:
        page = options.markdown.read_text(encoding="utf-8") if options.markdown.is_file() else ""
        with atomic_write(options.markdown, "w") as file:
            file.write(insert(page, text))
    print(text)
    return int(any(point.failed for point in points))


def run(parts: Sequence[str], points: list[Point], options: argparse.Namespace) -> list[Point]:
    """Measure parts from small to large and save after every point; skip larger sizes after a failure."""
    for name in parts:
        for size in PARTS[name].sizes:
            if options.quick and size > QUICK[PARTS[name].grows]:
                break
            points.append(alone(name, size, options.limit))
            print(f"… {name}, {size:,}: {_cell(points[-1])}", file=sys.stderr, flush=True)
            save(options.out, points)
            if points[-1].failed:
                break
    return points


if __name__ == "__main__":
    raise SystemExit(main())
