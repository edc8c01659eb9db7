"""A process that runs tasks: it may die, and ends with its input."""

import subprocess
import sys

from sarb.jobs.engines import Engine, Work
from sarb.jobs.local import Worker
from tests.jobs.echo import CALL


def test_a_process_that_dies_is_an_error_and_the_next_task_gets_a_new_one(tmp_path, monkeypatch):
    scripts = ["import os; input(); os._exit(7)", "input(); print('{\"line\": 5}', flush=True); input()"]

    def popen():
        words = [sys.executable, "-c", scripts.pop(0)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    worker = Worker(1, tmp_path / "log.txt")
    monkeypatch.setattr(worker, "_start", popen)
    lost = worker.run({})
    assert "ended with code 7" in lost["error"] and lost["died"]
    assert worker.run({}) == {"line": 5}
    worker.stop()


def test_a_function_answers_in_a_process_of_its_own_with_its_threads(tmp_path):
    work = Work(CALL, 2, 1, tmp_path, tmp_path / "log.txt")
    with Engine().open(work) as start:
        worker = start()
        try:
            first, second = (worker.run({"say": word})["line"] for word in ("one", "two"))
        finally:
            worker.stop()
    assert (first["said"], second["said"]) == ("one", "two")
    assert first["process"] == second["process"] == worker.process.pid
    assert (first["threads"], first["variable"]) == (2, "2")
