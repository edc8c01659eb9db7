"""Replace a folder by a finished one: readers find the old or the new one, whenever the process is killed."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sarb.errors import SarbError
from sarb.files import sync_folder, unfinished

#: arguments of renameat2(2)
CURRENT_FOLDER = -100
EXCHANGE = 2


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which replaces ``target`` if the block raises no error."""
    if target.exists() and not target.is_dir():
        raise SarbError(f"{target}: is not a folder; expected the name of a folder to write")
    folder = unfinished(target.resolve())
    try:
        folder.mkdir()
        if target.exists():
            folder.chmod(stat.S_IMODE(target.stat().st_mode))
        yield folder
        replace_folder(folder, target)
    except OSError as error:
        if error.filename is None or not Path(error.filename).is_relative_to(folder):
            raise
        final = target / Path(error.filename).relative_to(folder)
        raise OSError(error.errno, error.strerror, str(final)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replace_folder(source: Path, target: Path) -> None:
    """Move a finished folder into place; an older one is removed afterwards, a link to it stays.

    Linux exchanges the two in one step. Elsewhere the older one steps aside first; should the process be
    killed before the new one is in place, :func:`recover` brings it back.
    """
    target = target.resolve()
    recover(target)
    sync_folder(source)
    if not target.exists():
        source.rename(target)
    elif exchange(source, target):
        shutil.rmtree(source, ignore_errors=True)
    else:
        target.rename(_aside(target))
        source.rename(target)
        shutil.rmtree(_aside(target), ignore_errors=True)
    sync_folder(target.parent)


def recover(target: Path) -> None:
    """Bring back a folder that stepped aside for a new one which never came; remove it if the new one is there."""
    target = target.resolve()
    aside = _aside(target)
    if not aside.is_dir():
        return
    if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        with suppress(OSError):  # a read-only disk
            aside.rename(target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False if the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old C library
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    return bool(rename(CURRENT_FOLDER, paths[0], CURRENT_FOLDER, paths[1], EXCHANGE) == 0)


def _aside(target: Path) -> Path:
    return target.with_name(f".sarb-{target.name}.old")
