"""What the operating system refused, in one line: the file, the reason, what to do."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

#: exit code of a command whose reader has gone, as the shell gives it: 128 + SIGPIPE
BROKEN_PIPE = 141

ELSEWHERE = "then run the command again, or write to another disk; files written before are intact"
WHAT_TO_DO = {
    errno.ENOSPC: f"make room, {ELSEWHERE}",
    errno.EDQUOT: f"your quota is used up: remove files of yours, {ELSEWHERE}",
    errno.EROFS: "choose a folder on a disk that can be written",
    errno.EACCES: "check the owner and the permissions of the file and its folder, or choose another one",
    errno.EPERM: "check the owner and the permissions of the file and its folder, or choose another one",
    errno.EFBIG: f"raise the limit on the size of a file (ulimit -f), {ELSEWHERE}",
    errno.EMFILE: "raise the limit on open files (ulimit -n), or use fewer workers",
    errno.ENFILE: "the whole system has too many open files: end other programs",
    errno.EIO: "the disk may be damaged; check the system's log",
}


def describe(error: OSError) -> str:
    """Return the line for an error of the operating system.

    >>> describe(OSError(errno.EROFS, "Read-only file system", "run/log.csv"))
    'run/log.csv: Read-only file system; choose a folder on a disk that can be written'
    """
    where = "standard output" if error.filename is None else str(error.filename)
    what = f"{where}: {error.strerror}"
    if error.errno == errno.ENOSPC and error.filename is not None:
        what += _free(Path(where))
    # files are named where they are written, so only what is printed has no name
    if error.errno in (errno.EMFILE, errno.ENFILE) and error.filename is None:
        what = str(error.strerror)
    advice = WHAT_TO_DO.get(error.errno or 0)
    return f"{what}; {advice}" if advice else what


def _free(file: Path) -> str:
    """How much room is left for a file, in words."""
    folder = next((parent for parent in file.absolute().parents if parent.is_dir()), None)
    return f" ({shutil.disk_usage(folder).free / 1e6:,.1f} MB free)" if folder is not None else ""
