"""``sarb serve`` in a process of its own, and a plain HTTP client for it."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.bench import BrokenPromiseError
from tests.faults.children import Running, start
from tests.faults.small_run import small_run
from tests.waiting import PATIENCE, wait_until

_SERVING = re.compile(r" at http://127\.0\.0\.1:(\d+)/ ")


class Server:
    """A server of the small run; a ``with`` block kills it at the end."""

    def __init__(self, folder: Path, words: Sequence[str | Path] = (), before: Any = None) -> None:
        self._running: Running = start(
            ["serve", small_run() / "run", *words, "--port", "0"],
            folder,
            environment={"SARB_CACHE": str(small_run() / "cache"), "OMP_NUM_THREADS": "1"},
            before=before,
        )
        self._log = self._running.folder / "err"
        self.pid = self._running.pid
        wait_until(lambda: _SERVING.search(self.log()) or not self._running.alive(), "the server starts")
        found = _SERVING.search(self.log())
        assert found is not None, self.log()
        self.port = int(found[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL."""
        self._running.kill()

    def log(self) -> str:
        """What it said so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def memory(self) -> int:
        """Bytes of memory it has now."""
        return self._status("VmRSS")

    def peak(self) -> int:
        """Most bytes it has had since the start, or since :meth:`forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Count the peak from now on."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", text)[1])  # type: ignore[index]

    def alive(self) -> None:
        """Raise if it has ended, or has said that something of ours is broken."""
        if not self._running.alive():
            raise BrokenPromiseError(f"the server ended: {self.log()[-2000:]}")
        if "Traceback" in self.log():
            raise BrokenPromiseError(f"a traceback: {self.log()[-3000:]}")

    def connect(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def ask(
        self, path: str, body: bytes | None = None, kind: str = "application/json", method: str = ""
    ) -> tuple[int, bytes]:
        """Send one request; return status and body of the reply; status 0 if the connection was closed."""
        verb = method or ("GET" if body is None else "POST")
        head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
        if body is not None:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        with self.connect() as connection:
            with suppress(OSError):  # it may refuse before all has been sent, and say why
                connection.sendall(head.encode("latin-1") + b"\r\n" + (body or b""))
            return read_reply(connection, body_expected=verb != "HEAD")

    def tell(self, path: str, **content: Any) -> dict[str, Any]:
        """Send JSON, and return the JSON of a good reply."""
        status, body = self.ask(path, json.dumps(content).encode())
        if status != 200:
            raise BrokenPromiseError(f"{path}: HTTP {status}: {body[:500]!r}")
        return dict(json.loads(body))

    def send_photo(self, content: bytes, name: str = "photo.jpg") -> tuple[int, bytes]:
        """Send a photo to Try."""
        return self.ask("/api/predict", form({name: content}), FORM)


FORM = "multipart/form-data; boundary=sarb"


def form(files: Mapping[str, bytes]) -> bytes:
    """The body of a form with photos."""
    parts = [
        f'--sarb\r\nContent-Disposition: form-data; name="photos"; filename="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n"
        for name, content in files.items()
    ]
    return b"".join(parts) + b"--sarb--\r\n"


def read_reply(connection: socket.socket, body_expected: bool = True) -> tuple[int, bytes]:
    """Read a reply to the end of the connection.

    The head is sent before the body. A server killed in between has not answered: status 0.
    """
    content = b""
    with suppress(ConnectionError):  # closed with some of our bytes unread; what has arrived counts
        while piece := connection.recv(1 << 20):
            content += piece
    head, _, body = content.partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    cut = body_expected and length is not None and len(body) < int(length[1])
    return (int(found[1]) if found and not cut else 0), body


def few_descriptors() -> None:
    """In a new process: 256 descriptors, as ``ulimit -n 256``."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
