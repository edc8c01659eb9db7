"""The image of a Label Studio task: from an allowed folder, or downloaded from Label Studio itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from sarb.errors import ImageError, SarbError
from sarb.label_studio.host import Host

#: the parts of Label Studio that serve images
LOCAL = re.compile(r"/data/local-files/?")
UPLOAD = re.compile(r"/data/upload/.+")


class TaskImages:
    """Finds images that a task names; nothing outside the folders and the server below is ever read.

    Args:
        host: Label Studio's server.
        roots: folders with the server's local files (its LOCAL_FILES_DOCUMENT_ROOT). An image that is in none
            of them is downloaded.
    """

    def __init__(self, host: Host, roots: Sequence[Path] = ()) -> None:
        for root in roots:
            if not root.is_dir():
                raise SarbError(f"--local-root {root}: no such folder")
        self.host = host
        self.roots = [root.resolve() for root in roots]

    def find(self, value: object) -> Path | bytes:
        """Return the file, or the content, of the image that a task's data name.

        Raises:
            ImageError: it is elsewhere, or cannot be fetched.
        """
        if not isinstance(value, str) or not value:
            raise ImageError("the task has no image")
        try:
            return self._found(value)
        except SarbError as error:
            raise ImageError(str(error)) from None
        except (ValueError, HTTPException, OSError) as error:  # no address, or no name of a file
            raise ImageError(f"{value[:100]!r}: cannot be read ({error})") from None

    def _found(self, value: str) -> Path | bytes:
        address = urlsplit(value)
        if address.scheme and not self.host.owns(value):
            raise ImageError(f"{value[:100]}: neither on {self.host.url} nor a local file, so it is not read")
        served = LOCAL.fullmatch(address.path) or UPLOAD.fullmatch(address.path)
        if not served or ".." in unquote(address.path).split("/"):
            raise ImageError(f"{value[:100]}: expected /data/local-files/?d=… or /data/upload/…")
        if LOCAL.fullmatch(address.path):
            file = self._local(parse_qs(address.query).get("d", [""])[-1])
            if file is not None:
                return file
        return self.host.get(value)

    def _local(self, name: str) -> Path | None:
        """Return the file below one of the roots, links resolved; None if there is none."""
        for root in self.roots:
            file = (root / name.lstrip("/")).resolve()
            if file.is_relative_to(root) and file.is_file():
                return file
        return None
