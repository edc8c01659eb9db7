"""Files are written whole or not at all."""

import contextlib
import csv
import errno
import json
import os
import resource
import socket
import stat
import sys
from functools import partial
from pathlib import Path

import pytest

from sarb.errors import SarbError
from sarb.files import (
    UNFINISHED,
    atomic_write,
    atomic_writes,
    cache_dir,
    check_writable,
    csv_text,
    excel_safe,
    guarded,
    is_stdout,
    near_path,
    open_regular,
    open_text,
    read_json,
    unguarded,
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


def test_files_that_belong_together_appear_together(tmp_path):
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    with atomic_writes(one, other) as (first, second):
        first.write("1")
        second.write("2")
        assert not one.exists() and not other.exists()
    assert one.read_text() + other.read_text() == "12"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        # the text is still in Python's buffer when the block ends
        with pytest.raises(OSError, match=r"one\.txt"), atomic_writes(one, other) as (first, second):
            first.write("11")
            second.write("2")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert one.read_text() + other.read_text() == "12" and len(list(tmp_path.iterdir())) == 2


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


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "a.txt").write_text("old")
    (tmp_path / "link").symlink_to("disk/a.txt")
    (tmp_path / "link-to-link").symlink_to(tmp_path / "link")
    with atomic_write(tmp_path / "link-to-link") as file:
        file.write("new")
    assert (tmp_path / "disk" / "a.txt").read_text() == "new"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "link-to-link").is_symlink()
    assert names(tmp_path / "disk") == ["a.txt"]


def test_the_target_of_a_dangling_link_is_made(tmp_path):
    (tmp_path / "link").symlink_to("new/a.txt")
    write_json(tmp_path / "link", 1)
    assert read_json(tmp_path / "new" / "a.txt") == 1 and (tmp_path / "link").is_symlink()


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(SarbError, match="a: its symbolic links lead in a circle"):
        write_json(tmp_path / "a", 1)


def special(tmp_path, kind):
    """Make something that is not a regular file."""
    path = tmp_path / "out.csv"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
            server.bind(path.name)  # a whole path may be too long for a socket
    else:
        path.symlink_to("/dev/null")
    return path


@pytest.mark.parametrize("kind", ["a folder", "a named pipe", "a socket", "a device"])
def test_what_is_not_a_file_is_refused_and_left_alone(tmp_path, kind):
    path = special(tmp_path, kind)
    before = path.stat()
    with pytest.raises(SarbError, match=rf"out\.csv: is {kind}, not a file"):
        write_json(path, 1)
    assert path.stat().st_mode == before.st_mode and path.stat().st_ino == before.st_ino
    assert names(tmp_path) == ["out.csv"]


def test_an_open_file_of_the_process_is_refused(tmp_path):
    with (tmp_path / "log").open("w") as log:
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{log.fileno()}")
        for path in (f"/dev/fd/{log.fileno()}", tmp_path / "link", "/dev/stderr"):
            with pytest.raises(SarbError, match="is a stream, not a file"):
                write_json(path, 1)
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("path", ["-", Path("-"), "/dev/stdout", Path("/dev/stdout")])
def test_stdout_prints(path, capsys):
    assert is_stdout(path)
    write_csv(path, ["a", "b"], [[1, "é"]], line_end="\n")
    with atomic_write(path, "wb") as file:
        file.write(b"bytes\n")
    assert capsys.readouterr().out == "a,b\n1,é\nbytes\n"


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_an_existing_file_keeps_its_permissions(tmp_path, umask, mode):
    umask(0o022)
    (tmp_path / "a.json").touch()
    (tmp_path / "a.json").chmod(mode)
    write_json(tmp_path / "a.json", 1)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == mode


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    write_json(tmp_path / "a.json", 1)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write to any file
    with pytest.raises(PermissionError, match=r"a\.json"):
        write_json(tmp_path / "a.json", 2)
    assert read_json(tmp_path / "a.json") == 1


def test_an_error_of_the_system_names_the_file_that_the_user_knows(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    write_json(tmp_path / "a.json", "old")
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError) as raised:
            write_json(tmp_path / "a.json", "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(tmp_path / "a.json"))
    assert read_json(tmp_path / "a.json") == "old" and names(tmp_path) == ["a.json"]


def test_an_error_about_another_file_keeps_its_name(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, atomic_write(tmp_path / "a.txt"):
        (tmp_path / "source").read_text()
    assert raised.value.filename == str(tmp_path / "source")


def test_old_left_overs_of_a_killed_process_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("sarb.files._swept", set())
    old, young, folder = (tmp_path / UNFINISHED.format(name) for name in ("1", "2", "3"))
    folder.mkdir()
    for path in (old, young, folder / "model", tmp_path / ".mine.partial"):
        path.touch()
    for path in (old, folder, tmp_path / ".mine.partial"):
        os.utime(path, (0, 0))
    write_json(tmp_path / "a.json", 1)
    assert names(tmp_path) == [".mine.partial", young.name, "a.json"]


def test_writable_is_known_before(tmp_path, monkeypatch):
    check_writable(tmp_path / "new" / "folder" / "a.csv")
    assert names(tmp_path) == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):
        check_writable(tmp_path / "file" / "a.csv")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match=r"a\.csv"):
        check_writable(tmp_path / "a.csv")


@pytest.fixture(params=["pipe", "device", "folder", "link to pipe"])
def no_file(request, tmp_path):
    path = tmp_path / "special"
    if request.param == "folder":
        path.mkdir()
    elif request.param == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
    return path


def test_only_regular_files_are_opened_for_reading(no_file, monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("it was opened"))
    for opening in (open_regular, partial(open_text, encoding="utf-8")):
        with pytest.raises(OSError, match=r"not a file|directory"):
            opening(no_file)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_block(tmp_path, monkeypatch):
    """Between looking and opening, somebody may put a pipe there."""
    file = tmp_path / "file"
    file.write_text("x")
    as_before = file.stat()
    file.unlink()
    os.mkfifo(file)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: as_before)
    with pytest.raises(OSError, match="named pipe"):
        open_regular(file)


FORMULAS = ["=1+1", "+a", "-a", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0", "-1+1", "'=1", "''@x"]
PLAIN = ["dog", "-1", "+1.5", "-1e-5", "", "1-2", "'", "'quoted'", "-inf"]


def test_formulas_get_an_apostrophe_and_lose_it_again():
    assert [guarded(text) for text in FORMULAS] == [f"'{text}" for text in FORMULAS]
    assert [guarded(text) for text in PLAIN] == PLAIN
    assert [unguarded(guarded(text)) for text in (*FORMULAS, *PLAIN)] == [*FORMULAS, *PLAIN]


def test_csv_holds_what_was_given_unless_excel_safe_is_asked_for():
    rows = [["=a.jpg", "-1", -1, None]]
    assert csv_text(["file_name", "=x", "c", "d"], rows) == "file_name,=x,c,d\n=a.jpg,-1,-1,\n"
    with excel_safe():
        assert csv_text(["file_name", "=x", "c", "d"], rows) == "file_name,'=x,c,d\n'=a.jpg,-1,-1,\n"
    assert csv_text(["=x"], []) == "=x\n"


def test_a_terminal_shows_control_characters_instead_of_obeying_them(monkeypatch, capsys):
    for terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
        write_csv("-", ["file_name"], [["\x1b[2J.jpg"]], line_end="\n")
        assert ("\x1b" in capsys.readouterr().out) is not terminal
