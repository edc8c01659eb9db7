"""Gives memory back to the system. Only glibc has to be told to; elsewhere nothing happens.

glibc keeps what is freed, in one heap per thread: a server that once decoded many photos would keep gigabytes. Two
heaps, and a word when there is nothing to do, are enough; docs/LOG.md has the measurement.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

#: the limit on heaps in glibc's malloc.h, and heaps: more than one, so that threads do not wait for each other
_ARENA_MAX = -8
ARENAS = 2


@cache
def _glibc() -> Any:
    """The C library if it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # TypeError: Windows
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None


def keep_little() -> bool:
    """Limit the heaps of the whole process; return whether this C library can. Call it before threads start."""
    library = _glibc()
    return library is not None and library.mallopt(_ARENA_MAX, ARENAS) == 1


def give_back() -> None:
    """Return free memory in the heaps to the system; takes milliseconds."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)
