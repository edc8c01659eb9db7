"""Image names in Label Studio, and the files on disk that they refer to."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from sarb.data.assemble import find_root
from sarb.data.readers.image_files import is_file
from sarb.labels import ABSENT, PRESENT

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_LOCAL = re.compile(r"(?:https?://[^/]+)?/data/local-files/?\?d=(?P<path>.+)", re.DOTALL)
_URL = re.compile(r"(?:https?://|/data/upload/)(?:[^?#]*/)?(?P<name>[^/?#]+)(?:[?#].*)?", re.DOTALL)
_BUCKET = re.compile(r"(?:s3|gs|azure-blob)://(?:.*/)?(?P<name>[^/]+)", re.DOTALL)
_PREFIX = re.compile(r"[0-9a-f]{8}-(?=.)")
#: characters that mean something in a labelling configuration or in Label Studio's own keys
_SPECIAL = re.compile(r"[%|,<>&\"'$\[\]{}\\\x00-\x1f]")
#: choices that answer a question about one category -> whether it is there
YES_NO = {"yes": PRESENT, "no": ABSENT}


def control_name(category: str) -> str:
    """Return the name of the control that asks about a category; :func:`category_name` takes it back.

    >>> control_name("hot dog, plain"), category_name("hot dog%2C plain")
    ('hot dog%2C plain', 'hot dog, plain')
    """
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", category)


def category_name(control: str) -> str:
    """Return the category that a control asks about."""
    return re.sub(r"%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), control)


def local_name(value: str) -> str:
    """Return the file name for the image value of a task.

    >>> local_name("/data/upload/3/0a1b2c3d-my%20cat.jpg"), local_name("/data/local-files/?d=cats/1.jpg")
    ('0a1b2c3d-my cat.jpg', 'cats/1.jpg')
    """
    if value.startswith("data:"):
        text = f"the image is embedded ('{value[:30]}…'); save it as a file and refer to that file"
        raise ValueError(text)
    if local := _LOCAL.fullmatch(value):
        return unquote(local["path"]).replace("\\", "/")
    if url := _URL.fullmatch(value):
        return unquote(url["name"])
    bucket = _BUCKET.fullmatch(value)
    return bucket["name"] if bucket else value


def looks_like_image(value: str) -> bool:
    """Whether a value of a task refers to an image."""
    return not value.startswith("data:") and local_name(value).lower().endswith(_IMAGES)


def image_files(path: Path, names: list[str], root: Path | None, check_files: bool) -> tuple[list[str], Path]:
    """Return N image names as they are on disk, and their folder."""
    bare = [_PREFIX.sub("", name, count=1) if _PREFIX.match(name) else name for name in names]
    folder = find_root(path, [*names, *bare], root, check_files)
    if not check_files or names == bare:
        return names, folder
    files = [
        short if short != name and not is_file(folder, name) and is_file(folder, short) else name
        for name, short in zip(names, bare, strict=True)
    ]
    return files, folder
