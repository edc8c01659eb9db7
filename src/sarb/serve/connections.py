"""Slow clients cannot keep others out: time limits for a request, and a limit on connections.

The server below (uvicorn) waits for the rest of a request for ever, and accepts connections until the process has no
file descriptor left. Here a request that makes no progress is closed, and when there are too many connections the
one that did least goes first, so a client that sends its request gets in.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from sarb.serve.say import Seldom

if sys.platform != "win32":
    import resource

#: seconds for the head of a request, and until a connection without a request is closed
HEAD = 10.0
#: seconds without a byte after which a body, or a client that does not read its reply, is given up
SILENCE = 10.0
#: bytes per second that a body must reach on average, after its first seconds
LEAST_RATE = 1024
#: most connections at once; fewer if the process may open few files
MOST_CONNECTIONS = 256
#: descriptors that are not for connections: the model, uploads on disk, libraries
OTHER_FILES = 64
#: connections that are accepted in one go, much fewer than there may be: each is read before it can be the oldest
BURST = 16
#: connections that wait in the system to be accepted
QUEUE = 1024


def most_connections() -> int:
    """Return how many connections to hold: half of the descriptors that this process may open, less a reserve."""
    if sys.platform == "win32":  # it has no such limit
        return MOST_CONNECTIONS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(8, min(MOST_CONNECTIONS, (limit - OTHER_FILES) // 2))


@dataclass
class _Guest:
    """An accepted connection; ``protocol`` is None during the TLS handshake."""

    connection: socket.socket
    since: float = field(default_factory=time.monotonic)
    protocol: Connection | None = None

    def worth(self) -> tuple[int, float]:
        """Return how much would be lost if it were closed; the least goes first."""
        return (0, self.since) if self.protocol is None else self.protocol.worth()

    def close(self) -> None:
        if self.protocol is not None:
            self.protocol.transport.abort()
            return
        try:
            self.connection.shutdown(socket.SHUT_RDWR)  # its handshake reads the end, and closes it
        except OSError as error:
            if error.errno not in (errno.ENOTCONN, errno.EBADF):
                raise


class Door(socket.socket):
    """A listening socket that keeps count of its connections.

    Args:
        most: connections at once; the number that fits this process by default.

    Attributes:
        tls: files with a certificate and its key, if connections are encrypted.
    """

    def __init__(self, *given: Any, most: int | None = None) -> None:
        super().__init__(*given)
        self.most = most or most_connections()
        self.tls: tuple[Path, Path] | None = None
        self.guests: dict[int, _Guest] = {}
        self._spare = os.open(os.devnull, os.O_RDONLY)
        self._say = Seldom()

    def listen(self, _: int = QUEUE) -> None:
        """Listen. The event loop asks for a queue of ``BURST``, as many as it accepts in one go; ours is longer."""
        super().listen(QUEUE)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; close another if there are too many, or this one if all others are at work."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                self._turn_away()
                continue
            if len(self.guests) >= self.most and not self._make_room():
                connection.close()
                continue
            self.guests[connection.fileno()] = _Guest(connection)
            return connection, address

    def _make_room(self) -> bool:
        """Close the connection that is worth least; False if all are at work."""
        gone = [number for number, guest in self.guests.items() if guest.connection.fileno() < 0]
        for number in gone:  # failed in their handshake
            del self.guests[number]
        if len(self.guests) < self.most:
            return True
        number, guest = min(self.guests.items(), key=lambda item: item[1].worth())
        self._say(f"more than {self.most} connections at once; slow ones are closed")
        if guest.worth()[0] == AT_WORK:
            return False
        del self.guests[number]
        guest.close()
        return True

    def _turn_away(self) -> None:
        """No descriptor is left: use the spare one to accept a connection and close it, or it would wait for ever."""
        self._say("no file descriptors left; connections are refused")
        os.close(self._spare)
        try:
            super().accept()[0].close()
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Close the socket, and the spare descriptor."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        super().close()


#: what a connection is doing, from the least to the most that would be lost
NO_REQUEST, BODY, UNREAD_REPLY, AT_WORK = range(4)


class Connection(H11Protocol):
    """HTTP on one connection, with limits; a server needs a subclass with its own ``door``."""

    door: Door

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the limits."""
        super().connection_made(transport)
        self._number: int = transport.get_extra_info("socket").fileno()
        guest = self.door.guests.get(self._number)
        if guest is None:  # it had to go during its handshake
            transport.abort()
            return
        guest.protocol = self
        self._begin()
        self._unsent = 0
        self._timer = self.loop.call_later(1, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the count."""
        super().connection_lost(exc)
        if hasattr(self, "_timer"):
            self._timer.cancel()
        guest = self.door.guests.get(self._number)
        if guest is not None and guest.protocol is self:
            del self.door.guests[self._number]

    def data_received(self, data: bytes) -> None:
        """Count bytes of a body."""
        earlier = self.cycle
        super().data_received(data)
        if self.cycle is not earlier:
            self._begin()
        self._received += len(data)
        self._heard = time.monotonic()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._begin()
        super().on_response_complete()

    def _begin(self) -> None:
        self._since = self._heard = time.monotonic()
        self._received: int = 0

    def worth(self) -> tuple[int, float]:
        """Return what this connection is doing, and since when, or how fast."""
        doing = self._doing()
        if doing == BODY:
            return doing, self._received / max(time.monotonic() - self._since, 0.1)
        return doing, self._since

    def _doing(self) -> int:
        if self.cycle is None or self.cycle.response_complete:
            return UNREAD_REPLY if self.transport.get_write_buffer_size() else NO_REQUEST
        if self.cycle.more_body and not self.flow.read_paused and not self.cycle.response_started:
            return BODY
        return UNREAD_REPLY if self.transport.get_write_buffer_size() else AT_WORK

    def _check(self) -> None:
        """Once per second: close the connection if it is too slow."""
        now = time.monotonic()
        doing = self._doing()
        if doing == AT_WORK:  # the wait is ours, not the client's
            self._since += 1
            self._heard = now
        if doing == UNREAD_REPLY:
            unsent = self.transport.get_write_buffer_size()
            if unsent != self._unsent:
                self._unsent, self._heard = unsent, now
        if self._too_slow(doing, now):
            self.transport.abort()
            return
        self._timer = self.loop.call_later(1, self._check)

    def _too_slow(self, doing: int, now: float) -> bool:
        age = now - self._since
        if doing == NO_REQUEST:
            return age > HEAD
        if doing == BODY and age > SILENCE and self._received < LEAST_RATE * age:
            return True
        return doing != AT_WORK and now - self._heard > SILENCE
