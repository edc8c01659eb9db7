"""Files of the feature cache: damage is found, one process builds, nothing is left behind."""

import errno
import json
import os
import resource
import subprocess
import sys
import zlib

import numpy as np
import pytest

from sarb.batches import cache_files
from sarb.batches.cache_files import (
    cache_note,
    checksum,
    new_array,
    only_builder,
    open_features,
    put_in_place,
)
from sarb.errors import SarbError
from tests.documentation.tools import ROOT
from tests.waiting import PATIENCE, wait_until


@pytest.fixture
def said():
    return []


@pytest.fixture
def array():
    return np.random.default_rng(0).normal(size=(6, 3, 2, 2)).astype(np.float16)


@pytest.fixture
def file(tmp_path, array):
    """A finished file with its record; image 4 could not be read."""
    np.save(tmp_path / "partial.npy", array)
    put_in_place(tmp_path / "partial.npy", tmp_path / "key.npy", {4: "bad.jpg: broken"})
    return tmp_path / "key.npy"


def test_what_was_put_in_place_is_found_again(file, array, said):
    found = open_features(file, 6, said.append)
    assert (
        np.array_equal(found.activations, array) and found.unreadable == {4: "bad.jpg: broken"} and said == []
    )
    assert sorted(path.name for path in file.parent.iterdir()) == ["key.json", "key.npy"]


@pytest.mark.parametrize("block", [1, 7, 1 << 24])
def test_the_checksum_is_that_of_the_whole_file(monkeypatch, file, block):
    monkeypatch.setattr(cache_files, "BLOCK", block)
    assert checksum(file) == zlib.crc32(file.read_bytes())


def test_no_file_is_no_damage(tmp_path, said):
    assert open_features(tmp_path / "none.npy", 6, said.append) is None and said == []


@pytest.mark.parametrize("position", [0, 60, 130, -1])
def test_a_single_wrong_bit_is_found_and_said(file, said, position):
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)
    assert open_features(file, 6, said.append) is None
    assert len(said) == 1 and str(file) in said[0] and "damaged" in said[0]


@pytest.mark.parametrize("length", [0, 5, 128, 200])
def test_a_truncated_file_is_not_used(file, said, length):
    file.write_bytes(file.read_bytes()[:length])
    assert open_features(file, 6, said.append) is None and "damaged" in said[0]


@pytest.mark.parametrize("length", [0, 5, 128, 200])
def test_a_truncated_file_of_old_is_not_adopted(file, said, length):
    file.with_suffix(".json").unlink()
    file.write_bytes(file.read_bytes()[:length])
    assert open_features(file, 6, said.append) is None and "damaged" in said[0]
    assert not file.with_suffix(".json").exists()


def test_a_file_of_another_number_of_images_is_not_used(file, said):
    assert open_features(file, 7, said.append) is None and "expected 7 maps" in said[0]


@pytest.mark.parametrize("record", ["{", '{"crc32": 5}', '{"crc32": "x", "unreadable": []}', "null", "7"])
def test_a_broken_record_is_damage(file, said, record):
    file.with_suffix(".json").write_text(record)
    assert open_features(file, 6, said.append) is None and "damaged" in said[0]


@pytest.mark.parametrize("record", [None, [], [[3, "c.jpg: broken"]]])
def test_a_file_without_a_checksum_is_adopted_once(file, said, array, record):
    place = file.with_suffix(".json")
    place.unlink() if record is None else place.write_text(json.dumps(record))
    found = open_features(file, 6, said.append)
    assert np.array_equal(found.activations, array) and said == []
    assert found.unreadable == dict(record or []) == open_features(file, 6, said.append).unreadable
    assert json.loads(place.read_text())["crc32"] == zlib.crc32(file.read_bytes())
    file.write_bytes(file.read_bytes()[:-1] + b"\x00")
    assert open_features(file, 6, said.append) is None


def test_a_new_record_does_not_make_an_old_file_good(monkeypatch, file, said, array):
    """Killed between record and file: what is there does not fit, and is computed again."""
    np.save(file.parent / "partial.npy", array + 1)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(cache_files, "write_json", lambda path, value: path.write_text(json.dumps(value)))
    with pytest.raises(KeyboardInterrupt):
        put_in_place(file.parent / "partial.npy", file, {})
    assert open_features(file, 6, said.append) is None


# one builder


