"""What the tests of README, docs and examples share: code blocks of a page, and a world in which they run
fast.
"""

import functools
import re
import shlex
import signal
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?:<!-- (?P<mark>[a-z-]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)

#: what replaces the sizes of every training and of the demo set
FAST = {"backbone": "tiny", "epochs": 1, "image_size": 64}
FEW = {"train": 24, "test": 12, "size": 64, "processes": 1}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``mark`` is the word of an HTML comment on the line above it."""

    language: str
    text: str
    line: int
    mark: str | None


def blocks(path):
    page = path.read_text(encoding="utf-8")
    return [
        Block(
            found["language"], found["text"], page.count("\n", 0, found.start("language")) + 1, found["mark"]
        )
        for found in FENCE.finditer(page)
    ]


def commands(block):
    """Yield (words, expected output lines) of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.M)
    assert not parts[0].strip(), f"line {block.line}: output before the first command"
    for part in parts[1:]:
        command, *output = part.splitlines()
        yield shlex.split(command), [line for line in output if line.strip()]


def hurry(monkeypatch):
    """Make every training and the demo set tiny; draw no picture but those of ``sarb report``."""
    import sarb.data.demo.dataset
    import sarb.labelling.folds
    import sarb.report.report
    import sarb.training.run
    import sarb.workflows.training

    def smaller(function, **sizes):
        return functools.wraps(function)(lambda *given, **options: function(*given, **{**options, **sizes}))

    for module in (sarb.training.run, sarb.workflows.training, sarb.labelling.folds):
        monkeypatch.setattr(module, "resolve", smaller(module.resolve, **FAST))
    monkeypatch.setattr(sarb.data.demo.dataset, "load_demo", smaller(sarb.data.demo.dataset.load_demo, **FEW))
    monkeypatch.setattr(sarb.workflows.training, "write_report", lambda folder: folder)
    blank = types.SimpleNamespace(per_category_ap=lambda *_: b"", precision_recall_curves=lambda *_: b"")
    monkeypatch.setattr(sarb.report.report, "plots", blank)
    coarse_pictures(monkeypatch)


def coarse_pictures(monkeypatch):
    import sarb.report.style

    monkeypatch.setattr(sarb.report.style, "DOTS_PER_INCH", 20)


def parse(words):
    """Check a ``sarb`` command line without running it: options, their types and the sub-command must
    exist.
    """
    from typer.main import get_command

    from sarb.cli.app import app

    group = get_command(app)
    name, command, rest = group.resolve_command(
        group.make_context("sarb", words[1:2], resilient_parsing=True), words[1:]
    )
    return command.make_context(name, rest).params


def run(words, monkeypatch):
    """Run a ``sarb`` command line in this process and return its exit code."""
    from sarb.cli.app import main

    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", words)
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    return ended.value.code
