"""What a kind of fault is, and the run over all of them: one row of a CSV per case, never run twice.

A case gets an empty folder and a seed. It returns one word that says what happened (``refused``, ``resumed``,
``no effect`` …) or raises :class:`BrokenPromiseError` with what should not have happened.
"""

from __future__ import annotations

import csv
import importlib
import os
import pkgutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
COLUMNS = ("kind", "case", "outcome", "broken", "seconds", "commit")


class BrokenPromiseError(AssertionError):
    """A promise did not hold."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: as in the table, such as ``"SIGKILL: training, SARB, 2 workers"``.
        promise: what must hold in every case, one sentence.
        cases: how many in the full run.
        short: how many of them in ``make test``.
        run: makes case number ``seed`` in an empty folder; returns what happened or raises :class:`BrokenPromiseError`.
    """

    name: str
    promise: str
    cases: int
    short: int
    run: Callable[[Path, int], str]


def kinds() -> list[Kind]:
    """All kinds of all modules in this folder, in the order of the modules' names."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(HERE)]))
    modules = [importlib.import_module(f"tests.faults.{name}") for name in names if name != "__main__"]
    found = [kind for module in modules for kind in getattr(module, "KINDS", [])]
    twice = [name for name, count in Counter(kind.name for kind in found).items() if count > 1]
    assert not twice, f"two kinds of the same name: {twice}"
    return found


def run_all(chosen: Iterable[Kind], file: Path) -> bool:
    """Run the cases that are not in the CSV yet; return whether every promise held."""
    done = {(row["kind"], row["case"]) for row in rows(file)}
    commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    held = True
    for kind in chosen:
        for seed in range(kind.cases):
            if (kind.name, str(seed)) in done:
                continue
            start = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="sarb-fault-") as folder:
                try:
                    outcome, broken = kind.run(Path(folder), seed), ""
                except BrokenPromiseError as error:
                    outcome, broken, held = "broken", str(error), False
            _append(file, (kind.name, seed, outcome, broken, f"{time.monotonic() - start:.2f}", commit))
        print(f"{kind.name}: {dict(_outcomes(rows(file), kind))}", flush=True)
    return held


def rows(file: Path) -> list[dict[str, str]]:
    """The cases that have been run."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def table(done: Sequence[Mapping[str, str]], chosen: Iterable[Kind]) -> str:
    """Markdown: each kind with its promise, how many cases of how many, what happened, what broke."""
    lines = ["| fault | promise | cases | what happened | broken |", "|---|---|---|---|---|"]
    for kind in chosen:
        found = _outcomes(done, kind)
        broken = found.pop("broken", 0)
        happened = ", ".join(f"{count} {word}" for word, count in sorted(found.items()))
        ran = broken + found.total()
        cases = f"{ran:,}" if ran == kind.cases else f"{ran:,} of {kind.cases:,}"
        lines.append(f"| {kind.name} | {kind.promise} | {cases} | {happened} | {broken} |")
    return "\n".join(lines)


def _outcomes(done: Sequence[Mapping[str, str]], kind: Kind) -> Counter[str]:
    return Counter(row["outcome"] for row in done if row["kind"] == kind.name)


def _append(file: Path, row: Sequence[object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow(row)
        stream.flush()
        os.fsync(stream.fileno())
