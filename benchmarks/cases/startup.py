"""Start-up time of the command line and of ``import sarb``."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Case, Work

HELP = """
import sys
sys.argv = ["sarb", "--help"]
from sarb.cli.app import main
try:
    main()
except SystemExit:
    pass
assert "torch" not in sys.modules, "sarb --help imports torch"
"""
IMPORT = "import sys, sarb; assert 'torch' not in sys.modules, 'import sarb imports torch'"


def python(code: str) -> Work:
    """Return work that runs code in a new process and fails if it fails."""

    def work() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)

    return work


def cases() -> list[Case]:
    """``sarb --help`` and ``import sarb``."""
    note = (
        "literal: the same with torch imported at the top, as is usual; floor: {}; torch must not be imported"
    )
    return [
        Case(
            "startup: sarb --help",
            literal=python("import torch\n" + HELP.replace("assert", "# ")),
            ours=python(HELP),
            floor=python("import typer.main, rich.console"),
            note=note.format("import of typer and rich alone") + "; goal 0.4 s",
            memory=False,
        ),
        Case(
            "startup: import sarb",
            literal=python("import torch, sarb"),
            ours=python(IMPORT),
            floor=python("pass"),
            note=note.format("an empty program"),
            memory=False,
        ),
    ]
