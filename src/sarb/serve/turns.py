"""Work that takes memory waits for its turn: few threads, a bound on memory at once, a bound on those who wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from sarb.data.decoding import Header, Source, read_header
from sarb.errors import ImageError, SarbError
from sarb.serve.bodies import RETRY
from sarb.serve.memory import give_back

Result = TypeVar("Result")
#: threads that decode
DECODERS = 2
#: bytes that decoding may take: two photos of 48 megapixels at once, or a PNG of 38
MEMORY = 768_000_000
#: how many may wait
MOST_WAITING = 128


class BusyError(SarbError):
    """Too much to do at the moment; the client may try again."""


class Workers:
    """A few threads, and a queue that is never longer than ``waiting``. May be used from any thread."""

    def __init__(self, threads: int, waiting: int = MOST_WAITING) -> None:
        self._pool = ThreadPoolExecutor(threads, "sarb-worker")
        self._most = threads + waiting
        self._lock = threading.Lock()
        self._pending = 0

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Do this when its turn comes.

        Raises:
            BusyError: too many wait already.
        """
        with self._lock:
            if self._pending >= self._most:
                raise BusyError(f"{self._pending} others are waiting already; try again in {RETRY} seconds")
            self._pending += 1
        try:
            future = self._pool.submit(work)
        except BaseException:
            self._done()
            raise
        future.add_done_callback(self._done)
        return future

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do this when its turn comes, and wait for it without keeping a thread."""
        return await asyncio.wrap_future(self.submit(work))

    def _done(self, _: object = None) -> None:
        with self._lock:
            self._pending -= 1
            last = self._pending == 0
        if last:
            give_back()


class Decoders:
    """Everybody's way to images: decoding takes a bounded amount of memory, whatever people send.

    Args:
        draft: no image is shrunk to less than this on the way, as for :func:`sarb.data.images.decode`.
        memory: bytes at once, and for one image.
        waiting: how many may wait for their turn.
    """

    def __init__(self, draft: int | None = None, memory: int = MEMORY, waiting: int = MOST_WAITING) -> None:
        self.draft = draft
        self.memory = memory
        self.workers = Workers(DECODERS, waiting)
        self._free = memory
        self._changed = threading.Condition()

    def submit(self, source: Source, work: Callable[[Header], Result]) -> Future[Result]:
        """Call ``work`` with the header of an image when there is room to decode it.

        The future raises an ``ImageError`` if there is no image, or if it is too large; see also
        :meth:`Workers.submit`.
        """
        return self.workers.submit(lambda: self._turn(source, work))

    async def run(self, source: Source, work: Callable[[Header], Result]) -> Result:
        """The same, for the event loop."""
        return await asyncio.wrap_future(self.submit(source, work))

    def _turn(self, source: Source, work: Callable[[Header], Result]) -> Result:
        header = read_header(source, self.draft)
        if header.memory > self.memory:
            raise ImageError(
                f"{header.name}: too large, {header.width} × {header.height} pixels would take "
                f"{header.memory // 1_000_000} MB of memory (at most {self.memory // 1_000_000} MB)"
            )
        with self._changed:
            self._changed.wait_for(lambda: self._free >= header.memory)
            self._free -= header.memory
        try:
            return work(header)
        finally:
            with self._changed:
                self._free += header.memory
                self._changed.notify_all()
