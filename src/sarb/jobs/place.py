"""Whether another computer sees the same folders: runs write theirs, and the command that started them reads it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sarb.files import atomic_write

#: where the Hugging Face hub keeps its files, and whether it may be asked; never its token
HUB = ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE")
#: folder for what jobs leave behind, inside the folder of the results
JOBS = ".jobs"


@dataclass(frozen=True)
class Place:
    """Where a command was started, as a job on another computer has to find it.

    Attributes:
        host: name of the computer.
        current: its current folder; relative paths mean the same in the job.
        mark: a file that holds ``text``, in the folder of the results.
        variables: environment variables of sarb and the hub, such as their cache folders.
    """

    host: str
    current: str
    mark: str
    text: str
    variables: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def enter(self) -> str:
        """Go to the same folder with the same variables; say what is not there, or nothing."""
        here = socket.gethostname()
        advice = (
            f"a grid on several computers needs a file system that all of them share, with the results, the "
            f"data and the folder in which you start the command; {here} has none of that name"
        )
        try:
            os.chdir(self.current)
        except OSError:
            return f"{here} cannot see the current folder {self.current} of {self.host}: {advice}"
        try:
            same = Path(self.mark).read_text(encoding="utf-8") == self.text
        except OSError:
            same = False
        if not same:
            folder = Path(self.mark).parent.parent
            return f"{here} cannot see the folder {folder} of {self.host}: {advice}"
        os.environ.update(self.variables)
        return ""


@contextmanager
def marked(folder: Path) -> Iterator[Place]:
    """Describe this place, with a mark in ``folder``/.jobs that goes when the jobs are done."""
    text = secrets.token_hex(16)
    jobs = folder.absolute() / JOBS
    for left_over in jobs.glob("here-*.txt"):  # of a command that was killed
        left_over.unlink()
    mark = jobs / f"here-{text[:8]}.txt"
    with atomic_write(mark) as file:
        file.write(text)
    own = {name: value for name, value in os.environ.items() if name.startswith("SARB_") or name in HUB}
    try:
        yield Place(socket.gethostname(), str(Path.cwd()), str(mark), text, own)
    finally:
        mark.unlink(missing_ok=True)
        if jobs.is_dir() and not any(jobs.iterdir()):
            jobs.rmdir()
