"""Running cells: order, failures, interruption."""

import subprocess
import sys
import threading

import pytest

from sarb.progress import Progress
from sarb.reproduce.grid import Worker, run_grid, time_left
from tests.waiting import PATIENCE

TASKS = [(f"task {number}", {"number": number}) for number in range(6)]


class Fake:
    """Runs a task by a function."""

    def __init__(self, function):
        self.function, self.stopped = function, threading.Event()

    def run(self, task):
        return self.function(self, task["number"])

    def stop(self):
        self.stopped.set()


@pytest.mark.parametrize("jobs", [1, 3, 9])
def test_every_task_is_run_once_whatever_fails(jobs, capsys):
    answers, seen = {}, []

    def work(_, number):
        seen.append(number)
        if number == 1:
            raise ValueError("no luck")
        return {"error": "bad"} if number == 3 else {"line": number}

    def done(number, answer):
        answers[number] = answer
        return "failed" if "error" in answer else "fine"

    run_grid(TASKS, lambda: Fake(work), done, jobs=jobs, talk=Progress())
    assert sorted(seen) == sorted(answers) == list(range(6))
    assert answers[1] == {"error": "ValueError: no luck"} and answers[3] == {"error": "bad"}
    assert [answers[number] for number in (0, 2, 4, 5)] == [{"line": number} for number in (0, 2, 4, 5)]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 6 and "task 3: failed" in "\n".join(said)
    assert all("left" in line for line in said[:-1]) and "left" not in said[-1]


def test_two_jobs_run_at_the_same_time():
    both, answers = threading.Barrier(2, timeout=PATIENCE), []
    run_grid(
        TASKS,
        lambda: Fake(lambda *_: {"line": both.wait()}),
        lambda _, answer: answers.append(answer),
        jobs=2,
    )
    assert sorted(answer["line"] for answer in answers) == [0, 0, 0, 1, 1, 1], "each waited for the other"


def test_an_interruption_stops_the_runners():
    runners = []

    def start():
        runners.append(Fake(lambda self, _: {"line": self.stopped.wait(PATIENCE)}))
        return runners[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    def quick_then_wait():
        runner = start()
        if len(runners) == 1:
            runner.function = lambda self, number: (
                {"line": 0} if number == 0 else {"line": self.stopped.wait(PATIENCE)}
            )
        return runner

    with pytest.raises(KeyboardInterrupt):
        run_grid(TASKS, quick_then_wait, interrupt, jobs=2)
    assert all(runner.stopped.is_set() for runner in runners)


def test_no_tasks_no_runner():
    started = []
    run_grid([], lambda: started.append(1), lambda *_: "")
    assert not started


def test_a_process_that_dies_is_an_error_and_the_next_task_gets_a_new_one(tmp_path, monkeypatch):
    scripts = ["import os; input(); os._exit(7)", "input(); print('{\"line\": 5}', flush=True); input()"]

    def popen():
        words = [sys.executable, "-c", scripts.pop(0)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    worker = Worker(1, tmp_path / "log.txt")
    monkeypatch.setattr(worker, "_start", popen)
    assert "ended with code 7" in worker.run({})["error"]
    assert worker.run({}) == {"line": 5}
    worker.stop()


def test_time_left():
    assert time_left(10, 1, 4) == "; about 30 s left"
    assert time_left(60, 1, 11) == "; about 10 min left"
    assert time_left(3600, 1, 4) == "; about 3.0 h left"
    assert time_left(10, 4, 4) == ""
