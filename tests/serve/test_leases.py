"""Questions that people hold, and those who hold them only to be in the way."""

import pytest

pytest.importorskip("fastapi", reason="needs the extra [serve]: pip install 'sarb[serve]'")

from sarb.serve import leases
from sarb.serve.leases import Leases


class Clock:
    """A clock that stands still until it is told."""

    now = 1.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def held(clock):
    return Leases(clock)


def _hold(held, who, entries, client=""):
    held.of(who, client)
    held.give(who, entries)


def test_one_client_does_not_hold_everything(held, clock):
    _hold(held, "ann", [100_000], "10.0.0.1")
    for number in range(20):
        clock.now += 1
        _hold(held, f"invented {number}", list(range(50 * number, 50 * number + 50)), "10.0.0.2")
    assert len(held.others("ann")) <= leases.MOST_OF_CLIENT
    assert held.of("ann") == [100_000] and len(held.of("invented 19")) == 50 and held.of("invented 0") == []


def test_all_together_do_not_either(held):
    for number in range(200):
        _hold(held, f"invented {number}", list(range(50 * number, 50 * number + 50)), f"10.0.0.{number}")
    assert len(held.others("ann")) <= leases.MOST


def test_people_are_forgotten_but_not_those_who_answer(held, clock):
    held.answered("ann")
    _hold(held, "ann", [7])
    for number in range(2 * leases.MOST_PEOPLE):
        clock.now += 0.1
        _hold(held, f"invented {number}", [])
    assert held.knows("ann") and held.of("ann") == [7]
    assert sum(held.knows(f"invented {number}") for number in range(600)) < leases.MOST_PEOPLE


def test_nobody_is_asked_what_a_colleague_is_answering(held, clock):
    _hold(held, "ann", [1, 2])
    assert held.stale("bob") == []
    clock.now += leases.PATIENCE - 1
    held.answered("ann")
    clock.now += leases.PATIENCE - 1
    assert held.stale("bob") == []
    clock.now += 2
    assert held.stale("bob") == [1, 2]


def test_nobody_waits_for_a_crowd_that_never_answered(held):
    held.answered("ann")
    _hold(held, "ann", [1])
    for number in range(leases.CROWD + 1):
        _hold(held, f"invented {number}", [10 + number])
    assert 1 not in held.stale("bob") and 10 in held.stale("bob")
    held.take([10])
    assert 10 not in held.others("bob")


def test_an_honest_reviewer_is_asked_when_all_is_held(desk):
    for number in range(20):
        desk.next(f"invented {number}", count=50)
    (asked,) = desk.next("ann", count=1)
    desk.answer("ann", asked.id, "yes")
    assert desk.next("ann", count=1)


def test_an_answer_counts_even_if_the_question_was_handed_on(desk):
    asked = desk.next("ann", count=60)
    for number in range(20):
        desk.next(f"invented {number}", count=50)
    for question in asked:
        desk.answer("ann", question.id, "no")
    assert desk.progress()["open"] == 0 and desk.progress()["no"] == 60


def test_names_are_not_kept_for_ever(desk, monkeypatch):
    from sarb.serve import handout

    monkeypatch.setattr(handout, "FORGET", 10)
    for number in range(2 * leases.MOST_PEOPLE):
        desk.next(f"invented {number}", count=1)
    assert len(desk._handout._count) <= leases.MOST_PEOPLE + 1
