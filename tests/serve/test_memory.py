"""Memory goes back to the system where the C library has to be told."""

import platform
import subprocess
import sys

import pytest

from sarb.serve import memory


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory, "_glibc", lambda: None)
    assert memory.keep_little() is False
    memory.give_back()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what is freed")
def test_freed_blocks_are_given_back():
    """Eight threads that each free 20 MB: without the limits, their heaps keep most of it."""
    program = """
import ctypes, re, sys, threading
from pathlib import Path
from sarb.serve.memory import give_back, keep_little
if sys.argv[1] == "yes":
    assert keep_little()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
def work():
    blocks = [libc.malloc(100_000) for _ in range(200)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    keep.append(libc.malloc(1000))
    for block in blocks:
        libc.free(ctypes.c_void_p(block))
keep, threads = [], [threading.Thread(target=work) for _ in range(8)]
before = int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
for thread in threads: thread.start()
for thread in threads: thread.join()
if sys.argv[1] == "yes":
    give_back()
print(int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) - before)
"""
    with_limits = int(subprocess.check_output([sys.executable, "-c", program, "yes"]))
    assert with_limits < 20_000
