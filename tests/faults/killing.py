"""Kill a command by SIGKILL: after a while, at the n-th event, or inside the write of a file; then run it again.

An event is a training step, a batch of features, or something that changes the folder: a file opened for writing,
fsync, rename, an exchange of two folders, removal. Events have the same numbers in every run, so that kills at random
numbers reach every place. Kills after a random time reach what lies between them.
"""

from __future__ import annotations

import importlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.bench import BrokenPromiseError
from tests.faults.children import PATIENCE, Finished, start
from tests.faults.small_run import DATA, small_run

ROOT = Path(__file__).parents[2]

#: what a new interpreter runs: the fault first, then the command line
PROGRAM = "from tests.faults.killing import arm; arm({plan!r}); from sarb.cli import main; main()"
AUDITED = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Plan:
    """When a process kills itself, and what it leaves out to be quick.

    Attributes:
        watched: events in other folders do not count.
        event: number of the event, from 1; 0 for never.
        file: name of a file; the kill comes inside one of its writes …
        write: … this one, from 1 …
        offset: … after so many bytes, or when the file is in place if it is shorter.
        counter: file that gets the number of events.
        quick: draw no pictures, and run the cells of a grid in the process itself.
    """

    watched: str = ""
    event: int = 0
    file: str = ""
    write: int = 1
    offset: int = 0
    counter: str = ""
    quick: bool = True


# in the process of the command


def arm(plan: Plan) -> None:
    """Prepare the kill."""
    if plan.quick:
        _be_quick()
    counter = _Counter(plan)
    sys.addaudithook(counter.audit)
    real = os.fsync

    def fsync(number: int) -> None:
        counter.count()
        real(number)

    os.fsync = fsync
    for module, name in (
        ("sarb.training.loop", "Training._step"),
        ("sarb.batches.features", "activations"),
        ("sarb.runs.swap", "exchange"),
    ):
        _count_calls(importlib.import_module(module), name, counter)
    if plan.file:
        files: Any = importlib.import_module("sarb.files")
        files.naming = _cutting(files.naming, plan)


