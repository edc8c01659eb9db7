"""``sarb`` in processes of its own, which can be killed: forked from a process that has imported torch.

``multiprocessing``'s fork server imports torch and sarb once; a command then starts in milliseconds and is a process
like any other. :func:`through_the_shell` starts a new interpreter instead, as a user's shell does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

#: seconds after which a command counts as hanging
PATIENCE = 300
PRELOADED = [
    *("torch", "sarb.cli", "sarb.training.run", "sarb.model", "tests.faults.children"),
    *("sarb.workflows.training", "sarb.workflows.calibration", "sarb.reproduce", "sarb.report.style"),
]


@dataclass(frozen=True)
class Finished:
    """How a command ended: its exit code (negative: the signal that killed it) and what it printed."""

    code: int
    out: str
    err: str


class Running:
    """A command that has been started; ``pid`` is the process itself, ``folder`` holds what it printed."""

    def __init__(self, process: BaseProcess, folder: Path) -> None:
        self._process, self.folder = process, folder
        assert process.pid is not None
        self.pid: int = process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def kill(self) -> Finished:
        """SIGKILL, to its data-loading workers as well."""
        self._kill()
        return self.wait()

    def _kill(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # not yet a group of its own, or gone
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = PATIENCE) -> Finished:
        """Wait for the end; a command that hangs is killed, and its code is that of the signal."""
        self._process.join(timeout)
        if self._process.is_alive():
            self._kill()
            self._process.join()
        files = (self.folder / name for name in ("out", "err"))  # not there if it was killed at once
        texts = [file.read_text(errors="replace") if file.exists() else "" for file in files]
        code = self._process.exitcode
        assert code is not None
        return Finished(code, *texts)


def start(
    arguments: Sequence[str | Path],
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    before: Callable[..., None] | None = None,
    given: Sequence[Any] = (),
) -> Running:
    """Start ``sarb ARGUMENTS`` in ``folder``.

    Args:
        arguments: of the command line.
        folder: current folder of the command; its output goes to hidden files there.
        environment: variables to set.
        before: a function of a module, called in the new process first with ``given`` (limits, patches …).
        given: arguments of ``before``.
    """
    said = folder / f".said-{os.urandom(4).hex()}"
    said.mkdir(parents=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    texts = [str(each) for each in arguments]
    process = context.Process(target=_child, args=(texts, folder, said, environment or {}, before, given))
    process.start()
    return Running(process, said)


def sarb(arguments: Sequence[str | Path], folder: Path, **options: Any) -> Finished:
    """Run ``sarb ARGUMENTS`` to its end; options as of :func:`start`."""
    return start(arguments, folder, **options).wait()


def through_the_shell(arguments: Sequence[str | Path], folder: Path, **options: Any) -> Finished:
    """Run ``sarb ARGUMENTS`` in a new interpreter; options as of ``subprocess.run``."""
    command = [sys.executable, "-m", "sarb.cli", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=PATIENCE, **options
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def _child(
    arguments: Sequence[str],
    folder: Path,
    said: Path,
    environment: Mapping[str, str],
    before: Callable[..., None] | None,
    given: Sequence[Any],
) -> None:
    os.setsid()
    # as in a shell: it would else start data-loading workers from a fork server of its own, in many seconds
    multiprocessing.set_start_method("fork", force=True)
    os.chdir(folder)
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(said / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  open until the process ends
    sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = ["sarb", *arguments]
    if before is not None:
        before(*given)
    from sarb.cli import main

    main()
