"""Lose a Ray worker as a machine that fails would."""

import os
import signal

import psutil


def kill_a_worker():
    """Kill one worker of the cluster that this process started; return how many there were."""
    ours = {child.pid for child in psutil.Process().children(recursive=True)}
    names = [(process.pid, process.info["cmdline"] or [""]) for process in psutil.process_iter(["cmdline"])]
    busy = [pid for pid, words in names if words[0].startswith("ray::MapWorker") and pid in ours]
    if busy:
        os.kill(busy[0], signal.SIGKILL)
    return len(busy)
