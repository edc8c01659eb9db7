"""How much may arrive: in one request, and in all requests at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

#: most bytes in one request, and in one without a file
MAX_UPLOAD = 64 * 1024 * 1024
MAX_JSON = 16 * 1024 * 1024
#: most bytes in all requests that are being received or worked on
MOST_TOGETHER = 512 * 1024 * 1024
#: JSON takes up to this many times its size when it is read
JSON_GROWS = 20
#: seconds after which a client that was sent away may try again
RETRY = 10
_UTF8 = re.compile(r"charset\s*=\s*\"?utf-?8\"?", re.IGNORECASE)


class Bodies:
    """Counts what arrives: the sender may omit the length, or lie about it.

    Args:
        limit: most bytes in one request.
        together: most bytes in all requests.
    """

    def __init__(self, limit: int = MAX_UPLOAD, together: int = MOST_TOGETHER) -> None:
        self.limit = limit
        self.together = together
        self.held = 0

    def refusal(self, headers: Headers) -> tuple[int, str] | None:
        """Return status and reason if a request with these headers is refused."""
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()) or int(length[:20]) > self._most(headers):
            return 413, self._too_large(headers)
        if "charset" in _UTF8.sub("", headers.get("content-type", "")).lower():
            return 415, "text must be UTF-8"
        return None

    def _most(self, headers: Headers) -> int:
        return self.limit if _has_files(headers) else min(self.limit, MAX_JSON)

    def _too_large(self, headers: Headers) -> str:
        return f"too large: at most {self._most(headers) / 1024 / 1024:g} MB per request"

    @contextmanager
    def counted(self, receive: Receive, headers: Headers) -> Iterator[Receive]:
        """Count the bytes of a request until it has been answered."""
        received = held = 0
        grows = 1 if _has_files(headers) else JSON_GROWS

        async def counting() -> Message:
            nonlocal received, held
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            held += size * grows
            self.held += size * grows
            if received > self._most(headers):
                raise HTTPException(413, self._too_large(headers))
            if self.held > max(self.together, held):  # one alone is never too much
                retry = {"Retry-After": str(RETRY)}
                raise HTTPException(503, f"busy: try again in {RETRY} seconds", retry)
            return message

        try:
            yield counting
        finally:
            self.held -= held


def _has_files(headers: Headers) -> bool:
    return headers.get("content-type", "").lower().startswith("multipart/form-data")
