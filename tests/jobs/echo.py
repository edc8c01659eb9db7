"""A task for tests: say where it runs, die, or fail."""

import os
import signal
import time
from pathlib import Path

CALL = "tests.jobs.echo:answer"


def answer(task):
    """Describe the process that runs it; ``die`` names a file that is there once it has died."""
    import torch

    if task.get("die") and not Path(task["die"]).exists():
        Path(task["die"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if task.get("fail"):
        raise ValueError(task["fail"])
    return {
        "line": {
            "said": task.get("say"),
            "process": os.getpid(),
            "threads": torch.get_num_threads(),
            "variable": os.environ["OMP_NUM_THREADS"],
            "folder": str(Path.cwd()),
        }
    }


def wait(task):
    """Say that it has begun, and never end."""
    Path(task["begun"]).touch()
    while True:
        time.sleep(1)
