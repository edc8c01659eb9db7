"""Decoding ahead in threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sarb.batches.prefetch import AHEAD, Ahead, cores
from tests.waiting import PATIENCE

KEYS = [[0, 1, 2], [3], [], [4, 5], [6, 7], [8], [9]]


def join(keys, items):
    return list(zip(keys, items, strict=True))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_in_the_same_order_as_a_loop(threads):
    ahead = Ahead(lambda key: key * key, join, KEYS, threads)
    assert len(ahead) == len(KEYS)
    expected = [[(key, key * key) for key in keys] for keys in KEYS]
    assert list(ahead) == expected
    assert list(ahead) == expected, "a second walk starts again"


def test_order_does_not_depend_on_who_is_done_first():
    second = threading.Event()

    def load(key):
        if key == 1:
            second.set()
        elif key == 0:
            assert second.wait(PATIENCE), "both at once"
        return key

    assert list(Ahead(load, join, [[0], [1]], 2)) == [[(0, 0)], [(1, 1)]]


def test_it_works_ahead_but_not_further_than_it_may():
    drawn, reached = [], threading.Event()

    class Drawn(list):
        def __iter__(self):
            for keys in super().__iter__():
                drawn.append(keys)
                yield keys

    walk = iter(
        Ahead(lambda key: reached.set() if key == AHEAD else None, join, Drawn([key] for key in range(20)), 2)
    )
    for position in range(1, 20 - AHEAD):
        next(walk)
        assert len(drawn) == position + AHEAD
    assert reached.wait(PATIENCE), "the next ones are loaded while this one is in use"
    assert len(list(walk)) == AHEAD + 1 and len(drawn) == 20


def test_an_exception_of_a_thread_is_raised_at_its_place():
    def load(key):
        if key == 4:
            raise ValueError("four")
        return key

    seen = []
    with pytest.raises(ValueError, match="four"):
        for whole in Ahead(load, join, KEYS, 3):
            seen.append(whole)
    assert seen == [[(key, key) for key in keys] for keys in KEYS[:3]]
    assert not any(thread.name.startswith("sarb-decode") for thread in threading.enumerate())


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_leaving_early_drops_what_is_waiting_and_ends_the_threads(error, monkeypatch):
    gate = threading.Event()
    loaded = []

    class Pool(ThreadPoolExecutor):
        """Lets the item in work end only when the others have been dropped."""

        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            gate.set()
            super().shutdown(wait=wait)

    monkeypatch.setattr("sarb.batches.prefetch.ThreadPoolExecutor", Pool)

    def load(key):
        if key:
            gate.wait(PATIENCE)
        loaded.append(key)

    walk = iter(Ahead(load, join, [[0], list(range(1, 50))], 1))
    next(walk)
    with pytest.raises(error):
        walk.throw(error)
    assert len(loaded) <= 2, "only the item in work was finished"
    assert not any(thread.name.startswith("sarb-decode") for thread in threading.enumerate())


def test_there_is_a_core():
    assert cores() >= 1
