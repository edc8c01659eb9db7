"""The process of a Slurm job: reads one task from a file, and writes its answer to another.

Started as ``python -m sarb.jobs.once FILE``. A job that ends without an answer has died, and is tried again. It ends by
itself when its file is gone: then nobody waits for it any more, and another job may be at work on the same run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from sarb.files import read_json, write_json
from sarb.jobs.local import THREAD_VARIABLES
from sarb.jobs.place import Place
from sarb.jobs.worker import function_of

#: seconds between two looks whether the task is still wanted
LOOK = 1.0


def main() -> None:
    """Answer one task."""
    file = Path(sys.argv[1])
    given = read_json(file)
    threading.Thread(target=_watch, args=(file.absolute(),), daemon=True).start()
    # BLAS and OpenMP read these only once, when they are loaded
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(given["threads"])))
    problem = Place(**given["place"]).enter()
    if problem:
        write_json(given["answer"], {"error": problem, "lost": True})
        return
    write_json(given["answer"], function_of(given["call"], given["threads"])(given["task"]))


def _watch(file: Path) -> None:
    while file.is_file():
        time.sleep(LOOK)
    os._exit(1)  # files are written atomically, so a task may stop at any point


if __name__ == "__main__":
    main()
