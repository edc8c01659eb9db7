"""Install sarb with all it is developed with into the environment of this interpreter: ``python scripts/install.py``.

On the project's own platform every archive must have a hash that requirements.lock lists. Elsewhere the versions
come from constraints.txt, without hashes.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: where requirements.lock is complete
LOCKED = ((3, 11), "Linux", "x86_64")


def main() -> int:
    """Install; return the exit code."""
    here = (sys.version_info[:2], platform.system(), platform.machine())
    if here != LOCKED:
        _say(
            "requirements.lock is for Python 3.11 on Linux x86-64; constraints.txt gives the versions, without hashes"
        )
        return _pip("install", "-c", "constraints.txt", "-e", ".[dev]")
    # --no-deps: the lock is the whole list, and `pip check` finds what it lacks
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "chosen.txt"
        chosen.write_text(_cpu_build())
        code = _pip("install", "--no-deps", "--require-hashes", "-r", "requirements.lock", "-c", str(chosen))
    code = code or _pip("install", "--no-deps", "--no-build-isolation", "-e", ".")
    if code or not _pip("check"):
        return code
    _say(
        "this build of PyTorch needs packages that requirements.lock lacks (CUDA); they are installed without hashes"
    )
    return _pip("install", "--no-build-isolation", "-c", "constraints.txt", "-e", ".[dev]")


def _cpu_build() -> str:
    """Return the requirement for PyTorch's CPU build if pip can find it, else nothing.

    pip prefers an archive whose hash the index tells, which is that of the build for CUDA.
    """
    found = re.search(r"^torch==[\d.]+", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M)
    build = f"{found[0]}+cpu" if found else ""
    words = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", build]
    there = build and subprocess.run(words, cwd=ROOT, capture_output=True).returncode == 0
    return f"{build}\n" if there else ""


def _pip(*words: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "pip", *words[:1], "--quiet", *words[1:]], cwd=ROOT
    ).returncode


def _say(line: str) -> None:
    print(f"install: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
