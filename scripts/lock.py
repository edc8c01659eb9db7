"""Write requirements.lock: constraints.txt with the hashes of every archive, for Python 3.11 on Linux x86-64.

``make lock`` runs it in an environment of its own, which has pip-tools. A version that stays keeps the hashes of the
old lock: PyTorch has a CPU build and one for CUDA, and an index shows only one of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
HEAD = (
    "# Made by `make lock` from constraints.txt. For Python 3.11 on Linux x86-64; see scripts/install.py.\n"
)
ENTRY = re.compile(r"^([\w.-]+)==([^\s\\]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)", re.M)

Entries = dict[str, tuple[str, set[str]]]


def main() -> None:
    """Resolve, add the hashes that are known already, write."""
    found = entries(_resolved())
    for name, (version, hashes) in entries(LOCK.read_text(encoding="utf-8") if LOCK.exists() else "").items():
        if name in found and found[name][0] == version:
            found[name][1].update(hashes)
    LOCK.write_text(HEAD + text(found), encoding="utf-8")
    print(f"{LOCK.name}: {len(found)} packages, {sum(len(hashes) for _, hashes in found.values())} hashes")


def entries(lock: str) -> Entries:
    """Return name -> version, without a local part such as +cpu, and hashes."""
    return {
        name: (version.split("+")[0], set(re.findall(r"[0-9a-f]{64}", hashes)))
        for name, version, hashes in ENTRY.findall(lock)
    }


def text(found: Entries) -> str:
    """Return the lines of a lock."""
    lines = []
    for name, (version, hashes) in sorted(found.items()):
        lines.append(
            " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in sorted(hashes))])
        )
    return "\n".join(lines) + "\n"


def _resolved() -> str:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "lock.txt"
        words = [
            "--quiet",
            "--generate-hashes",
            "--extra",
            "dev",
            "-c",
            "constraints.txt",
            "--allow-unsafe",
            "--strip-extras",
        ]
        words += [
            "--no-emit-index-url",
            "--no-emit-find-links",
            "--no-header",
            "--no-annotate",
            "-o",
            str(out),
        ]
        subprocess.run(
            [sys.executable, "-m", "piptools", "compile", *words, "pyproject.toml"],
            cwd=ROOT,
            check=True,
        )
        return out.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
