"""Full disks, limits on files, read-only folders, a full or closed stdout: one line with the file, nothing lost.

A case runs a command on a copy of a small run. The fault starts when the chosen file is about to be written. The
kernel makes it: a tmpfs is filled so that some pages are left (ENOSPC), or the size of a file is limited to an
exact number of bytes (EFBIG), which needs no rights. Where nothing can be mounted, all cases use the limit.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import resource
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.children import Finished, sarb, through_the_shell
from tests.faults.small_run import DATA, OPTIONS, copy_run, mount, mounts_work, small_run

PAGE = 4096
#: offsets at which each file is cut
OFFSETS = 20
#: cases of a kind, the last ones, that start a new interpreter as a shell does
BY_SHELL = 20
#: what the system says
REASONS = ("No space left on device", "File too large", "Read-only file system", "Permission denied")
#: size of the file system of a case
ROOM = 64 << 20

#: command -> its arguments, and the files that it writes; {disk} is where they go
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "train": (
        ["train", "--data", DATA, *OPTIONS, "--out", "{disk}/new", "--quiet"],
        [
            "config.json",
            "labels.npz",
            "state.safetensors",
            "log.csv",
            "steps.csv",
            "model.safetensors",
            "scores.npz",
            "test_labels.npz",
            "metrics.json",
            "per_category.csv",
            "report.html",
        ],
    ),
    "calibrate": (["calibrate", "{disk}/run", "--folds", "2", "--quiet"], ["oof.npz", "thresholds.json"]),
    "complete": (
        ["complete", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "{disk}/filled.csv"],
        ["filled.csv", "conflicts.csv"],
    ),
    "suggest": (
        ["suggest", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "{disk}/ask.csv"],
        ["ask.csv"],
    ),
    "predict": (
        ["predict", "{disk}/run", "{photos}", "--out", "{disk}/predicted.csv"],
        ["predicted.csv"],
    ),
    "convert": (
        ["data", "convert", DATA, "-o", "encoding=binary", "--out", "{disk}/{file}"],
        ["new.csv", "new.jsonl", "new.parquet", "new.npy"],
    ),
    "evaluate": (
        ["evaluate", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "{disk}/measured"],
        ["metrics.json", "per_category.csv"],
    ),
    "explain": (
        ["explain", "{disk}/run", "{photos}/1.png", "--category", "red", "--out", "{disk}/red.png"],
        ["red.png"],
    ),
    "export": (
        ["export", "{disk}/run", "{disk}/model.onnx", "--images", "{photos}/1.png"],
        ["model.onnx"],
    ),
    "report": (["report", "{disk}/run"], ["report.html", "loss.png"]),
    "audit": (
        ["data", "audit", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "{disk}/audit"],
        ["audit.csv", "audit.html"],
    ),
}
#: files of the run that a command replaces one after the other; each must be as before or whole
WRITES_AGAIN = {
    "report": ("metrics.json", "per_category.csv", ".png", "report.html"),
    "calibrate": ("metrics.json", "per_category.csv", ".png", "report.html", "config.json", "manifest.json"),
}
#: commands that print, for the cases of stdout
PRINTING: list[list[str]] = [
    ["list", "methods"],
    ["--help"],
    ["predict", "{disk}/run", "{photos}/1.png"],
    ["predict", "{disk}/run", "{photos}", "--out", "-"],
    ["evaluate", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--json"],
    ["suggest", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "/dev/stdout"],
    ["complete", "{disk}/run", "--data", DATA, "-o", "encoding=binary", "--out", "-", "--to", "wide"],
    ["data", "stats", DATA, "-o", "encoding=binary"],
    ["data", "convert", DATA, "-o", "encoding=binary", "--out", "-", "--to", "jsonl"],
    ["report", "{disk}/run"],
]


# the faults, in the process of the command


def _at_file(name: str, limit: int | None, filler: str, room: int) -> None:
    """Let the fault begin when a file of this name is about to be written."""
    files: Any = importlib.import_module("sarb.files")
    features: Any = importlib.import_module("sarb.batches.features")
    real_naming, real_array = files.naming, features.new_array

    @contextmanager
    def naming(path: Any, temporary: Path | None = None) -> Iterator[None]:
        with real_naming(path, temporary), _fault(Path(path).name == name, limit, filler, room):
            yield

    def new_array(*arguments: Any) -> Any:
        with _fault(name == "features", limit, filler, room):
            return real_array(*arguments)

    files.naming = naming
    features.new_array = new_array


@contextmanager
def _fault(now: bool, limit: int | None, filler: str, room: int) -> Iterator[None]:
    if not now:
        yield
    elif limit is None:
        _fill(Path(filler), room)
        yield
    else:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            yield
        finally:  # the output of the command is a file, too
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _fill(filler: Path, room: int) -> None:
    """Fill the file system of a file until this many bytes are left."""
    with filler.open("ab") as file, contextlib.suppress(OSError):
        state = os.statvfs(filler.parent)
        os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize - room))


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _print_to(device: str) -> None:
    if device:
        os.dup2(os.open(device, os.O_WRONLY), 1)
    else:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)


# the cases


@contextmanager
def _disk(folder: Path, size: int | None) -> Iterator[Path]:
    """A folder with a copy of the run: a file system of this size of its own, or a plain folder."""
    disk = folder / "disk"
    disk.mkdir()
    if size is None:
        copy_run(disk)
        yield disk
    else:
        with mount(disk, size):
            copy_run(disk)
            yield disk


def _words(words: list[str], disk: Path, file: str = "") -> list[str]:
    base = small_run()
    return [word.format(disk=disk, photos=base / "data", file=file, base=base) for word in words]


def _environment(disk: Path) -> dict[str, str]:
    return {"SARB_CACHE": str(disk / "cache"), "OMP_NUM_THREADS": "1"}


def _contents(disk: Path) -> dict[str, bytes]:
    files = (path for path in disk.rglob("*") if path.is_file() and path.name != "filler")
    return {str(path.relative_to(disk)): path.read_bytes() for path in files}


def _check(done: Finished, before: Mapping[str, bytes], disk: Path, file: str, command: str = "") -> str:
    """Hold the promises of a command that could not write."""
    lines = [line for line in done.err.splitlines() if line.strip()]
    said = f"exit {done.code}: {done.err[-2000:]}"
    if done.code != 2:
        raise BrokenPromiseError(f"not exit code 2 for {file}; {said}")
    if any(word in done.err for word in ("Traceback", "bug of ours", "Exception ignored")):
        raise BrokenPromiseError(f"more than a line; {said}")
    named = [
        line
        for line in lines
        if line.startswith(f"sarb: {disk.parent}") and file in line and any(why in line for why in REASONS)
    ]
    if len(named) != 1 or lines[-1] != named[0]:
        raise BrokenPromiseError(f"expected one last line that names {file}; {said}")
    after = _contents(disk)
    changed = [name for name, content in before.items() if after.get(name) != content]
    if any(not name.endswith(WRITES_AGAIN.get(command, "\0")) for name in changed) or not _whole(
        disk, changed
    ):
        raise BrokenPromiseError(f"changed or gone: {changed}; {said}")
    left = [str(path) for path in disk.rglob("*") if "partial" in path.name or ".sarb-" in path.name]
    if left:
        raise BrokenPromiseError(f"left behind: {left}; {said}")
    return named[0]


def _whole(disk: Path, names: list[str]) -> bool:
    """Whether files that were written again can be read."""
    for name in names:
        file = disk / name
        if not file.is_file():
            return False
        if file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".png":
            Image.open(file).load()
        elif file.suffix == ".npz":
            np.load(file)
        elif not file.read_text().endswith("\n"):
            return False
    return True


@cache
def _size(command: str, file: str) -> int:
    """Size of a file when nothing is wrong."""
    folder = small_run() / f"undisturbed-{command}-{file}"
    folder.mkdir()
    with _disk(folder, None) as disk:
        if file == "features":
            shutil.rmtree(disk / "cache")
        words = _words(COMMANDS[command][0], disk, file)
        done = sarb(words, folder, environment=_environment(disk))
        assert done.code == 0, done.err
        pattern = "cache/features/*.npy" if file == "features" else f"**/{file}"
        newest = max(disk.glob(pattern), key=lambda path: path.stat().st_mtime)
        return newest.stat().st_size


def _cut(command: str, files: list[str], folder: Path, case: int) -> str:
    """Cut one of the files of a command at one of the offsets."""
    file, seed = files[case % len(files)], case // len(files)
    offset = _size(command, file) * seed // OFFSETS if seed else 0
    full = mounts_work() and seed % 2 == 0
    with _disk(folder, ROOM if full else None) as disk:
        if file == "features":
            shutil.rmtree(disk / "cache")
        before = _contents(disk)
        given = (file, None if full else offset, str(disk / "filler"), offset // PAGE * PAGE)
        words = _words(COMMANDS[command][0], disk, file)
        done = sarb(words, folder, environment=_environment(disk), before=_at_file, given=given)
        line = _check(done, before, disk, ".npy" if file == "features" else file, command)
        if seed % 5 == 4:
            _again(command, words, disk, folder)
        return f"refused, {'ENOSPC' if 'No space' in line else 'EFBIG'}"


def _again(command: str, words: list[str], disk: Path, folder: Path) -> None:
    """With room, the command does what it should."""
    (disk / "filler").unlink(missing_ok=True)
    more = {"train": ["--resume"], "complete": ["--overwrite"], "audit": ["--overwrite"]}
    done = sarb([*words, *more.get(command, [])], folder, environment=_environment(disk))
    if done.code != 0:
        raise BrokenPromiseError(f"the command does not go on when there is room: {done.err[-1000:]}")


def _any_command(chance: random.Random, disk: Path) -> tuple[str, list[str]]:
    """A command, and its words."""
    command = chance.choice(list(COMMANDS))
    words, files = COMMANDS[command]
    return command, _words(words, disk, chance.choice(files))


def _tiny(cases: int, folder: Path, case: int) -> str:
    """A file system with a random amount of room, from the start."""
    if not mounts_work():
        pytest.skip(
            "no file system can be mounted here; the limit on the size of a file makes the same faults"
        )
    chance = random.Random(case)
    with _disk(folder, ROOM) as disk:
        command, words = _any_command(chance, disk)
        _fill(disk / "filler", chance.randrange(0, 12) * PAGE)
        before = _contents(disk)
        done = _run(cases, case, words, folder, disk)
        if done.code == 0:
            return "had room"
        _check(done, before, disk, str(disk), command)
        return "refused"


def _small_files(cases: int, folder: Path, case: int) -> str:
    """``ulimit -f`` from the start: any file that is too large is named."""
    chance = random.Random(case)
    with _disk(folder, None) as disk:
        command, words = _any_command(chance, disk)
        before = _contents(disk)
        limit = chance.randrange(4, 24) * 1024  # the output of the command is a file, too
        done = _run(cases, case, words, folder, disk, _limit, limit)
        if done.code == 0:
            return "had room"
        line = _check(done, before, disk, str(disk), command)
        if "File too large" not in line:
            raise BrokenPromiseError(f"the reason is missing: {line}")
        return "refused"


def _read_only(cases: int, folder: Path, case: int) -> str:
    """A read-only file system, or for anyone but root a folder without the right to write."""
    chance = random.Random(case)
    mounted = mounts_work()
    if not mounted and os.geteuid() == 0:
        pytest.skip("root may write to any folder, and no file system can be mounted here")
    with _disk(folder, ROOM if mounted else None) as disk:
        _, words = _any_command(chance, disk)
        before = _contents(disk)
        with _write_protected(disk, mounted):
            done = _run(cases, case, words, folder, disk)
        line = _check(done, before, disk, str(disk))
        if not any(reason in line for reason in ("Read-only file system", "Permission denied")):
            raise BrokenPromiseError(f"the reason is missing: {line}")
        return "refused"


@contextmanager
def _write_protected(disk: Path, mounted: bool) -> Iterator[None]:
    if mounted:
        with mount(disk, None):
            yield
        return
    folders = [disk, *(path for path in disk.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in folders:
            path.chmod(0o755)


def _full_stdout(cases: int, folder: Path, case: int) -> str:
    with _disk(folder, None) as disk:
        words = _words(PRINTING[case % len(PRINTING)], disk)
        before = _contents(disk)
        done = _run(cases, case, words, folder, disk, _print_to, "/dev/full")
        lines = done.err.splitlines()
        if done.code != 2 or not lines[-1].startswith("sarb: standard output: No space left on device"):
            raise BrokenPromiseError(f"exit {done.code}: {done.err[-1000:]}")
        if "Traceback" in done.err or "Exception ignored" in done.err or _lost(before, disk, words):
            raise BrokenPromiseError(f"more than a line, or a file changed: {done.err[-1000:]}")
        return "refused"


def _closed_stdout(cases: int, folder: Path, case: int) -> str:
    with _disk(folder, None) as disk:
        words = _words(PRINTING[case % len(PRINTING)], disk)
        before = _contents(disk)
        done = _run(cases, case, words, folder, disk, _print_to, "")
        if done.code != 141 or any(word in done.err for word in ("Traceback", "Broken", "Exception")):
            raise BrokenPromiseError(f"exit {done.code}: {done.err[-1000:]}")
        if _lost(before, disk, words):
            raise BrokenPromiseError("a file changed")
        return "silent"


def _lost(before: Mapping[str, bytes], disk: Path, words: list[str]) -> bool:
    """Whether a file differs, apart from those the command writes again before it prints."""
    after = _contents(disk)
    own = WRITES_AGAIN.get(words[0], "\0")
    return any(after.get(name) != content for name, content in before.items() if not name.endswith(own))


def _run(
    cases: int, case: int, words: list[str], folder: Path, disk: Path, before: Any = None, *given: Any
) -> Finished:
    """Run a command, forked; the last cases as a shell does."""
    if case < cases - BY_SHELL:
        return sarb(words, folder, environment=_environment(disk), before=before, given=given)
    environment = {**os.environ, **_environment(disk)}
    return through_the_shell(
        words, folder, env=environment, preexec_fn=None if before is None else partial(before, *given)
    )


FULL = "Exit code 2, one last line that names the file; earlier files intact, nothing half-written left."
KINDS = [
    *(
        Kind(
            f"disk full: {command} ({', '.join(files)})",
            FULL,
            OFFSETS * len(files),
            1,
            partial(_cut, command, files),
        )
        for command, (_, files) in COMMANDS.items()
    ),
    Kind(
        "disk full: feature cache", f"{FULL} No SIGBUS.", OFFSETS, 1, partial(_cut, "complete", ["features"])
    ),
    Kind("disk full: file system of random size", FULL, 100, 1, partial(_tiny, 100)),
    Kind("ulimit -f, any command", FULL, 100, 1, partial(_small_files, 100)),
    Kind("read-only folder, any command", FULL, 60, 1, partial(_read_only, 60)),
    Kind(
        "full stdout (/dev/full)",
        "Exit code 2 and one line; no file changed.",
        40,
        2,
        partial(_full_stdout, 40),
    ),
    Kind("closed pipe", "Exit code 141, silent; no file changed.", 40, 2, partial(_closed_stdout, 40)),
]
