"""Build the source archive and the wheel twice, in other folders and with other file times, and compare the bytes.

``make same-wheel``, or ``python scripts/same_wheel.py``; prints the hashes, and ends with 1 if they differ.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Build twice, print, compare."""
    with tempfile.TemporaryDirectory() as scratch:
        first = built(Path(scratch) / "first", 1_600_000_000)
        second = built(Path(scratch) / "another folder" / "second", 1_700_000_000)
    for name, digest in first.items():
        print(f"{digest}  {name}  {'identical' if second.get(name) == digest else 'DIFFERENT'}")
    return int(first != second)


def built(folder: Path, seconds: int) -> dict[str, str]:
    """Copy what git knows, set all file times, build; return file name -> SHA-256."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, copy = ROOT / name, folder / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            os.utime(copy, (seconds, seconds))
    words = [sys.executable, "-m", "hatchling", "build", "--directory", "dist"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted((folder / "dist").iterdir())
    }


if __name__ == "__main__":
    raise SystemExit(main())
