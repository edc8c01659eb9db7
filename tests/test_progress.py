"""Talk goes to stderr, never to stdout."""

import itertools
import sys

import pytest

from sarb.progress import Progress


def test_say_writes_a_line_to_stderr(capsys):
    Progress().say("hello")
    assert capsys.readouterr() == ("", "hello\n")


def test_disabled_says_and_draws_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = Progress(enabled=False)
    progress.say("hello")
    with progress.bar("work", 3) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


def clock(seconds):
    """A clock that has moved on by so much at each look."""
    times = itertools.count(step=seconds)
    return lambda: next(times)


def test_without_a_terminal_there_is_a_line_per_tenth(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress(clock=clock(1)).bar("work", 1000) as advance:
        for number in range(100):
            advance(10, f"piece {number}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[-1] == "work: 100 % (1,000 of 1,000), piece 99"
    assert lines[0] == "work: 10 % (100 of 1,000), piece 9, about 90 s left"


def test_a_step_over_several_tenths_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress(clock=clock(600)).bar("work", 3) as advance:
        advance(1)
        advance(2)
    assert capsys.readouterr().err == "work: 30 % (1 of 3), about 20 min left\nwork: 100 % (3 of 3)\n"


def test_what_is_done_at_once_has_no_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress(clock=clock(0.01)).bar("work", 10) as advance:
        for _ in range(10):
            advance(1)
    with Progress(clock=clock(9)).bar("reading", None) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")


def test_work_that_was_begun_before_counts_for_the_share_not_for_the_time(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress(clock=clock(10)).bar("train", 10, done=5) as advance:
        advance(1)
    assert capsys.readouterr().err == "train: 60 % (6 of 10), about 40 s left\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_inside_a_bar_shows_nothing(monkeypatch, capsys, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    talk = Progress(clock=clock(5))
    with talk.bar("outer", 2) as outer, talk.bar("inner", 2) as inner:
        inner(1)
        outer(2)
    assert "inner" not in capsys.readouterr().err
    with talk.bar("later", 1) as advance:
        advance(1)
    assert "later" in capsys.readouterr().err


def test_details_are_for_a_verbose_command(capsys):
    Progress().detail("hidden")
    Progress(enabled=False, verbose=True).detail("hidden")
    Progress(verbose=True).detail("shown")
    assert capsys.readouterr() == ("", "shown\n")


def test_on_a_terminal_the_bar_counts(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with Progress().bar("computing features", 3) as advance:
        advance(1)
        advance(2)
    out, drawn = capsys.readouterr()
    assert out == "" and "computing features" in drawn and "3/3" in drawn


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_inside_the_bar_comes_through(monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with pytest.raises(KeyError), Progress().bar("work", 3):
        raise KeyError("x")


def test_a_line_that_is_said_once(capsys):
    talk = Progress()
    for line in ("a", "b", "a"):
        talk.once(line)
    talk.say("a")
    assert capsys.readouterr().err.split() == ["a", "b", "a"]
    assert Progress.of(talk) is talk and not Progress.of(False).enabled
