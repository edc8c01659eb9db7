import threading

import pytest

from sarb.errors import SarbError
from sarb.serve import saver
from sarb.serve.saver import Saver
from tests.waiting import PATIENCE


def test_writes_after_a_touch_and_at_the_end_only_if_needed(monkeypatch):
    monkeypatch.setattr(saver, "PAUSE", 0.0)
    monkeypatch.setattr(saver, "SHARE", 0.0)
    written = threading.Event()
    times = []
    keeper = Saver(lambda: (times.append(1), written.set()))
    keeper.touch()
    assert written.wait(PATIENCE)
    keeper.save()
    count = len(times)
    keeper.save()
    keeper.close()
    assert len(times) == count == 1


def test_many_answers_make_few_files(monkeypatch):
    monkeypatch.setattr(saver, "PAUSE", 60.0)
    first = threading.Event()
    times = []
    keeper = Saver(lambda: (times.append(1), first.set()))
    keeper.touch()
    assert first.wait(PATIENCE)
    for _ in range(100):
        keeper.touch()
    keeper.close()
    assert len(times) == 2  # the first, and one at the end for the hundred


def test_a_failure_is_told_and_tried_again(monkeypatch):
    monkeypatch.setattr(saver, "PAUSE", 60.0)
    broken = [True]

    def write():
        if broken[0]:
            raise OSError("disk full")

    keeper = Saver(write)
    keeper.touch()
    keeper.save()
    assert keeper.problem == "disk full"
    broken[0] = False
    keeper.save()
    assert keeper.problem == ""
    broken[0] = True
    keeper.touch()
    with pytest.raises(SarbError, match="disk full"):
        keeper.close()
