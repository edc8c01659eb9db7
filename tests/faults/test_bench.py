"""The run over all faults: goes on where it stopped, and counts what broke."""

import re
import signal
from pathlib import Path

import pytest

from tests.faults.bench import BrokenPromiseError, Kind, kinds, rows, run_all, table
from tests.faults.children import sarb, start, through_the_shell


def test_goes_on_where_it_stopped_and_counts(tmp_path, capsys):
    ran = []

    def case(folder, seed):
        ran.append(seed)
        if seed == 1:
            raise KeyboardInterrupt
        if seed == 2:
            raise BrokenPromiseError("a file was lost")
        return "refused"

    kind = Kind("toy", "Nothing is lost.", 4, 1, case)
    with pytest.raises(KeyboardInterrupt):
        run_all([kind], tmp_path / "faults.csv")
    ran.clear()
    kind = Kind("toy", "Nothing is lost.", 4, 1, lambda folder, seed: case(folder, 3 if seed == 1 else seed))
    assert not run_all([kind], tmp_path / "faults.csv")
    assert ran == [3, 2, 3]
    assert [row["outcome"] for row in rows(tmp_path / "faults.csv")] == [
        "refused",
        "refused",
        "broken",
        "refused",
    ]
    assert "| toy | Nothing is lost. | 4 | 3 refused | 1 |" in table(rows(tmp_path / "faults.csv"), [kind])


def test_every_kind_has_short_cases_and_a_promise():
    for kind in kinds():
        assert 0 < kind.short <= kind.cases and kind.promise.endswith("."), kind.name


def test_the_page_shows_what_was_run():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "reliability.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- table:faults -->\n(.*?)\n<!-- /table -->", page, re.S)
    done = rows(root / "results" / "faults" / "faults.csv")
    assert done and shown and shown[1] == table(done, kinds())


def test_a_forked_command_is_the_command(tmp_path):
    here, there = (run(["list", "methods"], tmp_path) for run in (sarb, through_the_shell))
    assert here.code == there.code == 0 and here.out == there.out and "sarb" in here.out
    wrong = sarb(["trian"], tmp_path)
    assert wrong.code == 2 and "train" in wrong.err


def _sleep():
    signal.pause()


def test_a_forked_command_can_be_killed(tmp_path):
    running = start(["list"], tmp_path, before=_sleep)
    assert running.alive() and running.kill().code == -signal.SIGKILL
