"""Mutated label files of every format: data or one clear error, soon, and nothing outside the folder is touched.

A case damages twenty files, each in an example of its format (``tests/data/formats``), and reads each strictly, as
``sarb data check`` does, and converts it, in a process of its own. An audit hook sees every file that Python opens and
every folder that it lists there.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import sarb as library
from sarb.data.check.source import check
from sarb.data.detect import detect
from sarb.data.loading import DATASETS
from sarb.data.writers.write import write
from sarb.errors import SarbError
from tests.data.formats import FORMATS, Example, write_example
from tests.data.mutations import mutations
from tests.faults.bench import BrokenPromiseError, Kind
from tests.faults.children import Finished, sarb, through_the_shell

EACH = 20
#: seconds for one file, of CPU time; and of the clock, for one that waits
CPU, CLOCK = 5, 120
MEMORY = 3 << 30
#: kinds of damage of ``tests.data.mutations`` to choose from for a file
CHOICES = 60
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
LISTING = ("os.listdir", "os.scandir")


class Watch:
    """Notes what is opened or listed elsewhere, while it is on."""

    def __init__(self, folder: Path) -> None:
        self.on = False
        self.seen: list[str] = []
        self.folder = str(folder)
        own = (sys.prefix, sys.base_prefix, library.__path__[0], str(Path(__file__).parents[2]), "/proc/self")
        self.libraries = tuple(os.path.realpath(place) for place in own)
        sys.addaudithook(self.hook)

    def hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on or (event != "open" and event not in LISTING) or isinstance(given[0], int):
            return
        path = os.path.realpath(os.fsdecode(given[0] or "."))
        writes = event == "open" and bool((given[2] or 0) & WRITING)
        inside = path.startswith((self.folder, "/dev/null"))
        if not inside and (writes or not path.startswith(self.libraries)):
            self.seen.append(f"{event} {path}{' to write' if writes else ''}")


def _read_all(folder: str, seed: int, named: str) -> None:
    """In a process of its own: damage and read the files, write what happened, end."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, -1))
    warnings.simplefilter("ignore")
    list(DATASETS)  # looks for plug-ins on Python's path, once
    watch = Watch(Path(folder).resolve())
    found: Counter[str] = Counter()
    for number in range(EACH):
        root = Path(folder) / str(number) / "source"
        root.mkdir(parents=True)
        what, example = _damaged(root, FORMATS[(EACH * seed + number) % len(FORMATS)], f"{seed} {number}")
        Path(named).write_text(what)
        example.options["outside"] = "refuse" if number % 2 else "allow"
        with _limits():
            watch.on, watch.folder = True, str(root.parent.resolve())
            found[_read(example, root.parent / "converted.csv", open_images=number % 2 == 1)] += 1
            watch.on = False
        assert not watch.seen, f"outside the folder: {watch.seen}"
    Path(named).write_text(json.dumps(found))
    os._exit(0)


