"""Freed memory stays with the process."""

import platform
import resource
import subprocess
import sys

import pytest

from sarb.training.memory import keep_freed_memory

PROGRAM = """
import resource, sys
import numpy as np
from sarb.training.memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else False
np.ones(1 << 23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(1 << 23)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(mode: str) -> tuple[str, int]:
    result = subprocess.run([sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True)
    kept, faults = result.stdout.split()
    return kept, int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_the_same_64_mb_are_not_asked_for_again() -> None:
    kept, faults = run("keep")
    assert kept == "True"
    assert faults < (8 << 23) / resource.getpagesize() / 4
    assert run("leave")[1] > faults


def test_other_systems_are_left_alone(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert not keep_freed_memory()


def test_a_c_library_without_mallopt_is_left_alone(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    assert not keep_freed_memory()
