"""What the operating system refuses is one line, with the file and what to do."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sarb.cli.failures import BROKEN_PIPE, WHAT_TO_DO, describe


@pytest.mark.parametrize("number", sorted(WHAT_TO_DO))
def test_the_file_the_reason_and_what_to_do(tmp_path: Path, number: int) -> None:
    line = describe(OSError(number, os.strerror(number), str(tmp_path / "a.csv")))
    assert line.startswith(f"{tmp_path / 'a.csv'}: {os.strerror(number)}")
    assert line.endswith(f"; {WHAT_TO_DO[number]}") and "\n" not in line


def test_a_full_disk_says_how_much_is_free(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "new" / "a.csv"))
    assert " MB free); make room" in describe(error)


def test_without_a_name_it_is_what_is_printed() -> None:
    assert describe(OSError(errno.ENOSPC, "full")).startswith("standard output: full; make room")
    assert describe(OSError(errno.EMFILE, "Too many open files")).startswith("Too many open files; raise")


def test_others_are_named_without_advice() -> None:
    assert describe(FileNotFoundError(errno.ENOENT, "No such file", "a.csv")) == "a.csv: No such file"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sarb.cli", *arguments]


@pytest.mark.parametrize("arguments", [("list", "methods"), ("--help",), ("--version",)])
def test_a_full_stdout_is_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command(*arguments), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("sarb: standard output: No space left on device; ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("list", "methods"), ("--version",)])
def test_a_broken_pipe_is_silent(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(*arguments), stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, "")


def test_a_full_stderr_changes_no_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command("trian"), stdout=subprocess.PIPE, stderr=full, text=True)
    assert (done.returncode, done.stdout) == (2, "")
