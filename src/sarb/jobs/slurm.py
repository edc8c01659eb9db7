"""One Slurm job per task, through submitit.

submitit pickles what it submits into a folder of its own. We give it nothing but a command line
(``python -m sarb.jobs.once FILE``); the task and its answer are JSON files, and only they are read by us. The folder,
``OUT/.jobs``, is removed at the end.
"""

from __future__ import annotations

import functools
import importlib
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.errors import SarbError, unknown_name
from sarb.files import read_json, write_json
from sarb.jobs.once import LOOK
from sarb.jobs.place import JOBS, Place, marked
from sarb.jobs.pool import Answer, Start

if TYPE_CHECKING:
    from sarb.jobs.engines import Engine, Work

#: our key -> submitit's, for all its executors or for Slurm alone
KEYS = {
    "partition": "slurm_partition",
    "time": "timeout_min",
    "memory": "mem_gb",
    "gpus": "gpus_per_node",
    "account": "slurm_account",
    "qos": "slurm_qos",
    "constraint": "slurm_constraint",
    "nodelist": "slurm_nodelist",
    "exclude": "slurm_exclude",
    "gres": "slurm_gres",
    "comment": "slurm_comment",
}
NUMBERS = ("time", "memory", "gpus")
#: which executor of submitit; the second one starts processes here and needs no Slurm
CLUSTERS = ("slurm", "local")
#: minutes of a job, if none are given; submitit's own default is 5
TIME = 240
#: seconds between two looks at a job
PAUSE = 0.5
#: end of a lost job's log that is kept
LOG_CHARACTERS = 4000


def read_options(texts: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Read ``KEY=VALUE`` texts: (parameters for submitit and ``cluster``, all problems)."""
    found: dict[str, Any] = {"timeout_min": TIME, "cluster": "slurm"}
    problems = []
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            problems.append(f"--slurm {text}: expected KEY=VALUE, e.g. --slurm partition=gpu")
        elif key == "cluster" and value in CLUSTERS:
            found["cluster"] = value
        elif key == "cluster":
            problems.append("--slurm: " + unknown_name("cluster", value, CLUSTERS))
        elif key not in KEYS:
            problems.append("--slurm: " + unknown_name("key", key, [*KEYS, "cluster"]))
        elif key in NUMBERS and not (value.isdecimal() and int(value)):
            unit = {"time": "minutes", "memory": "GB", "gpus": "GPUs"}[key]
            problems.append(f"--slurm {text}: {key} must be a whole number of {unit} of at least 1")
        else:
            found[KEYS[key]] = int(value) if key in NUMBERS else value
    return found, problems


class SlurmRunner:
    """Submits a job per task and waits for its answer.

    Args:
        submit: takes a command, returns submitit's job.
        work: what is to be run.
        place: where the command was started.
    """

    #: submitit's executors are not made for several threads
    _one_at_a_time = threading.Lock()

    def __init__(self, submit: Any, work: Work, place: Place) -> None:
        self.submit = submit
        self.work = work
        self.place = place
        self.folder = Path(place.mark).parent
        self.job: Any = None
        self.stopped = threading.Event()

    def run(self, task: dict[str, Any]) -> Answer:
        """Submit a job and wait; one that ends without an answer is an error answer."""
        name = secrets.token_hex(8)
        file = self.folder / f"{name}.task.json"
        answer = self.folder / f"{name}.answer.json"
        write_json(
            file,
            {
                "call": self.work.call,
                "threads": self.work.threads,
                "place": self.place.as_dict(),
                "task": task,
                "answer": str(answer),
            },
        )
        with self._one_at_a_time:
            self.job = self.submit([sys.executable, "-m", "sarb.jobs.once", str(file)])
            (self.folder / f"{self.job.job_id}.job").touch()
        while not answer.is_file() and not self.stopped.wait(PAUSE):
            if self._ended():
                break
        if not answer.is_file():
            self.stopped.wait(PAUSE)  # a shared file system shows a new file late
        return dict(read_json(answer)) if answer.is_file() else self._lost()

    def _ended(self) -> bool:
        with self._one_at_a_time:
            return bool(self.job.done())

    def _lost(self) -> Answer:
        """The error of a job without an answer, and what it has said beside our own messages."""
        said = ""
        for file in (self.job.paths.stderr, self.job.paths.stdout):
            with suppress(OSError):
                said += file.read_text(encoding="utf-8", errors="replace")
        if said:
            self.work.log.parent.mkdir(parents=True, exist_ok=True)
            with self.work.log.open("a", encoding="utf-8") as log:
                log.write(said[-LOG_CHARACTERS:])
        hint = (
            f"see {self.work.log}"
            if said
            else f"it left no log: can its node see {self.folder.parent}? A shared file system is needed"
        )
        return {
            "error": f"job {self.job.job_id} ended without an answer, state {self.job.state} ({hint})",
            "died": True,
        }

    def rest(self) -> None:
        """Nothing to give back: the job of the last task has ended."""

    def stop(self) -> None:
        """Cancel the job; the last checkpoint of its task is kept on disk."""
        self.stopped.set()
        if self.job is not None and not self._ended():
            self.job.cancel(check=False)


@contextmanager
def opened(engine: Engine, work: Work) -> Iterator[Start]:
    """Prepare submitit's folder; remove it when all jobs are over."""
    options, _ = read_options(engine.slurm)
    cluster = options.pop("cluster")
    folder = work.folder.absolute() / JOBS
    _cancel_left_over(folder, cluster)
    with marked(work.folder) as place:
        submit = functools.partial(_submit, _executor(cluster, folder, options, work))
        try:
            yield lambda: SlurmRunner(submit, work, place)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _executor(cluster: str, folder: Path, options: dict[str, Any], work: Work) -> Any:
    submitit: Any = importlib.import_module("submitit")
    try:
        executor = submitit.AutoExecutor(folder=folder, cluster=cluster)
    except RuntimeError as error:
        raise SarbError(f"engine slurm: {error} (--slurm cluster=local runs the jobs here)") from error
    executor.update_parameters(name="sarb", cpus_per_task=work.threads, **options)
    return executor


def _submit(executor: Any, words: list[str]) -> Any:
    helpers: Any = importlib.import_module("submitit.helpers")
    return executor.submit(helpers.CommandFunction(words, verbose=True, cwd=str(Path.cwd())))


def _cancel_left_over(folder: Path, cluster: str) -> None:
    """End the jobs of a command that was killed: they would write into the folders of the same runs.

    Each job looks for its file and ends without it, so this works without ``scancel``, too.
    """
    jobs = [file.stem for file in folder.glob("*.job")]
    if jobs and cluster == "slurm":
        subprocess.run(["scancel", *jobs], check=False)
    shutil.rmtree(folder, ignore_errors=True)
    if jobs:
        time.sleep(3 * LOOK)
