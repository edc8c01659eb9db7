"""Write a review's CSV in the background: soon after an answer, but for at most a fifth of the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sarb.errors import SarbError

#: pause between two writes: at least PAUSE seconds, and at least SHARE times as long as a write takes
PAUSE = 1.0
SHARE = 4.0


class Saver:
    """Call ``write`` after :meth:`touch`, at most every ``PAUSE`` seconds, and once more at the end.

    The journal already holds every answer, so nothing is lost if the file is a second old.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self.problem = ""
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._busy = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="sarb-saver", daemon=True)
        self._thread.start()

    def touch(self) -> None:
        """Note that there is something new to write."""
        self._changed.set()

    def save(self) -> None:
        """Write now if there is anything new; after an error, set ``problem`` and try again later."""
        with self._busy:
            if not self._changed.is_set():
                return
            self._changed.clear()
            try:
                self._write()
                self.problem = ""
            except (SarbError, OSError) as error:
                self._changed.set()
                self.problem = str(error)

    def _run(self) -> None:
        while True:
            self._changed.wait()
            if self._ended.is_set():
                return
            started = time.monotonic()
            self.save()
            self._ended.wait(max(PAUSE, SHARE * (time.monotonic() - started)))

    def close(self) -> None:
        """Write what is new and stop; calling it again does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        self.save()
        problem = self.problem
        waiting = self._changed.is_set()
        self._changed.set()  # wakes the thread
        self._thread.join()
        if waiting and problem:
            raise SarbError(problem)
