"""Files are written whole or not at all."""

import csv
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from sarb.files import (
    atomic_write,
    cache_dir,
    csv_text,
    near_path,
    read_json,
    write_csv,
    write_json,
    write_rows,
)


@pytest.fixture
def umask():
    """Set the umask of this process for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_writes_text_and_bytes_and_makes_the_folder(tmp_path):
    with atomic_write(tmp_path / "new" / "a.txt") as file:
        file.write("größe\n")
    with atomic_write(tmp_path / "new" / "b.bin", "wb") as file:
        file.write(b"\x00\xff")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "größe\n".encode()
    assert (tmp_path / "new" / "b.bin").read_bytes() == b"\x00\xff"
    assert names(tmp_path / "new") == ["a.txt", "b.bin"]


def test_line_ends_are_written_as_given(tmp_path):
    with atomic_write(tmp_path / "a.csv") as file:
        file.write("a\r\nb\nc")
    assert (tmp_path / "a.csv").read_bytes() == b"a\r\nb\nc"


def test_nothing_is_visible_before_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existed", [True, False])
def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path, failure, existed):
    path = tmp_path / "a.txt"
    if existed:
        path.write_text("old")
    with pytest.raises(failure), atomic_write(path) as file:
        file.write("half of the ne")
        raise failure
    assert names(tmp_path) == (["a.txt"] if existed else [])
    assert not existed or path.read_text() == "old"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_interrupt_while_the_file_is_made_leaves_nothing(tmp_path):
    def interrupt(frame, event, function):
        if event == "c_return" and function.__name__ == "open":
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "a.txt"):
            raise AssertionError("not reached")
    finally:
        sys.setprofile(None)
    assert names(tmp_path) == []


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mask, expected):
    umask(mask)
    write_json(tmp_path / "a.json", 1)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == expected
    assert os.umask(mask) == mask, "the umask of the process is as before"


def test_json_there_and_back(tmp_path):
    value = {"größe": [1, 2.5, None, True], "nested": {"a": "b"}}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert "größe" in text and text.endswith("}\n")


def test_a_value_json_cannot_hold_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1} and names(tmp_path) == ["a.json"]


def test_cache_dir_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SARB_CACHE", str(tmp_path / "mine"))
    assert cache_dir() == tmp_path / "mine"
    monkeypatch.setenv("SARB_CACHE", "~/mine")
    assert cache_dir() == Path.home() / "mine"
    monkeypatch.delenv("SARB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "sarb"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "sarb"


def test_the_near_path(monkeypatch, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "labels.csv").touch()
    assert near_path(tmp_path / "photo" / "labels.csv") == tmp_path / "photos" / "labels.csv"
    assert near_path(tmp_path / "fotos" / "label.csv") == tmp_path / "photos" / "labels.csv"
    assert near_path(tmp_path / "photos" / "q") is None
    assert near_path(tmp_path / "photos" / "labels.csv" / "x") is None
    monkeypatch.chdir(tmp_path)
    assert near_path(Path("Photos/labels.csv")) == Path("photos/labels.csv")


def test_the_header_is_the_union_of_the_keys_in_order(tmp_path):
    write_rows(tmp_path / "log.csv", [{"epoch": 0, "loss": 0.5}, {"epoch": 1, "alpha": 0.4, "loss": 0.25}])
    assert (tmp_path / "log.csv").read_bytes() == b"epoch,loss,alpha\r\n0,0.5,\r\n1,0.25,0.4\r\n"
    with (tmp_path / "log.csv").open(newline="") as file:
        assert next(csv.DictReader(file)) == {"epoch": "0", "loss": "0.5", "alpha": ""}


def test_no_rows_make_no_trouble(tmp_path):
    write_rows(tmp_path / "log.csv", [])
    assert (tmp_path / "log.csv").read_text().strip() == ""


def test_csv_rows_are_sequences_or_mappings():
    assert csv_text(["a", "b"], [(1, None), ["x,y", 'say "no"']]) == 'a,b\n1,\n"x,y","say ""no"""\n'
    assert (
        csv_text(["a", "b"], [{"b": 2.5, "a": 1, "other": 3}, {"b": "two\nlines"}])
        == 'a,b\n1,2.5\n,"two\nlines"\n'
    )


def test_a_csv_file_is_written_whole_with_the_line_end_asked_for(tmp_path):
    write_csv(tmp_path / "new" / "a.csv", ["name"], [["größe"]])
    assert (tmp_path / "new" / "a.csv").read_bytes() == "name\r\ngröße\r\n".encode()
    write_csv(tmp_path / "new" / "a.csv", ["name"], iter([["x"]]), line_end="\n")
    assert (tmp_path / "new" / "a.csv").read_bytes() == b"name\nx\n"

    def rows():
        yield ["y"]
        raise ValueError

    with pytest.raises(ValueError):
        write_csv(tmp_path / "new" / "a.csv", ["name"], rows())
    assert (tmp_path / "new" / "a.csv").read_bytes() == b"name\nx\n"
    assert names(tmp_path / "new") == ["a.csv"]
