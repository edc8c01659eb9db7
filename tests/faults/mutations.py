"""Damaged files of a run and hostile configurations: a clear error or the undisturbed result, nothing in between."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.bench import Kind
from tests.faults.damaged_runs import COMMANDS, MANIFEST, copy, judge, listed, rehash, worst
from tests.faults.hostile import hostile_config, reshape

#: files of a run that no manifest covers
OTHERS = (
    "README.md",
    "log.csv",
    "metrics.json",
    "report.html",
    "per_category.csv",
    "steps.csv",
    "errors.csv",
    MANIFEST,
)
FINISHED = ("stepped", "fitted")


def damage(file: Path, chance: random.Random, other: Path) -> str:
    """Damage a file in one of nine ways; ``other`` is a file to exchange it with."""
    content = bytearray(file.read_bytes())
    how = chance.choice(["flip", "flips", "truncate", "extend", "zero", "noise", "swap", "empty", "delete"])
    start = chance.randrange(len(content)) if content else 0
    size = chance.randrange(1, 512)
    if how in ("flip", "flips"):
        for _ in range(1 if how == "flip" else 20):
            if content:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif how == "truncate":
        del content[start:]
    elif how == "extend":
        content += chance.randbytes(size)
    elif how == "zero":
        content[start : start + size] = bytes(len(content[start : start + size]))
    elif how == "noise":
        content[start : start + size] = chance.randbytes(len(content[start : start + size]))
    elif how == "swap":
        kept = bytes(content)
        content = bytearray(other.read_bytes())
        other.write_bytes(kept)
    elif how == "empty":
        content.clear()
    if how == "delete":
        file.unlink()
    else:
        file.write_bytes(content)
    return how


def _commands(kind: str, case: int) -> list[str]:
    """Predictions always, and one of the others in turn; a killed run can only go on."""
    if kind == "killed":
        return ["resume"]
    others = [name for name in COMMANDS if name != "predict"]
    return ["predict", others[case % len(others)]]


def _listed(folder: Path, case: int) -> str:
    """Damage a file that a manifest lists."""
    chance = random.Random(case)
    kind = ("stepped", "fitted", "killed")[case % 3]
    run = copy(kind, folder)
    files = listed(run)
    file = files[case // 3 % len(files)]
    other = chance.choice([each for each in files if each != file])
    damage(run / file, chance, run / other)
    return worst([judge(name, kind, folder, compare=True) for name in _commands(kind, case // 3)])


def _others(folder: Path, case: int) -> str:
    """Damage a file that no manifest lists, or a manifest."""
    chance = random.Random(case)
    kind = FINISHED[case % 2]
    run = copy(kind, folder)
    files = sorted(file for file in run.rglob("*") if file.name in OTHERS)
    file = files[case // 2 % len(files)]
    damage(file, chance, chance.choice([each for each in files if each != file]))
    outcomes = []
    for name in _commands(kind, case // 2):
        # a report shows what metrics.json says, and resuming writes again what is missing
        outcomes.append(judge(name, kind, folder, compare=name not in ("report", "resume")))
    return worst(outcomes)


def _rehashed(folder: Path, case: int) -> str:
    """Damage a file and its checksum: the schema must answer."""
    chance = random.Random(case)
    kind = ("stepped", "fitted", "killed")[case % 3]
    run = copy(kind, folder)
    files = listed(run)
    file = files[case // 3 % len(files)]
    if chance.random() < 0.8:
        reshape(run / file, chance)
    else:
        damage(run / file, chance, run / chance.choice([each for each in files if each != file]))
    rehash(run)
    return worst([judge(name, kind, folder, compare=False) for name in _commands(kind, case // 3)])


def _hostile(folder: Path, case: int) -> str:
    """A configuration that asks for memory, files, time or code."""
    chance = random.Random(case)
    kind = FINISHED[case % 2]
    run = copy(kind, folder)
    outcomes = hostile_config(run, case // 2, chance)
    if case % 4 < 2:
        rehash(run)
    else:
        for manifest in run.rglob(MANIFEST):
            manifest.unlink()
    names = ["predict"] if outcomes == "model" else ["predict", *_commands(kind, case)[1:]]
    return worst([judge(name, kind, folder, compare=False) for name in names])


DAMAGED = "A clear error, or the same result as undisturbed."
BOUNDED = "Exit code 0 or 2, no traceback, no hang, at most 2 GB of memory."
KINDS = [
    Kind("damage: files in the manifest", DAMAGED, 500, 1, _listed),
    Kind("damage: other files of a run", "A clear error, or no effect on predictions.", 100, 1, _others),
    Kind("damage: files with a right checksum", BOUNDED, 200, 1, _rehashed),
    Kind("hostile configurations", BOUNDED, 200, 1, _hostile),
]
