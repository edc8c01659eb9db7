"""Decode ahead in threads: the next images are read while the network works on the current ones.

Pillow releases the GIL while it decodes and resizes, so threads do as well as worker processes, without
starting any and without copying pixels between them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

#: how many batches to decode ahead of the one in use; this bounds the memory
AHEAD = 2

Key = TypeVar("Key")
Item = TypeVar("Item")
Whole = TypeVar("Whole")


class Lists(Protocol[Key]):
    """Lists of keys, with a length."""

    def __iter__(self) -> Iterator[list[Key]]:
        """Iterate over the lists."""

    def __len__(self) -> int:
        """Return the number of lists."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Ahead(Generic[Key, Item, Whole]):
    """Iterate over ``join(keys, [load(key) for key in keys])`` for each list of keys, in order.

    Threads load the items, up to ``AHEAD`` lists ahead; ``join`` runs in the thread of the loop. An exception
    in a thread is raised in the loop when its list is due. Leaving the loop early, by an exception or Ctrl-C,
    drops what is waiting and ends the threads after their current items.

    Args:
        load: returns the item of a key; called in threads.
        join: combines keys and their items.
        keys: lists of keys.
        threads: number of threads.
    """

    def __init__(
        self,
        load: Callable[[Key], Item],
        join: Callable[[Sequence[Key], list[Item]], Whole],
        keys: Lists[Key],
        threads: int,
    ) -> None:
        self.load = load
        self.join = join
        self.keys = keys
        self.threads = threads

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Whole]:
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="sarb-decode")
        waiting: deque[tuple[Sequence[Key], list[Future[Item]]]] = deque()
        try:
            for keys in self.keys:
                waiting.append((keys, [pool.submit(self.load, key) for key in keys]))
                if len(waiting) > AHEAD:
                    yield self._next(waiting)
            while waiting:
                yield self._next(waiting)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _next(self, waiting: deque[tuple[Sequence[Key], list[Future[Item]]]]) -> Whole:
        keys, items = waiting.popleft()
        return self.join(keys, [item.result() for item in items])
