"""Off loopback a token opens the server: in a header, or in a cookie that the printed link sets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sarb.errors import SarbError
from sarb.serve.guard import refuse

#: environment variable with the token; an option would show it to everybody who lists processes
VARIABLE = "SARB_TOKEN"
NEEDED = (
    "a token is needed: open the link that 'sarb serve' printed (reload the page if you just did), "
    "or send the header 'Authorization: Bearer TOKEN'"
)
#: fewest characters of a token
SHORTEST = 16


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


def given_token(file: Path | None) -> str:
    """Return the user's own token, from a file or the environment; "" if there is none.

    Raises:
        SarbError: it cannot be read, or is too short.
    """
    if file is None:
        return _checked(os.environ.get(VARIABLE, ""), VARIABLE) if os.environ.get(VARIABLE) else ""
    try:
        if not file.is_file():
            raise SarbError(f"--token-file {file}: no such file")
        with file.open(encoding="utf-8") as stream:
            text = stream.read(4096)
    except OSError as error:
        raise SarbError(f"--token-file {file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SarbError(f"--token-file {file}: expected one line of text") from None
    return _checked(text.strip(), f"--token-file {file}")


def _checked(token: str, where: str) -> str:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise SarbError(
            f"{where}: expected a token of at least {SHORTEST} letters, digits or signs without spaces, got "
            f"{len(token)} characters; for example: {new_token()}"
        )
    return token


class Token:
    """ASGI middleware that asks for a token.

    Args:
        app: the application.
        token: the token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._token = token.encode()
        # the browser keeps no copy of the token itself
        self._cookie = hashlib.sha256(b"sarb cookie " + self._token).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request with the token pass; answer the link with the cookie."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if asked and scope["method"] == "GET":
            if self._right(asked[-1]):
                await self._enter(scope, send)
            else:
                await refuse(401, NEEDED, send)
        elif self._allowed(scope, Headers(scope=scope)):
            await self.app(scope, receive, send)
        else:
            await refuse(401, NEEDED, send, {"www-authenticate": 'Bearer realm="sarb"'})

    def _right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    def _allowed(self, scope: Scope, headers: Headers) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._right(value.strip())
        if kind.lower() == "basic":  # what Label Studio can send to an ML backend
            return self._right(_password(value.strip()))
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(_name(scope))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())

    async def _enter(self, scope: Scope, send: Send) -> None:
        """Set the cookie, and take the token out of the address."""
        cookie = f"{_name(scope)}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
        if scope["scheme"] == "https":
            cookie += "; Secure"
        await refuse(303, "welcome", send, {"location": "/", "set-cookie": cookie})


def _name(scope: Scope) -> str:
    """The cookie's name; with the port, for browsers send cookies to all servers of a host."""
    return f"sarb-{(scope.get('server') or ('', 0))[1]}"


def _password(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
