"""Talk goes to stderr, never to stdout."""

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


def test_without_a_terminal_no_bar_is_drawn(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress().bar("work", 3) as advance:
        advance(1)
        advance(2)
    assert capsys.readouterr() == ("", "")


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
