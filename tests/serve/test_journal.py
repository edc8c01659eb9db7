import json
import os

import pytest

from sarb.errors import SarbError
from sarb.serve.journal import Journal, SaveError


def test_lines_come_back_in_order(tmp_path):
    journal = Journal(tmp_path / "deep" / "a.jsonl")
    journal.append([{"label": "Käse"}, {"n": 2}])
    journal.append([{"n": 3}])
    journal.close()
    again = Journal(journal.path)
    assert list(again.read()) == [{"label": "Käse"}, {"n": 2}, {"n": 3}]
    again.close()


def test_what_a_crash_left_half_written_is_cut_off(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": 2', encoding="utf-8")
    journal = Journal(path)
    journal.append([{"n": 3}])
    journal.close()
    assert [json.loads(line)["n"] for line in path.read_text(encoding="utf-8").splitlines()] == [1, 3]


def test_a_strange_line_is_named(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\nhello\n', encoding="utf-8")
    journal = Journal(tmp_path / "a.jsonl")
    with pytest.raises(SarbError, match=r"a\.jsonl:2: not an answer"):
        list(journal.read())
    journal.close()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"answer": "yfs"}', "'answer' must be"),
        (b'{"file_name": 3}', "'file_name' must be text"),
        (b'{"label": "\xff"}', "codec can't decode"),
        (b'{"answers": ["yes"]}', "'answers' must be"),
        (b'{"n": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"who": "a", "who": "b"}', "'who' is there twice"),
        (b"[1]", "the content must be"),
    ],
)
def test_a_damaged_answer_is_named_and_never_taken_for_another(tmp_path, line, reason):
    (tmp_path / "a.jsonl").write_bytes(b'{"answer": "yes"}\n' + line + b"\n")
    journal = Journal(tmp_path / "a.jsonl")
    with pytest.raises(SarbError, match=rf"a\.jsonl:2: not an answer \(.*{reason}"):
        list(journal.read())
    journal.close()


def test_one_server_at_a_time(tmp_path):
    first = Journal(tmp_path / "a.jsonl")
    with pytest.raises(SarbError, match="another 'sarb serve' is using it"):
        Journal(tmp_path / "a.jsonl")
    first.close()
    Journal(tmp_path / "a.jsonl").close()


def test_forced_to_the_disk_before_it_returns(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "a.jsonl")
    forced = []
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(os.fstat(handle).st_size))
    journal.append([{"n": 1}])
    assert forced == [9]


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "a.jsonl")
    journal.append([{"n": 1}])

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SaveError, match=r"could not be saved \(No space left"):
            journal.append([{"n": 2}])
    journal.append([{"n": 3}])
    assert [entry["n"] for entry in journal.read()] == [1, 3]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SarbError, match="cannot be written"):
        Journal(tmp_path / "file" / "a.jsonl")
