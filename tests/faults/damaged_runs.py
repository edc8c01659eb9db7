"""Runs to damage, and how a command on a damaged copy is judged: a clear error, or the undisturbed result."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from sarb.runs.manifest import state_of
from tests.faults.bench import BrokenPromiseError
from tests.faults.children import Finished, sarb
from tests.faults.small_run import DATA, OPTIONS, small_run

MANIFEST = "manifest.json"
#: memory that a command may ask for beyond what it has at its start
MOST_MEMORY = 2 << 30
#: seconds after which a command hangs
PATIENCE = 120
AUTO = ["-o", "encoding=binary", "--backbone", "tiny", "--image-size", "32"]
#: kind of run -> options of its training
TRAININGS = {"stepped": OPTIONS, "fitted": AUTO, "killed": OPTIONS}
#: command -> its words; {run} is the damaged copy, {out} a folder beside it
COMMANDS = {
    "predict": ["predict", "{run}", "{base}/data", "--out", "{out}/predicted.csv"],
    "evaluate": ["evaluate", "{run}", "--json"],
    "complete": ["complete", "{run}", "--out", "{out}/filled.csv"],
    "report": ["report", "{run}"],
    "resume": ["train", "--data", DATA, "{training}", "--out", "{run}", "--resume"],
}


def _environment() -> dict[str, str]:
    return {"SARB_CACHE": str(small_run() / "cache"), "OMP_NUM_THREADS": "1"}


@cache
def whole(kind: str) -> Path:
    """An undisturbed run: trained in steps, fitted by ``auto``, or killed after its first epoch."""
    base = small_run()
    run = base / f"whole-{kind}" / "run"
    run.parent.mkdir()
    if kind == "stepped":
        shutil.copytree(base / "run", run)
    else:
        words = ["train", "--data", DATA.format(base=base), *TRAININGS[kind], "--out", str(run), "--quiet"]
        before = _stop_after_an_epoch if kind == "killed" else None
        done = sarb(words, run.parent, environment=_environment(), before=before)
        assert done.code == (9 if kind == "killed" else 0), done.err
    if kind != "killed":
        done = sarb(["calibrate", run, "--folds", "2", "--quiet"], run.parent, environment=_environment())
        assert done.code == 0, done.err
    return run


def _stop_after_an_epoch() -> None:
    """End the process, as SIGKILL would, when the second epoch begins."""
    import os

    from sarb.methods.base import Method

    def begin_epoch(self: Any, epoch: int, *rest: Any) -> None:
        if epoch == 1:
            os._exit(9)
        real(self, epoch, *rest)

    from sarb.methods.sarb import SARB

    real = SARB.begin_epoch
    SARB.begin_epoch = begin_epoch  # type: ignore[method-assign]
    assert issubclass(SARB, Method)


def listed(run: Path) -> list[Path]:
    """The files in the manifests of a run, relative to it."""
    files = []
    for manifest in sorted(run.rglob(MANIFEST)):
        names = json.loads(manifest.read_text())
        files += [(manifest.parent / name).relative_to(run) for name in sorted(names) if name != "format"]
    return files


def rehash(run: Path) -> None:
    """Give all manifests the checksums of the files as they are now."""
    for manifest in run.rglob(MANIFEST):
        content = json.loads(manifest.read_text())
        for name in list(content):
            if name != "format":
                state = state_of(manifest.parent / name)
                content[name] = [state]
        manifest.write_text(json.dumps(content))


def copy(kind: str, folder: Path) -> Path:
    """A copy of a run to damage; its parent is ``folder``."""
    return Path(shutil.copytree(whole(kind), folder / "run"))


def run_command(command: str, kind: str, folder: Path) -> Finished:
    """Run a command on the run in ``folder``, with limited memory."""
    (folder / "out").mkdir(exist_ok=True)
    given = {"run": folder / "run", "out": folder / "out", "base": small_run()}
    words = []
    for word in COMMANDS[command]:
        words += TRAININGS[kind] if word == "{training}" else [word.format(**given)]
    return sarb(words, folder, environment=_environment(), before=_limit_memory)


def _limit_memory() -> None:
    torch.set_num_threads(1)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY, used + MOST_MEMORY))


def result(command: str, done: Finished, folder: Path) -> Any:
    """What a command has found out."""
    run = folder / "run"
    if command == "predict":
        return (folder / "out" / "predicted.csv").read_bytes()
    if command == "complete":
        return (folder / "out" / "filled.csv").read_bytes()
    if command == "evaluate":
        return done.out.replace(str(folder), "")
    if command == "resume":
        return {
            str(name): (run / name).read_bytes()
            for name in listed(run)
            if "checkpoint" not in name.parts and name.name != "config.json"
        }
    return (run / "metrics.json").read_bytes()


@cache
def undisturbed(command: str, kind: str) -> Any:
    """The result of a command on a whole run."""
    folder = small_run() / f"undisturbed-{command}-{kind}"
    folder.mkdir()
    copy(kind, folder)
    done = run_command(command, kind, folder)
    assert done.code == 0, done.err
    return result(command, done, folder)


def judge(command: str, kind: str, folder: Path, *, compare: bool, named: str = "") -> str:
    """Run a command on a damaged run: it must end with a clear error, or with the undisturbed result.

    Args:
        command: a key of ``COMMANDS``.
        kind: of the run.
        folder: with the run.
        compare: whether a result must be the undisturbed one.
        named: what an error must name.
    """
    expected = undisturbed(command, kind) if compare else None
    before = _contents(folder / "run")
    done = run_command(command, kind, folder)
    said = f"{command} ({kind}), exit {done.code}: {done.err[-1500:]}"
    if done.code not in (0, 2, 3):
        raise BrokenPromiseError(f"neither done nor refused; {said}")
    if any(word in done.err for word in ("Traceback", "bug of ours", "Exception ignored")):
        raise BrokenPromiseError(f"a bug message; {said}")
    if done.code == 2:
        last = done.err.strip().splitlines()[-1]
        if not done.err.startswith("sarb: ") and "\nsarb: " not in done.err:
            raise BrokenPromiseError(f"no clear line; {said}")
        if named and named not in done.err:
            raise BrokenPromiseError(f"the error does not name {named}: {last}")
        return "refused"
    if command == "resume" and kind != "killed" and _contents(folder / "run") == before:
        return "no effect"  # a finished run stays as it is, with its damage
    if compare and result(command, done, folder) != expected:
        raise BrokenPromiseError(f"silently another result; {said}")
    return "no effect" if compare else "accepted"


def _contents(run: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


def worst(outcomes: list[str]) -> str:
    """One word for the outcomes of several commands."""
    return "refused" if "refused" in outcomes else outcomes[0]


Change = Callable[[Path, Any], None]
