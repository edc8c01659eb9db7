"""Running tasks: order, failures, lost runners, interruption."""

import threading

import pytest

from sarb.jobs.pool import TRIES, run_grid, time_left
from sarb.progress import Progress
from tests.waiting import PATIENCE

TASKS = [(f"task {number}", {"number": number}) for number in range(6)]


class Fake:
    """Runs a task by a function."""

    def __init__(self, function):
        self.function, self.stopped = function, threading.Event()

    def run(self, task):
        return self.function(self, task["number"])

    def rest(self):
        pass

    def stop(self):
        self.stopped.set()


class Seated(Fake):
    """Runs tasks in one of a few seats, which it keeps until it rests, as an actor keeps its processors."""

    def __init__(self, seats):
        super().__init__(lambda _, number: {"line": number})
        self.seats, self.seated = seats, False

    def run(self, task):
        assert self.seated or self.seats.acquire(timeout=PATIENCE), "nobody has left a seat"
        self.seated = True
        return super().run(task)

    def rest(self):
        if self.seated:
            self.seated = False
            self.seats.release()


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


def test_more_jobs_than_there_is_room_for_wait_for_each_other():
    seats, answers = threading.Semaphore(1), []
    run_grid(TASKS, lambda: Seated(seats), lambda _, answer: answers.append(answer) or "", jobs=4)
    assert sorted(answer["line"] for answer in answers) == list(range(6))


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


def test_time_left():
    assert time_left(10, 1, 4) == "; about 30 s left"
    assert time_left(60, 1, 11) == "; about 10 min left"
    assert time_left(3600, 1, 4) == "; about 3.0 h left"
    assert time_left(10, 4, 4) == ""


@pytest.mark.parametrize("deaths", [TRIES - 1, TRIES])
def test_a_task_whose_runner_dies_is_tried_again_but_not_for_ever(deaths, capsys):
    begun, answers = [], {}

    def work(_, number):
        begun.append(number)
        dies = number == 2 and begun.count(2) <= deaths
        return {"error": "it died", "died": True} if dies else {"line": number}

    run_grid(
        TASKS,
        lambda: Fake(work),
        lambda number, answer: answers.update({number: answer}) or "",
        jobs=2,
        talk=Progress(),
    )
    assert begun.count(2) == TRIES and len(begun) == len(TASKS) + TRIES - 1
    given_up = {"error": f"it died; given up after {TRIES} tries", "lost": True}
    assert answers == {number: {"line": number} for number in range(6)} | (
        {2: given_up} if deaths == TRIES else {}
    )
    assert capsys.readouterr().err.count("task 2: it died; tried again") == TRIES - 1
