"""Train again on the answers: one training at a time, in a process of its own, with the run's own command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from sarb.errors import SarbError
from sarb.model import load_model
from sarb.runs.again import free_folder, repeated
from sarb.runs.folder import RunFolder
from sarb.serve.collected import Collected
from sarb.serve.recogniser import Recogniser
from sarb.serve.say import say


class Retraining:
    """Starts trainings and takes over the new model.

    Args:
        run: the run folder; each training writes a new folder beside it, ``RUN-2``, ``RUN-3`` …
        recogniser: gets the new model.
        collected: the answers.
        after: train after this many new answered images; 0: only when asked to.

    Raises:
        SarbError: the run does not say how it was trained.
    """

    def __init__(self, run: Path, recogniser: Recogniser, collected: Collected, after: int = 0) -> None:
        self.run = run
        self.recogniser = recogniser
        self.collected = collected
        self.after = after
        self._command = repeated(run)
        if not self._command:
            raise SarbError(
                f"{run}: does not say which command trained it, so it cannot be trained again; "
                "leave out --retrain-after"
            )
        self._current = run
        self._known = collected.tasks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a training is under way."""
        return self._thread is not None and self._thread.is_alive()

    def waiting(self) -> int:
        """How many images were answered since the last training started."""
        return self.collected.tasks - self._known

    def due(self) -> bool:
        """Whether there are enough new answers, and nothing is running."""
        return bool(self.after) and self.waiting() >= self.after and not self.running

    def start(self, reason: str) -> str:
        """Start a training; return in a few words what happened, and say it on stderr."""
        with self._lock:
            if self._closed or self.running:
                say(f"{reason}, but a training is running already")
                return "a training is running already"
            out = free_folder(self.run)
            answered = self.collected.out
            reading = self.collected.snapshot(answered.with_stem(f"{answered.stem}-{out.name}"))
            words = [*shlex.split(reading.command(*self._command, "--data")), "--out", str(out)]
            self._known = self.collected.tasks
            say(f"training again: {reason}\n$ {shlex.join(['sarb', *words])}")
            self._process = subprocess.Popen([sys.executable, "-m", "sarb.cli", *words], stdout=sys.stderr)
            self._thread = threading.Thread(
                target=self._take_over, args=(self._process, out), name="sarb-training", daemon=True
            )
            self._thread.start()
        return f"training {out.name}"

    def _take_over(self, process: subprocess.Popen[bytes], out: Path) -> None:
        code = process.wait()
        if self._closed:
            return
        if code:
            say(f"the training of {out} failed with exit code {code}; {self._current} goes on answering")
            return
        try:
            self.recogniser.replace(load_model(out))
        except SarbError as error:
            say(f"the new model is not used: {error}")
            return
        before, now = (RunFolder(run).metrics.get("mAP") for run in (self._current, out))
        self._current = out
        say(f"{out} answers from now on{_compared(before, now)}")

    def close(self) -> None:
        """Stop a running training."""
        with self._lock:
            self._closed = True
        if self.running and self._process is not None:
            self._process.terminate()
            say("the training that was running is stopped; what it had finished is saved")
        if self._thread is not None:
            self._thread.join()


def _compared(before: Any, now: Any) -> str:
    if before is None or now is None:
        return ""
    return f": mAP {now:.1f} on the test images, {before:.1f} before"