def test_the_unfinished_file_goes_with_its_builder(tmp_path, said):
    with pytest.raises(KeyboardInterrupt), only_builder(tmp_path / "key.npy", said.append) as partial:
        assert partial.parent == tmp_path and partial.suffix != ".npy"
        partial.write_bytes(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [] and said == []


def test_what_a_killed_process_has_left_is_taken_over(tmp_path, said):
    (tmp_path / ".key.npy.partial").write_bytes(b"half")
    with only_builder(tmp_path / "key.npy", said.append) as partial:
        partial.write_bytes(b"whole")
        partial.replace(tmp_path / "key.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["key.npy"] and (
        tmp_path / "key.npy"
    ).read_bytes() == b"whole"


BUILDER = """
import sys
from pathlib import Path
from sarb.batches.cache_files import only_builder
from tests.waiting import wait_until
file, trace = Path(sys.argv[1]), Path(sys.argv[2])
def say(line):
    with trace.open("a") as out: out.write("waits\\n")
with only_builder(file, say) as partial:
    if not file.exists():
        with trace.open("a") as out: out.write("begin\\n")
        # builds until so many processes have said that they wait for it
        wait_until(lambda: trace.read_text().count("waits") >= int(sys.argv[3]), "others wait")
        partial.write_bytes(b"x" * 1000)
        with trace.open("a") as out: out.write("end\\n")
        if sys.argv[4] == "finish":
            partial.replace(file)
"""


def _start(*words):
    return subprocess.Popen([sys.executable, "-c", BUILDER, *map(str, words)], cwd=ROOT)


@pytest.mark.parametrize("end", ["finish", "fail"])
def test_processes_build_one_after_the_other(tmp_path, end):
    file, trace = tmp_path / "cache" / "key.npy", tmp_path / "trace"
    file.parent.mkdir()
    processes = [_start(file, trace, 3, end) for _ in range(4)]
    assert [process.wait(PATIENCE) for process in processes] == [0] * 4
    steps = [line for line in trace.read_text().split() if line != "waits"]
    assert steps == ["begin", "end"] * (1 if end == "finish" else 4)
    assert [path.name for path in file.parent.iterdir()] == (["key.npy"] if end == "finish" else [])


def test_a_killed_builder_leaves_nothing_that_is_used_and_no_lock(tmp_path):
    file, trace = tmp_path / "key.npy", tmp_path / "trace"
    killed = _start(file, trace, 99, "finish")
    wait_until(lambda: trace.exists() or killed.poll() is not None, "the first process builds")
    waiting = _start(file, trace, 0, "finish")
    wait_until(lambda: "waits" in trace.read_text() or waiting.poll() is not None, "the second one waits")
    assert (killed.poll(), waiting.poll()) == (None, None)
    killed.kill()
    killed.wait()
    assert waiting.wait(PATIENCE) == 0
    assert trace.read_text().split() == ["begin", "waits", "begin", "end"] and file.stat().st_size == 1000


def test_the_note_says_views_and_size():
    assert cache_note(0, 588_000_000) == "one cached plain view per image; the cache takes 588 MB"
    assert cache_note(1, 2_000_000) == "1 cached augmented view per image; the cache takes 2 MB"
    assert cache_note(4, 2_940_000_000) == "4 cached augmented views per image; the cache takes 2,940 MB"
    assert cache_note(0, 0) == "one cached plain view per image"


def test_a_new_array_has_all_of_its_space(tmp_path):
    array = new_array(tmp_path / "a.npy", (100, 8, 4, 4))
    assert array.shape == (100, 8, 4, 4) and array.dtype == np.float16 and not array.any()
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes
    array[:] = 1
    array.flush()
    assert (np.load(tmp_path / "a.npy") == 1).all()


@pytest.mark.parametrize("missing", [True, False])
def test_zeros_are_written_where_space_cannot_be_reserved(tmp_path, monkeypatch, missing):
    def unsupported(*_):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    if missing:
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", unsupported)
    monkeypatch.setattr("sarb.batches.cache_files.BLOCK", 1000)
    array = new_array(tmp_path / "a.npy", (7, 3, 5, 5))
    assert (tmp_path / "a.npy").stat().st_blocks * 512 >= array.nbytes
    assert np.load(tmp_path / "a.npy").shape == (7, 3, 5, 5) and not array.any()


def test_a_full_disk_is_named_with_what_is_needed_and_free(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(
        SarbError, match=r"a\.npy: No space left on device; it needs 0\.6 MB, and .* MB are free"
    ):
        new_array(tmp_path / "a.npy", (1000, 3, 10, 10))


def test_a_file_that_may_not_be_so_large_is_named(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*a\.npy'"):
            new_array(tmp_path / "a.npy", (1000, 3, 10, 10))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
