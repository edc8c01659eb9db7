"""Slow clients on real sockets: they are closed, and others get in."""

import errno
import os
import socket
import threading
import time

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.serve import connections
from sarb.serve.connections import Door, most_connections
from sarb.serve.listening import listen, server
from tests.waiting import PATIENCE, wait_until


async def _app(scope, receive, send):
    """Reads the body, and says how long it was; ``/large`` has a reply that fits into no buffer."""
    if scope["type"] != "http":
        return
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(64 if scope["path"] == "/large" else 0):
        await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
    await send({"type": "http.response.body", "body": str(size).encode()})


@pytest.fixture
def limits(monkeypatch):
    monkeypatch.setattr(connections, "HEAD", 1.0)
    monkeypatch.setattr(connections, "SILENCE", 1.0)


@pytest.fixture
def door():
    with listen("127.0.0.1", 0) as door:
        door.most = 6
        running = server(_app, door)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]})
        thread.start()
        wait_until(lambda: running.started, "the server listens")
        yield door
        running.should_exit = True
        thread.join()


def _connect(door, content=b""):
    connection = socket.create_connection(door.getsockname()[:2], timeout=PATIENCE)
    connection.sendall(content)
    return connection


def _ended(connection):
    """Whether the server closes the connection, however long it takes."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def _honest(door):
    with _connect(
        door, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    ) as own:
        reply = b""
        while piece := own.recv(4096):
            reply += piece
    return reply.endswith((b"3\r\n0\r\n\r\n", b"3"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"POST / HTTP/1.1\r\nHost: x",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTT",
    ],
)
def test_who_says_nothing_more_is_closed(door, limits, content):
    with _connect(door, content) as slow:
        assert _ended(slow)
    wait_until(lambda: not door.guests, "it is counted no longer")
    assert _honest(door)


def test_a_drop_now_and_then_is_not_enough(door, limits):
    with _connect(door, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n") as slow:
        deadline = time.monotonic() + PATIENCE
        with pytest.raises(OSError):
            while time.monotonic() < deadline:
                slow.sendall(b"x")
                time.sleep(0.1)


def test_who_does_not_read_is_closed(door, limits):
    with _connect(door, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"):
        wait_until(lambda: door.guests, "it was accepted")
        wait_until(lambda: not door.guests, "it was closed")
    assert _honest(door)


def test_work_may_take_its_time(door, limits, monkeypatch):
    import asyncio

    async def slow(scope, receive, send):
        if scope["type"] == "http":
            await asyncio.sleep(3)
            await _app(scope, receive, send)

    with listen("127.0.0.1", 0) as other:
        running = server(slow, other)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [other]})
        thread.start()
        wait_until(lambda: running.started, "the server listens")
        assert _honest(other)
        running.should_exit = True
        thread.join()


def test_too_many_connections_make_room(door, capfd):
    """The first to go says nothing, then who sends a body slowly."""
    bodies = [
        _connect(door, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n" + b"x" * sent)
        for sent in (5, 8)
    ]
    wait_until(
        lambda: [guest.worth()[0] for guest in [*door.guests.values()]] == [connections.BODY] * 2,
        "the server has read what they sent",
    )
    silent = [_connect(door) for _ in range(20)]
    try:
        assert _honest(door)
        assert len(door.guests) <= door.most
        assert all(_ended(connection) for connection in silent[:10])
        bodies[1].sendall(b"y")
        assert bodies[1].recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for connection in (*bodies, *silent):
            connection.close()
    assert capfd.readouterr().err.count("slow ones are closed") == 1


def test_the_last_descriptor(monkeypatch, capsys):
    """A connection that cannot be accepted is refused, and does not wait for ever."""
    with Door(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        door.setblocking(False)
        spare = door._spare
        accept = socket.socket.accept

        def full(self):
            try:
                os.fstat(spare)
            except OSError:  # the spare descriptor is free now
                return accept(self)
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(socket.socket, "accept", full)
        with socket.create_connection(door.getsockname()) as refused:
            door._turn_away()
            assert _ended(refused)
    assert "no file descriptors left" in capsys.readouterr().err


def test_fewer_connections_where_few_files_may_be_open(monkeypatch):
    import resource

    for limit, most in ((20_000, 256), (256, 96), (64, 8), (resource.RLIM_INFINITY, 256)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert most_connections() == most
