"""Label Studio's HTTP server: tokens, images, uploads, and its SDK."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sarb.errors import SarbError
from sarb.files import open_regular

#: environment variables: personal access token (or legacy token), and address
TOKEN = "LABEL_STUDIO_API_KEY"
URL = "LABEL_STUDIO_URL"
DEFAULT_URL = "http://localhost:8080"
#: seconds to wait for a reply, and most bytes of one
PATIENCE = 60.0
MOST = 256 * 1024 * 1024


class _RefusedError(SarbError):
    """The server does not accept the token."""


class Host:
    """A Label Studio server and a token for it. The token is sent to this server only, and never shown.

    Args:
        url: its address.
        token: a personal access token, which is exchanged for a short-lived one, or a legacy token.
        most: bytes of one reply.
    """

    def __init__(self, url: str, token: str = "", most: int = MOST) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SarbError(f"'{url}' is not the address of a Label Studio server; expected {DEFAULT_URL}")
        self.url = url.rstrip("/")
        self.token = token
        self.most = most
        self._access = ""
        self._opener = build_opener(_SameHost(self))

    def __repr__(self) -> str:
        return f"Host({self.url})"

    def owns(self, address: str) -> bool:
        """Whether an absolute address leads to this server."""
        theirs = urlsplit(address)
        ours = urlsplit(self.url)
        return (theirs.scheme, theirs.netloc) == (ours.scheme, ours.netloc)

    def get(self, path: str) -> bytes:
        """Return the content of ``/path`` or of an address on this server."""
        return self._authorised(path)

    def upload(self, project: int, file: Path) -> str:
        """Upload an image to a project without making a task of it; return the image's path on the server."""
        boundary = secrets.token_hex(16)
        name = quote(file.name, safe=" ()+,;=@!~'")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        with open_regular(file) as image:
            body = head.encode() + image.read() + f"\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        reply = json.loads(
            self._authorised(f"/api/projects/{project}/import?commit_to_project=false", body, kind)
        )
        stored = json.loads(self.get(f"/api/import/file-upload/{reply['file_upload_ids'][0]}"))
        return f"/data/{quote(stored['file'])}"

    def client(self) -> Any:
        """Return a client of Label Studio's SDK."""
        try:
            from label_studio_sdk import LabelStudio
        except ImportError:
            raise SarbError(
                "this needs Label Studio's SDK; install it with: pip install 'sarb[label-studio]'"
            ) from None
        if not self.token:
            raise SarbError(
                f"no token for {self.url}: make a personal access token in Label Studio (Account & Settings) "
                f"and set {TOKEN}, or add --token"
            )
        return LabelStudio(base_url=self.url, api_key=self.token)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the SDK, which print all headers, into one line of ours."""
        try:
            yield
        except Exception as error:
            status = getattr(error, "status_code", None)
            if status is None and not type(error).__module__.startswith("httpx"):
                raise
            if status is None:
                raise SarbError(f"{self.url}: cannot be reached ({error})") from None
            raise SarbError(f"{self.url}: HTTP {status}: {_detail(error)}") from None

    def _address(self, path: str) -> str:
        address = path if "://" in path else urljoin(f"{self.url}/", path)
        if not self.owns(address):
            raise SarbError(f"{path}: not on {self.url}, so it is not fetched")
        return address

    def _authorised(self, path: str, body: bytes | None = None, kind: str = "") -> bytes:
        """Send a request with the token; once more if the short-lived token has run out."""
        address = self._address(path)
        content_type = {"Content-Type": kind} if kind else {}
        for last in (not self._access, True):
            try:
                return self._send(Request(address, body, {**self._headers(), **content_type}), path)
            except _RefusedError:
                if last:
                    raise
                self._access = ""
        raise AssertionError("unreachable")

    def _headers(self) -> dict[str, str]:
        if not self.token:
            return {}
        if _claims(self.token).get("token_type") != "refresh":
            return {"Authorization": f"Token {self.token}"}
        if not self._access:
            body = json.dumps({"refresh": self.token}).encode()
            request = Request(
                self._address("/api/token/refresh/"), body, {"Content-Type": "application/json"}
            )
            self._access = str(json.loads(self._send(request, "the personal access token"))["access"])
        return {"Authorization": f"Bearer {self._access}"}

    def _send(self, request: Request, what: str) -> bytes:
        try:
            with self._opener.open(request, timeout=PATIENCE) as reply:
                content = reply.read(self.most + 1)
        except HTTPError as error:
            refused = error.code in (401, 403)
            hint = f"; is the token in {TOKEN} right?" if refused else ""
            kind = _RefusedError if refused else SarbError
            raise kind(f"{self.url}: {what}: HTTP {error.code} {error.reason}{hint}") from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise SarbError(f"{self.url}: cannot be reached ({reason})") from None
        if len(content) > self.most:
            raise SarbError(f"{self.url}: {what}: larger than {self.most // 1024 // 1024} MB")
        return bytes(content)


class _SameHost(HTTPRedirectHandler):
    """Follows no redirect to another server: the token would go with it."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not self.host.owns(newurl):
            raise SarbError(
                f"{self.host.url}: sends us on to {urlsplit(newurl).netloc}, which is not followed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _detail(error: Exception) -> str:
    """Return what the server says in an error of the SDK."""
    body = getattr(error, "body", None)
    if not isinstance(body, dict):
        return str(body)[:300]
    said = body.get("validation_errors") or body.get("detail") or body
    return str(said)[:500]


def _claims(token: str) -> dict[str, Any]:
    """Return what a JSON web token says about itself; nothing for any other token."""
    parts = token.split(".")
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = json.loads(base64.urlsafe_b64decode(padded))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
