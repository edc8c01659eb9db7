"""Mutated images, bombs, pipes and devices: an image or one clear error, soon, in bounded memory.

Most cases decode a hundred images in a process of their own, which the kernel ends if one of them takes more than five
seconds of CPU time. (Not of the clock: another process may have the CPU.)
"""

from __future__ import annotations

import json
import logging
import os
import random
import resource
import signal
import socket
import warnings
from collections import Counter
from contextlib import chdir
from functools import partial
from pathlib import Path

import sarb.data.images as images
from sarb.errors import ImageError
from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.children import Finished, sarb, through_the_shell
from tests.faults.image_kinds import bombs, damaged, samples
from tests.faults.small_run import small_run

EACH = 100
#: seconds for one image, of CPU time; and of the clock, for one that waits
CPU, CLOCK = 5, 120
#: most memory of a process that decodes, beside what it has before
MEMORY = 3 << 30


def _decode_all(folder: str, seed: int, named: str) -> None:
    """In a process of its own: decode all files of a folder, write what happened, end."""
    resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, -1))
    warnings.simplefilter("ignore")  # these two as the command line does
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    draw = random.Random(seed)
    found: Counter[str] = Counter()
    for file in sorted(Path(folder).iterdir()):
        Path(named).write_text(file.name)
        signal.setitimer(signal.ITIMER_PROF, CPU)
        signal.alarm(CLOCK)
        source = file if draw.random() < 0.5 else file.read_bytes()
        try:
            decoded = images.decode(source, draft=draw.choice((None, 16)))
            assert decoded.mode == "RGB"
            found["image"] += 1
        except ImageError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000, error
            found["refused"] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
    Path(named).write_text(json.dumps(found))
    os._exit(0)


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _decoded(folder: Path, seed: int) -> Counter[str]:
    """Decode the files of ``folder/images``; a broken promise if that does not end well."""
    named = folder / "named"
    done = sarb(["list"], folder, before=_decode_all, given=(str(folder / "images"), seed, str(named)))
    if done.code != 0 or done.err:
        raise BrokenPromiseError(f"{named.read_text()}: exit {done.code}: {done.err[-1500:]}")
    return Counter(json.loads(named.read_text()))


def _mutated(folder: Path, case: int) -> str:
    _write(folder / "images", EACH, case)
    found = _decoded(folder, case)
    if found.total() != EACH:
        raise BrokenPromiseError(f"{found} of {EACH} images")
    return f"{EACH} decoded or refused"


def _write(folder: Path, count: int, seed: int) -> None:
    folder.mkdir()
    for number in range(count):
        name, content = damaged(random.Random(f"{seed} {number}"))
        (folder / f"{number:03} {name}").write_bytes(content)


def _bomb(folder: Path, case: int) -> str:
    name, content = list(bombs().items())[case]
    (folder / "images").mkdir()
    (folder / "images" / name).write_bytes(content)
    return next(iter(_decoded(folder, case)))


def _predicted(cases: int, folder: Path, case: int) -> str:
    """Twenty mutated images and a good one, through ``sarb predict`` or ``sarb data check``."""
    _write(folder / "images", 20, 1000 + case)
    (folder / "images" / "good.jpg").write_bytes(samples()["plain.jpg"])
    if case % 2:
        words = ["predict", small_run() / "run", folder / "images", "--out", folder / "found.csv"]
    else:
        rows = "".join(
            f"{file.name},{number % 2},1\n" for number, file in enumerate((folder / "images").iterdir())
        )
        (folder / "labels.csv").write_text("file_name,a,b\n" + rows)
        words = ["data", "check", folder / "labels.csv", "-o", "encoding=binary", "-o", "root=images"]
    run = through_the_shell if case >= cases - 4 else sarb
    return _ended(run(words, folder), (0, 2, 3))


def _special(folder: Path, case: int) -> str:
    """A pipe, a device, a socket, a folder or a circle of links in place of an image."""
    place = folder / "images"
    place.mkdir()
    (place / "good.jpg").write_bytes(samples()["plain.jpg"])
    wrong = place / "wrong.jpg"
    made = ("pipe", "socket", "zero", "terminal", "folder", "circle", "link to pipe")[case % 7]
    if made == "socket":
        with socket.socket(socket.AF_UNIX) as server, chdir(place):  # the path of a socket must be short
            server.bind("wrong.jpg")
    elif made == "folder":
        wrong.mkdir()
    elif "pipe" in made:
        os.mkfifo(place / "pipe" if "link" in made else wrong)
        if "link" in made:
            wrong.symlink_to("pipe")
    else:
        wrong.symlink_to({"zero": "/dev/zero", "terminal": "/dev/tty", "circle": "wrong.jpg"}[made])
    words: list[str | Path] = [
        "predict",
        small_run() / "run",
        place / "good.jpg",
        wrong,
        "--out",
        folder / "found.csv",
    ]
    if case // 7 % 2:
        (folder / "labels.csv").write_text("file_name,a,b\ngood.jpg,1,0\nwrong.jpg,0,1\n")
        words = ["data", "check", folder / "labels.csv", "-o", "encoding=binary", "-o", "root=images"]
    done = sarb(words, folder)
    if "wrong.jpg" not in done.err + done.out and made != "folder":
        raise BrokenPromiseError(f"{made}: not named; {done.err[-1000:]}")
    return f"{made}: {_ended(done, (2, 3))}"


def _ended(done: Finished, codes: tuple[int, ...]) -> str:
    said = done.err + done.out
    wrong = [
        word
        for word in ("Traceback", "bug of ours", "Corrupt EXIF", "TIFFF", "Fax4Decode", "JPEGLib")
        if word in done.err
    ]
    if done.code not in codes or wrong:
        raise BrokenPromiseError(f"exit {done.code}, {wrong}: {said[-1500:]}")
    return f"exit {done.code}"


KINDS = [
    Kind(
        f"mutated images, {EACH} a case",
        f"An image or one line of error within {CPU} s each, in bounded memory, nothing on stderr.",
        100,
        1,
        _mutated,
    ),
    Kind("image bombs", f"An image or an error within {CPU} s of CPU time, in bounded memory.", 25, 1, _bomb),
    Kind(
        "mutated images, sarb predict and data check",
        "Exit code 0, 2 or 3, no traceback, no flood of warnings.",
        40,
        2,
        partial(_predicted, 40),
    ),
    Kind(
        "pipe, device, socket, folder or circle of links as an image",
        "Named and refused at once, never opened.",
        14,
        1,
        _special,
    ),
]
