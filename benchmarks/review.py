"""How many answers per minute the pages take: one question at a time, and the wall, in one run.

    python -m benchmarks.review                                   the drawn demo scenes, 240 answers on each page
    python -m benchmarks.review --answers 96 --out results/review/answers.csv

A script plays the reviewer in Chromium: it knows the hidden labels, answers with the keys a person would use,
and goes on as soon as the page shows the next photo. It is measured twice: without any pause, which is what pages
and server allow on this machine, and with the pauses of a hand, 0.28 s before a key press and 1.1 s before a
click (the keystroke-level model of Card, Moran and Newell, 1980). It never needs time to look. A person does, and
sees a page of photos at once, so these rates are not those of a person.

``actions`` counts key presses and clicks; it does not depend on the machine. ``ratio`` is the rate over that of one
question at a time with the same hand. All pages ask about the same category, and every answer is compared with
the hidden label.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.serve.browser import CHROMIUM, FLAGS, FULL, MISSING, SHOWN

import sarb

KNOWN = 0.3
#: seconds that a hand needs before a key press and before a click
HAND = {"key": 0.28, "click": 1.1}
MACHINE = {"key": 0.0, "click": 0.0}
Truth = dict[tuple[str, str], str]
WAIT = (
    "async (before) => { const done = %s; while (!done(before)) await new Promise(requestAnimationFrame); }"
)


def make_table(folder: Path, images: int) -> tuple[Path, Truth]:
    """Write photos and a table with gaps; return it and the hidden answers by file and category."""
    full = sarb.load("demo", train=images, test=12).train
    labels = full.labels.hide(KNOWN, seed=0)
    rows = zip(full.paths, labels.to_codes("binary"), strict=True)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["file_name", *labels.categories])
        for path, codes in rows:
            shutil.copy(path, folder / path.name)
            table.writerow([path.name, *codes])
    truth = {
        (path.name, name): "yes" if value > 0 else "no"
        for path, row in zip(full.paths, full.labels.values, strict=True)
        for name, value in zip(labels.categories, row, strict=True)
    }
    return folder / "labels.csv", truth


@contextmanager
def server(run: Path, table: Path, out: Path) -> Iterator[str]:
    """Run ``sarb serve`` in a process of its own; yield its address."""
    line = [sys.executable, "-m", "sarb.cli", "serve", str(run), "--labels", str(table), "--out", str(out)]
    line += ["-o", "encoding=binary", "-o", "test=0", "--port", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = []
        for text in process.stderr:
            said.append(text)
            if found := re.search(r" at (http://[^ ]+)/ ", text):
                break
        else:
            raise SystemExit("".join(said))
        try:
            yield found[1]
        finally:
            process.terminate()


class Reviewer:
    """A page of Chromium and the hand in front of it; counts its actions."""

    def __init__(self, page: Any, hand: dict[str, float]) -> None:
        self.page = page
        self.hand = hand
        self.actions = 0

    def press(self, key: str) -> None:
        """Press a key, after a pause."""
        self._reach("key")
        self.page.keyboard.press(key)

    def click(self, tile: int) -> None:
        """Click a photo of the wall, after a pause."""
        self._reach("click")
        self.page.locator("#tiles button").nth(tile).click()

    def _reach(self, kind: str) -> None:
        self.actions += 1
        if self.hand[kind]:
            self.page.wait_for_timeout(1000 * self.hand[kind])


def one_at_a_time(reviewer: Reviewer, category: str, truth: Truth, answers: int) -> None:
    """Answer with Y and N."""
    page = reviewer.page
    page.goto("/#review")
    page.evaluate(WAIT % SHOWN)
    page.select_option("#category", category)
    page.evaluate(
        WAIT % f"() => document.querySelector('#question b')?.textContent === {json.dumps(category)}"
    )
    page.evaluate("document.activeElement.blur()")
    page.evaluate(WAIT % SHOWN)
    for _ in range(answers):
        name, shown = page.evaluate(
            "[document.getElementById('file').textContent, document.getElementById('picture').dataset.question]"
        )
        reviewer.press(truth[name, category][0])
        page.evaluate(WAIT % SHOWN, shown)


def wall(reviewer: Reviewer, category: str, truth: Truth, answers: int, mouse: bool = False) -> None:
    """Mark the odd ones, by keys or by mouse, and answer with Enter."""
    page = reviewer.page
    page.goto("/#wall")
    page.evaluate(WAIT % FULL)
    first = page.locator("#tiles button").first.get_attribute("data-question")
    if page.input_value("#wall-category") != category:
        page.select_option("#wall-category", category)
        page.evaluate("document.activeElement.blur()")
        page.evaluate(WAIT % FULL, first)
    done = 0
    while done < answers:
        tiles = page.locator("#tiles button").evaluate_all(
            "tiles => tiles.map((tile) => [tile.ariaLabel, tile.dataset.answer, tile.dataset.question])"
        )
        right = [truth[re.search(r", ([^,:]+): ", label)[1], category] for label, *_ in tiles]  # type: ignore[index]
        mark_odd(reviewer, right, tiles[0][1], mouse)
        reviewer.press("Enter")
        page.evaluate(WAIT % FULL, tiles[0][2])
        done += len(tiles)


def wall_by_mouse(reviewer: Reviewer, category: str, truth: Truth, answers: int) -> None:
    """As :func:`wall`, with one click for each odd photo."""
    wall(reviewer, category, truth, answers, mouse=True)


def mark_odd(reviewer: Reviewer, right: list[str], base: str, mouse: bool) -> None:
    """Start from the more frequent answer and mark the others."""
    usual = max(("yes", "no"), key=right.count)
    if usual != base:
        reviewer.press("f")
    at = 0
    for place, answer in enumerate(right):
        if answer == usual:
            continue
        if mouse:
            reviewer.click(place)
            continue
        for _ in range(place - at):
            reviewer.press("ArrowRight")
        reviewer.press(" ")
        at = place


def measure(
    play: Callable[..., None], hand: dict[str, float], run: Path, table: Path, truth: Truth, given: Any
) -> dict[str, Any]:
    """Play one page in a browser of its own; return its row, with the answers checked."""
    from playwright.sync_api import sync_playwright

    pauses = "hand" if hand is HAND else "none"
    out = table.with_name(f"{play.__name__}-{pauses}.csv")
    with server(run, table, out) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900}).new_page()
        reviewer = Reviewer(page, hand)
        started = time.perf_counter()
        play(reviewer, given.category, truth, given.answers)
        page.evaluate(WAIT % "() => JSON.parse(sessionStorage.getItem('sarb-pending')).length === 0")
        seconds = time.perf_counter() - started
        browser.close()
    lines = [json.loads(line) for line in out.with_name(f"{out.stem}.answers.jsonl").open(encoding="utf-8")]
    wrong = sum(line["answer"] != truth[line["file_name"], line["label"]] for line in lines)
    row = {"page": play.__name__, "pauses": pauses, "category": given.category, "answers": len(lines)}
    rates = {"seconds": round(seconds, 1), "answers_per_minute": round(60 * len(lines) / seconds)}
    effort = {"actions": reviewer.actions, "actions_per_answer": round(reviewer.actions / len(lines), 3)}
    return {**row, "wrong": wrong, **rates, **effort}


def main() -> None:
    """Measure both pages and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=240, help="answers on each page, whole pages of 24")
    parser.add_argument("--category", default="tree")
    parser.add_argument("--out", type=Path, help="CSV to write")
    given = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit(MISSING)
    with TemporaryDirectory() as place:
        table, truth = make_table(Path(place), round(1.6 * given.answers))
        run = Path(place) / "run"
        sarb.fit(sarb.load(table, encoding="binary", test=0).train, out=run, progress=False)
        rows = []
        for hand in (MACHINE, HAND):
            three = [
                measure(play, hand, run, table, truth, given) for play in (one_at_a_time, wall, wall_by_mouse)
            ]
            for row in three:
                row["ratio"] = round(row["answers_per_minute"] / three[0]["answers_per_minute"], 2)
                print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            rows += three
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*rows[0], "command"])
            writer.writeheader()
            command = f"python -m benchmarks.review {' '.join(sys.argv[1:])}"
            writer.writerows({**row, "command": command} for row in rows)


if __name__ == "__main__":
    main()
