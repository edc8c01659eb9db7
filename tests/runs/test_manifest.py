"""Checksums of the files of a folder: damage is found, and a kill at any moment leaves a folder that loads."""

import json
import multiprocessing
import threading

import pytest

from sarb.errors import DataNote
from sarb.runs import manifest as module
from sarb.runs.manifest import DamagedError, Manifest, state_of


@pytest.fixture
def folder(tmp_path):
    manifest = Manifest(tmp_path / "manifest.json")
    manifest.write(tmp_path / "a.npz", b"old")
    manifest.write(tmp_path / "b.json", b"{}")
    return tmp_path


def lines(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_a_line_per_file(folder):
    assert lines(folder) == {
        "a.npz": [state_of(folder / "a.npz")],
        "b.json": [state_of(folder / "b.json")],
        "format": 1,
    }
    Manifest(folder / "manifest.json").check(folder / "a.npz")
    Manifest(folder / "manifest.json").check(folder / "not there, not listed")


@pytest.mark.parametrize("content", [b"oldd", b"olf", b"", None])
def test_damage_is_named_with_what_helps(folder, content):
    if content is None:
        (folder / "a.npz").unlink()
    else:
        (folder / "a.npz").write_bytes(content)
    with pytest.raises(
        DamagedError, match=r"a\.npz: is (damaged|missing).*or run it again.*delete its line in"
    ):
        Manifest(folder / "manifest.json").check(folder / "a.npz", "run it again")


def test_any_line_can_be_deleted_by_hand(folder):
    text = (folder / "manifest.json").read_text().splitlines()
    for name in ("a.npz", "b.json"):
        (folder / name).write_bytes(b"changed")
        left = [line for line in text if name not in line]
        assert len(left) == len(text) - 1
        (folder / "manifest.json").write_text("\n".join(left))
        Manifest(folder / "manifest.json", folder / name).check(folder / name)


def test_a_folder_without_manifest_says_so_once(tmp_path, recwarn):
    (tmp_path / "a.npz").write_bytes(b"old")
    for _ in range(3):
        Manifest(tmp_path / "manifest.json").check(tmp_path / "a.npz")
    (note,) = [each for each in recwarn if each.category is DataNote]
    assert str(note.message) == f"{tmp_path}: has no manifest.json, so damage cannot be detected"


def test_the_rest_of_an_old_folder_stays_unlisted(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"old")
    Manifest(tmp_path / "manifest.json").write(tmp_path / "b.json", b"{}")
    assert set(lines(tmp_path)) == {"b.json", "format"}
    with pytest.warns(DataNote, match=r"does not list a\.npz"):
        Manifest(tmp_path / "manifest.json").check(tmp_path / "a.npz")


@pytest.mark.parametrize("action", ["write", "first write", "remove"])
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(folder, monkeypatch, action):
    """Stop before every write of a file; what is there must pass the check."""
    name = {"write": "a.npz", "first write": "c.npz", "remove": "b.json"}[action]
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    seen = set()
    for stop in range(6):
        for each in folder.iterdir():
            each.unlink()
        for each, content in before.items():
            (folder / each).write_bytes(content)
        done = killed_at(stop, folder / name, action, monkeypatch)
        Manifest(folder / "manifest.json").check(folder / name)
        seen.add((folder / name).read_bytes() if (folder / name).exists() else None)
        if done:
            assert len(lines(folder).get(name, [1])) == 1
            break
    assert done and seen == {before.get(name), None if action == "remove" else b"new"}


def killed_at(stop, file, action, monkeypatch):
    """Do something, but stop before the write with this number; say whether it came to its end."""
    calls = []

    class KilledError(BaseException):
        pass

    def counted(real):
        def call(*arguments, **options):
            if len(calls) == stop:
                raise KilledError
            calls.append(real)
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(module, "atomic_write", counted(module.atomic_write))
        patch.setattr(type(file), "unlink", counted(type(file).unlink)) if action == "remove" else None
        try:
            manifest = Manifest(file.parent / "manifest.json")
            manifest.remove(file) if action == "remove" else manifest.write(file, b"new")
        except KilledError:
            return False
    return True


def test_a_reader_that_meets_a_writer_sees_no_damage(folder):
    manifest = Manifest(folder / "manifest.json")
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            manifest.write(folder / "a.npz", str(number).encode())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            Manifest(folder / "manifest.json").check(folder / "a.npz")
    finally:
        stop.set()
        writer.join()


def _write_many(folder, number):
    for each in range(20):
        Manifest(folder / "manifest.json").write(folder / "shared.npz", f"{number} {each}".encode())
        Manifest(folder / "manifest.json").write(folder / f"{number}.npz", f"{each}".encode())


def test_writers_at_the_same_time_lose_no_line(folder):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(folder, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    for name in ("shared.npz", "0.npz", "1.npz", "2.npz"):
        assert lines(folder)[name] == [state_of(folder / name)]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a.npz": 3, "format": 1}', '{"a.npz": [{}], "format": 1}', "{}"]
)
def test_a_damaged_manifest_is_named(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(DamagedError, match=r"manifest\.json: .*delete this file to read it unchecked"):
        Manifest(folder / "manifest.json").check(folder / "a.npz")
