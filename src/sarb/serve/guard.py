"""Refuses unsafe requests before they reach a route, and adds security headers to every reply.

The server has no password: it trusts whoever can reach it. Any web page can make its visitor's browser send
requests to this server, so requests from other origins are refused, and so are requests for host names that
are not this server's (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import json
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: most bytes in one request
MAX_UPLOAD = 64 * 1024 * 1024
POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
#: the report's style, script and images are inline, so it may load nothing; it is sandboxed
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts allow-popups"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class Guard:
    """ASGI middleware around the application.

    Args:
        app: the application.
        host: the address that the server listens on.
        limit: most bytes in one request.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", limit: int = MAX_UPLOAD) -> None:
        self.app = app
        self.host = host
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, count its bytes, and add headers to the reply."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            status, reason = refusal
            await _refuse(status, reason, _secured(scope, send))
        else:
            await self.app(scope, self._counted(receive), _secured(scope, send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return status and reason if the request is refused."""
        host = headers.get("host", "")
        if not known_host(host, self.host):
            return 421, f"'{host}' is not a name of this server"
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            return 403, f"requests from '{origin}' are refused"
        if scope["path"].startswith("/api") and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "requests from other sites are refused"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.limit:
            return 413, self._too_large()
        return None

    def _too_large(self) -> str:
        return f"too large: at most {self.limit / 1024 / 1024:g} MB per request"

    def _counted(self, receive: Receive) -> Receive:
        """Count the bytes that arrive: the sender may omit the length, or lie about it."""
        received = 0

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise HTTPException(413, self._too_large())
            return message

        return counting


def known_host(header: str, listening: str) -> bool:
    """Return whether a ``Host`` header can be meant for a server that listens on ``listening``.

    An IP address is safe, since only a name can be made to point elsewhere; but a server that listens on
    loopback accepts only loopback addresses.
    """
    try:
        name = (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return False
    if name in ("localhost", listening.lower()):
        return True
    listening_address = _address(listening)
    loopback = listening == "localhost" or (listening_address is not None and listening_address.is_loopback)
    address = _address(name)
    if address is not None:
        return address.is_loopback or not loopback
    return not loopback and name in (socket.gethostname().lower(), socket.getfqdn().lower())


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _secured(scope: Scope, send: Send) -> Send:
    """Add the headers that every reply carries."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers["content-security-policy"] = REPORT_POLICY if scope["path"] == "/report" else POLICY
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


async def _refuse(status: int, reason: str, send: Send) -> None:
    body = json.dumps({"detail": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