class _Counter:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.done = 0
        self.file = os.open(plan.counter, os.O_WRONLY | os.O_CREAT) if plan.counter else None

    def audit(self, event: str, given: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(given[2], int) and given[2] & WRITING
        if writes or event in AUDITED:
            paths = given[:2] if event == "os.rename" else given[:1]
            if any(str(path).startswith(self.plan.watched) for path in paths):
                self.count()

    def count(self) -> None:
        self.done += 1
        if self.file is not None:
            os.pwrite(self.file, str(self.done).encode(), 0)
        if self.done == self.plan.event:
            _die()


def _die() -> None:
    os.killpg(os.getpgrp(), signal.SIGKILL)  # with the processes that read images


def _count_calls(owner: Any, name: str, counter: _Counter) -> None:
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    real = getattr(owner, last)

    def counted(*given: Any, **named: Any) -> Any:
        counter.count()
        return real(*given, **named)

    setattr(owner, last, counted)


def _cutting(real: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """Let the kernel end the write at the offset, and die there."""
    writes = 0

    @contextmanager
    def naming(path: Any, temporary: Path | None = None) -> Iterator[None]:
        nonlocal writes
        writes += Path(path).name == plan.file
        with real(path, temporary):
            if Path(path).name != plan.file or writes != plan.write:
                yield
                return
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (plan.offset, hard))
            try:
                yield
            finally:
                _die()

    return naming


def _be_quick() -> None:
    for name in ("sarb.workflows.training", "sarb.workflows.calibration"):
        importlib.import_module(name).write_report = lambda *given, **named: None  # type: ignore[attr-defined]
    jobs: Any = importlib.import_module("sarb.jobs.local")
    jobs.Worker = _InProcess
    style: Any = importlib.import_module("sarb.report.style")
    style.DOTS_PER_INCH = 20


class _InProcess:
    """A worker of a grid without a process of its own."""

    def __init__(self, *_: Any) -> None:
        pass

    def run(self, task: dict[str, Any]) -> dict[str, Any]:
        worker: Any = importlib.import_module("sarb.reproduce.worker")
        answer: dict[str, Any] = worker.answer(task)
        return answer

    def rest(self) -> None:
        pass

    def stop(self) -> None:
        pass


# in the process of the test


@dataclass
class Scene:
    """A command that is killed and run again.

    Attributes:
        words: of the command; {disk} is its folder, {base} that of :func:`small_run`.
        prepare: fills the folder first.
        result: what must be the same as without a kill.
        check: raises if something in the folder cannot be loaded after a kill.
        kills: the most kills of a case.
        watched: folder in which events count, and {disk} its start.
        files: names of the files inside whose writes it is killed; none for kills at any place.
    """

    words: Sequence[str]
    prepare: Callable[[Path], None]
    result: Callable[[Path], Any]
    check: Callable[[Path], None]
    kills: int = 1
    watched: str = "{disk}"
    files: Sequence[str] = ()
    whole: tuple[Any, int, float, dict[str, int]] | None = field(default=None, init=False)

    def case(self, cases: int, by_shell: int, folder: Path, seed: int) -> str:
        """Kill once or several times, and finish; the last cases start a new interpreter as a shell does."""
        chance = random.Random(f"{self.words} {seed}")
        shell = seed >= cases - by_shell
        disk = folder / "disk"
        disk.mkdir()
        self.prepare(disk)
        expected = self._undisturbed()[0]
        killed = 0
        for _ in range(chance.randint(1, self.kills)):
            done = self._kill(disk, folder, chance, shell)
            if done.code not in (0, -signal.SIGKILL):
                raise BrokenPromiseError(f"exit {done.code} before the kill: {done.err[-1500:]}")
            killed += done.code != 0
            self._checked(disk)
        done = self._run(disk, folder, Plan(), shell).wait()
        if done.code != 0:
            raise BrokenPromiseError(f"exit {done.code} after {killed} kills: {done.err[-1500:]}")
        found = self.result(disk)
        if found != expected:
            raise BrokenPromiseError(f"another result after {killed} kills: {_difference(found, expected)}")
        return "the same" if killed else "finished before the kill"

    def _checked(self, disk: Path) -> None:
        try:
            self.check(disk)
        except BrokenPromiseError:
            raise
        except Exception as error:
            raise BrokenPromiseError(f"not loadable after a kill: {type(error).__name__}: {error}") from error

    def _undisturbed(self) -> tuple[Any, int, float, dict[str, int]]:
        """Result, number of events, seconds, and how often each file is written, without a kill."""
        if self.whole is None:
            folder = small_run() / f"whole-{id(self)}"
            disk = folder / "disk"
            shutil.rmtree(folder, ignore_errors=True)  # of a first try that failed
            disk.mkdir(parents=True)
            self.prepare(disk)
            counter = folder / "events"
            started = time.monotonic()
            done = self._run(disk, folder, Plan(self._watched(disk), counter=str(counter)), False).wait()
            assert done.code == 0, done.err
            sizes = {name: max(path.stat().st_size for path in disk.rglob(name)) for name in self.files}
            self.whole = self.result(disk), int(counter.read_text()), time.monotonic() - started, sizes
        return self.whole

    def _watched(self, disk: Path) -> str:
        return self.watched.format(disk=disk)

    def _kill(self, disk: Path, folder: Path, chance: random.Random, shell: bool) -> Finished:
        _, events, seconds, sizes = self._undisturbed()
        if self.files and chance.random() < 0.5:
            name = chance.choice(list(self.files))
            plan = Plan(
                file=name,
                write=chance.randint(1, 2),
                offset=chance.randrange(sizes[name] + 1),
            )
            return self._run(disk, folder, plan, shell).wait()
        if self.files or chance.random() < 0.6:
            plan = Plan(self._watched(disk), event=chance.randint(1, events))
            return self._run(disk, folder, plan, shell).wait()
        running = self._run(disk, folder, Plan(quick=not shell), shell)
        time.sleep(chance.uniform(0, seconds + (4 if shell else 0)))  # a new interpreter imports torch first
        return running.kill()

    def _run(self, disk: Path, folder: Path, plan: Plan, shell: bool) -> Any:
        base = small_run()
        words = [word.replace("{disk}", str(disk)).replace("{base}", str(base)) for word in self.words]
        environment = {"SARB_CACHE": str(disk / "cache"), "OMP_NUM_THREADS": "1"}
        if shell:
            return _Shell(words, folder, environment, plan)
        return start(words, folder, environment=environment, before=arm, given=(plan,))


def _difference(found: Any, expected: Any) -> str:
    """Where two results differ first."""
    if isinstance(found, tuple | list) and isinstance(expected, tuple | list) and len(found) == len(expected):
        pairs = zip(found, expected, strict=True)
        return next((_difference(one, other) for one, other in pairs if one != other), "")
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
        return f"{keys[0]}: {_difference(found.get(keys[0]), expected.get(keys[0]))}"
    return f"{str(found)[:500]!r}, not {str(expected)[:500]!r}"


class _Shell:
    """``sarb`` in a new interpreter and a group of its own."""

    def __init__(self, words: Sequence[str], folder: Path, environment: dict[str, str], plan: Plan) -> None:
        program = [sys.executable, "-m", "sarb.cli", *words]
        if plan != Plan(quick=False):
            code = f"from tests.faults.killing import Plan; {PROGRAM.format(plan=plan)}"
            program = [sys.executable, "-c", code, *words]
        self.said = folder / f".said-{os.urandom(4).hex()}"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                program,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},  # the program imports this module
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait(self) -> Finished:
        code = self.process.wait(PATIENCE)
        return Finished(code, "", self.said.read_text(errors="replace"))

    def kill(self) -> Finished:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.wait()


#: words that name the data, which most commands need
SOURCE = ("--data", DATA, "-o", "encoding=binary")