@contextmanager
def _limits() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, CPU)
    signal.alarm(CLOCK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _read(example: Example, out: Path, open_images: bool) -> str:
    """Detect, load, check and convert; return what became of it."""
    with suppress(SarbError):  # its reader is named below
        detect(example.source.partition(":")[2], DATASETS)
    checked = check(example.source, open_images=open_images, **example.options)
    assert len(str(checked)) < 1_000_000 and checked.to_json()
    try:
        data = library.load(example.source, **example.options)
    except SarbError as error:
        assert len(str(error)) < 100_000
        return "refused"
    try:
        write(data, out)
    except SarbError:
        return "read, cannot be written as a table"
    return "read"


def _damaged(root: Path, form: str, seed: str) -> tuple[str, Example]:
    """Write an example and damage one of its files; return what was done, and the example."""
    draw = random.Random(seed)
    example = write_example(form, root)
    if ":" not in example.source:
        example.source = f"{detect(example.source, DATASETS)[0]}:{example.source}"
    file = draw.choice(example.files)
    content = file.read_bytes()
    if draw.random() < 0.25:
        change = draw.choice(HOSTILE)
        change(file, content, draw, root, example)
        return f"{form}, {file.name}: {change.__name__}", example
    kinds = list(mutations(content, file.suffix, draw.randrange(10**6), CHOICES))
    chosen = draw.choice(kinds)
    chosen.apply(file)
    return f"{form}, {file.name}: {chosen.kind}", example


def leading_out(file: Path, content: bytes, draw: random.Random, root: Path, example: Example) -> None:
    """Names of images that lead to a file outside the folder, which is there."""
    secret = root.parent.parent / "secret.jpg"
    secret.write_bytes(b"secret")
    secret.with_suffix(".xml").write_bytes(b"<annotation><object><name>dog</name></object></annotation>")
    names = [name for rows in example.splits.values() for name in rows]
    name = draw.choice(names)
    elsewhere = draw.choice(
        [
            os.path.relpath(secret, root),
            str(secret),
            f"x/../{os.path.relpath(secret, root)}",
            "..",
            "/",
            "/dev/zero",
        ]
    )
    for old, new in ((name, elsewhere), (Path(name).stem, elsewhere.removesuffix(".jpg"))):
        if old.encode() in content:
            file.write_bytes(content.replace(old.encode(), new.encode(), draw.choice((1, -1))))
            return


def pipe(file: Path, content: bytes, draw: random.Random, root: Path, example: Example) -> None:
    file.unlink()
    os.mkfifo(file)


def device(file: Path, content: bytes, draw: random.Random, root: Path, example: Example) -> None:
    file.unlink()
    file.symlink_to(draw.choice(("/dev/zero", "/dev/tty", "/dev/full")))


def long_names(file: Path, content: bytes, draw: random.Random, root: Path, example: Example) -> None:
    name = draw.choice([name for rows in example.splits.values() for name in rows]).encode()
    longer = draw.choice(
        (b"a/" * 3000, b"a" * 300 + b".jpg", b"\x1b[2J" + name, "\u202e".encode() + name, b"=" + name)
    )
    file.write_bytes(content.replace(name, longer))


def images_gone(file: Path, content: bytes, draw: random.Random, root: Path, example: Example) -> None:
    """Images that are pipes, links that lead out, or links in a circle."""
    for image in [path for path in root.rglob("*.*") if path.suffix.lower() in (".jpg", ".png")][:3]:
        image.unlink()
        if draw.random() < 0.3:
            os.mkfifo(image)
        else:
            image.symlink_to(draw.choice(("/dev/zero", "/etc/hostname", image.name)))


HOSTILE = [leading_out, leading_out, pipe, device, long_names, images_gone]


def _mutated(folder: Path, case: int) -> str:
    named = folder / "named"
    done = sarb(["list"], folder, before=_read_all, given=(str(folder / "examples"), case, str(named)))
    if done.code != 0 or done.err:
        raise BrokenPromiseError(f"{named.read_text()}: exit {done.code}: {done.err[-3000:]}")
    if (total := sum(json.loads(named.read_text()).values())) != EACH:
        raise BrokenPromiseError(f"{total} of {EACH} files")
    return f"{EACH} read or refused"


def _through_the_command_line(cases: int, folder: Path, case: int) -> str:
    """``sarb data check``, ``stats`` or ``convert`` on a damaged file."""
    root = folder / "source"
    root.mkdir()
    what, example = _damaged(root, FORMATS[case % len(FORMATS)], f"command {case}")
    words = ["data", ("check", "stats", "convert")[case % 3], example.source, "-o", "outside=refuse"]
    words += [word for key, value in example.options.items() for word in ("-o", f"{key}={value}")]
    words += ["--out", str(folder / "new.csv")] if case % 3 == 2 else []
    run = through_the_shell if case >= cases - 4 else sarb
    return _ended(what, run(words, folder))


def _streams(folder: Path, case: int) -> str:
    """A pipe or a device as the label file itself."""
    reader = ("table:", "", "list:", "coco:", "npy:", "cvat:", "label_studio:", "folder:")[case % 8]
    file = folder / "labels.csv"
    os.mkfifo(file)
    source = file if case < 8 else Path(("/dev/zero", "/dev/tty", "/dev/full", "/dev/stdin")[case % 4])
    done = sarb(["data", "check", f"{reader}{source}"], folder)
    if str(source) not in done.err + done.out:
        raise BrokenPromiseError(f"{source} not named: {done.err[-500:]}")
    return _ended(f"{reader}{source}", done, (2,))


def _ended(what: str, done: Finished, codes: tuple[int, ...] = (0, 2)) -> str:
    wrong = [word for word in ("Traceback", "bug of ours", "\x1b") if word in done.err + done.out]
    if done.code not in codes or wrong:
        raise BrokenPromiseError(f"{what}: exit {done.code}, {wrong}: {(done.err + done.out)[-1500:]}")
    return f"exit {done.code}"


KINDS = [
    Kind(
        f"mutated label files, {EACH} a case",
        f"Data or an error of ours within {CPU} s each; nothing outside the folder is opened, listed or written.",
        100,
        1,
        _mutated,
    ),
    Kind(
        "mutated label files, sarb data check, stats and convert",
        "Exit code 0 or 2, no traceback, no control character on the terminal.",
        60,
        2,
        partial(_through_the_command_line, 60),
    ),
    Kind(
        "pipe or device as the label file",
        "Exit code 2 and one line at once; it is never opened.",
        16,
        1,
        _streams,
    ),
]
