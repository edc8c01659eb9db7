"""Refuses unsafe requests before they reach a route, and adds security headers to every reply.

On loopback the server trusts whoever can reach it; elsewhere it wants a token (:mod:`sarb.serve.token`). Any web
page can make its visitor's browser send requests to this server, so requests from other origins are refused, and
so are requests for host names that are not this server's (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sarb.serve.bodies import MAX_UPLOAD, Bodies

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
        self.bodies = Bodies(limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, count its bytes, and add headers to the reply."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, reason = refusal
            await refuse(status, reason, _secured(scope, send))
            return
        with self.bodies.counted(receive, headers) as counting:
            await self.app(scope, counting, _secured(scope, send))

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
        return self.bodies.refusal(headers)


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


async def refuse(status: int, reason: str, send: Send, headers: Mapping[str, str] | None = None) -> None:
    """Reply with a status and its reason."""
    body = json.dumps({"detail": reason}).encode()
    every = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
