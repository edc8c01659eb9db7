"""Whole grids, with real trainings of a few steps: resumed, parallel, with a failing cell, by the command
line.
"""

import csv
import os
import signal
import subprocess
import sys
from functools import partial

import psutil
import pytest

import sarb.jobs.local
import sarb.reproduce
from sarb.errors import ConfigError, DataError
from sarb.reproduce import QUICK, Plan, reproduce
from sarb.reproduce.cells import Cell
from tests.documentation.tools import ROOT, blocks, coarse_pictures, commands, parse
from tests.documentation.tools import run as run_command
from tests.waiting import PATIENCE, wait_until

ROWS = ["SSGRL", "Ours"]


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    coarse_pictures(monkeypatch)


@pytest.fixture(scope="module")
def plan_of(squares):
    def made(out, **changes):
        facts = {"source": str(squares / "labels.csv"), "data_options": {"encoding": "binary"}, "valid": 0.2}
        facts |= {"recipe": QUICK["recipe"], "out": str(out), "given": {"epochs": 4}}
        return Plan(**{**facts, **changes})

    return made


@pytest.fixture(scope="module")
def whole(plan_of, tmp_path_factory):
    """The folder of a grid of four cells that nothing disturbed, by one process."""
    out = tmp_path_factory.mktemp("grid") / "whole"
    outcome = reproduce("comparison", plan_of(out), rows=ROWS, shares=(0.5, 0.9), full=False, progress=False)
    assert outcome.failed == []
    return out


def lines(out):
    """The lines of results.csv without times, and with the folder of the grid called OUT."""
    with (out / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{**row, "seconds": "", "command": row["command"].replace(str(out), "OUT")} for row in rows]


def test_a_grid_leaves_one_line_per_cell_and_all_outputs(whole):
    found = lines(whole)
    assert [(line["row"], line["known"]) for line in found] == [
        (row, known) for row in ROWS for known in ("0.5", "0.9")
    ]
    for line in found:
        assert 0 < float(line["mAP"]) <= 100 and 0 < float(line["valid_mAP"]) <= 100
        assert line["command"].startswith("OMP_NUM_THREADS=1 sarb train") and line["threads"] == "1"
        assert parse(line["command"].split()[1:])
    assert int(found[2]["completed"]) > 0 == int(found[0]["completed"])
    for name in (
        "README.md",
        "tables/mAP.md",
        "tables/averages.tex",
        "figures/mAP-by-share.png",
        "figures/OF1-by-share.pdf",
    ):
        assert (whole / name).stat().st_size, name
    assert not (whole / "errors.csv").exists()


def test_finished_cells_keep_their_logs_but_not_their_weights(whole):
    for folder in (path for path in (whole / "runs").iterdir() if path.is_dir()):
        assert {"cell.json", "metrics.json", "steps.csv"} <= {file.name for file in folder.iterdir()}
        assert not [*folder.rglob("*.safetensors")]
        from sarb.report import write_report

        assert write_report(folder).is_file(), "the report can be made any time"
        return


def test_finished_cells_are_not_repeated(whole, plan_of, monkeypatch):
    before = (whole / "results.csv").read_bytes()
    monkeypatch.setattr(sarb.jobs.local, "Worker", lambda *_: pytest.fail("there is nothing to run"))
    reproduce("comparison", plan_of(whole), rows=ROWS, shares=(0.5, 0.9), full=False, progress=False)
    assert (whole / "results.csv").read_bytes() == before
    (whole / "results.csv").unlink()  # as if killed after the cells, before they were written down
    reproduce("comparison", plan_of(whole), rows=ROWS, shares=(0.5, 0.9), full=False, progress=False)
    assert (whole / "results.csv").read_bytes() == before


def test_other_settings_do_not_mix_with_what_is_there(whole, plan_of):
    changed = plan_of(whole, assignments=("Ours:method.alpha=0.3",))
    with pytest.raises(DataError, match="'Ours, 50 % known, seed 0' with other settings"):
        reproduce("comparison", changed, rows=ROWS, shares=(0.5,), full=False, progress=False)
    with pytest.raises(ConfigError, match="row 'Ours'"):
        reproduce(
            "comparison", plan_of(whole, assignments=("Ours:method.alfa=0.3",)), rows=ROWS, shares=(0.5,)
        )


def test_two_processes_and_a_resumed_run_give_the_numbers_of_one(whole, plan_of, squares, tmp_path):
    """Two jobs, killed without warning half-way, and started again by one."""
    out = tmp_path / "killed"
    words = [
        "reproduce",
        "comparison",
        "--data",
        squares / "labels.csv",
        "-o",
        "encoding=binary",
        "--valid",
        "0.2",
    ]
    words += [
        "--recipe",
        QUICK["recipe"],
        "--epochs",
        "4",
        "--rows",
        ",".join(ROWS),
        "--known",
        "0.5,0.9",
        "--no-full",
    ]
    command = [sys.executable, "-m", "sarb.cli", *map(str, words), "--jobs", "2", "--out", str(out)]
    command += ["--seeds", ",".join(map(str, range(40)))]  # too many to be done before it is killed
    grid = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: (out / "results.csv").exists() or grid.poll() is not None, "a cell is done")
        cells = psutil.Process(grid.pid).children(recursive=True)
    finally:
        grid.kill()
        grid.wait()
    assert grid.returncode == -signal.SIGKILL
    assert lines(out)
    wait_until(lambda: all(map(ended, cells)), "the processes of the cells end with their input")
    reproduce("comparison", plan_of(out), rows=ROWS, shares=(0.5, 0.9), full=False, progress=False)
    assert [line for line in lines(out) if line["seed"] == "0"] == lines(whole)


def ended(process):
    """Whether a process is over; in a container, nobody may ever clear away one that has lost its parent."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_cell_that_was_stopped_between_epochs_goes_on(whole, plan_of, tmp_path, monkeypatch):
    """A run of which two of four epochs are done is taken up, not begun again."""
    import sarb.training.loop
    from sarb.reproduce.cells import run_cell

    plan, cell = plan_of(tmp_path / "half"), Cell("Ours", 0.5, 0)
    epochs, fit = [], sarb.training.loop.Training._epoch

    def stop_in_third(self, epoch):
        epochs.append(epoch)
        if epochs == [0, 1, 2]:
            raise KeyboardInterrupt
        return fit(self, epoch)

    monkeypatch.setattr("sarb.training.loop.Training._epoch", stop_in_third)
    monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    with pytest.raises(KeyboardInterrupt):
        run_cell(plan, cell, "data")
    line = run_cell(plan, cell, "data")
    assert epochs == [0, 1, 2, 2, 3]
    undisturbed = next(other for other in lines(whole) if other["row"] == "Ours" and other["known"] == "0.5")
    same = [name for name in line if name not in ("seconds", "command", "data")]
    assert {name: str(line[name]) for name in same} == {name: undisturbed[name] for name in same}


def test_a_failing_cell_is_listed_and_does_not_stop_the_rest(squares, tmp_path, monkeypatch, capsys):
    words = [
        "sarb",
        "reproduce",
        "comparison",
        "--data",
        str(squares / "labels.csv"),
        "-o",
        "encoding=binary",
    ]
    words += [
        "--quick",
        "--known",
        "0.5",
        "--rows",
        "SSGRL,Ours",
        "--no-full",
        "--out",
        str(tmp_path / "grid"),
    ]
    assert run_command([*words, "--set", "SSGRL:backbone.weights=nowhere.pth"], monkeypatch) == 3
    said = capsys.readouterr().err
    assert "sarb: failed: SSGRL, 50 % known, seed 0: " in said and "nowhere.pth" in said
    assert [line["row"] for line in lines(tmp_path / "grid")] == ["Ours"]
    with (tmp_path / "grid/errors.csv").open(newline="") as file:
        (error,) = csv.DictReader(file)
    assert error["row"] == "SSGRL" and "nowhere.pth" in error["error"]
    assert "Failed cells" in (tmp_path / "grid/README.md").read_text(encoding="utf-8")
    assert run_command(words, monkeypatch) == 0, "what failed is tried again"
    assert [line["row"] for line in lines(tmp_path / "grid")] == ROWS
    assert not (tmp_path / "grid/errors.csv").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_with_130_and_keeps_what_is_done(squares, tmp_path):
    out = tmp_path / "grid"
    words = ["reproduce", "comparison", "--data", squares / "labels.csv", "-o", "encoding=binary", "--quick"]
    words += ["--rows", "SSGRL,Ours", "--seeds", ",".join(map(str, range(40))), "--out", out]
    listen = partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # a suite in the background ignores the signal
    grid = subprocess.Popen(
        [sys.executable, "-m", "sarb.cli", *map(str, words)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=listen,
    )
    wait_until(lambda: (out / "results.csv").exists() or grid.poll() is not None, "a cell is done")
    grid.send_signal(signal.SIGINT)
    _, said = grid.communicate(timeout=PATIENCE)
    assert grid.returncode == 130, said
    assert b"interrupted" in said
    assert lines(out)


def test_commands_of_the_page():
    found = [
        words
        for block in blocks(ROOT / "docs/reproduce.md")
        if block.language == "console"
        for words, _ in commands(block)
    ]
    assert len(found) >= 5
    for words in found:
        assert parse(words)


@pytest.mark.slow
def test_the_whole_quick_grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sarb", "reproduce", "figures", "--data", "demo", "--quick", "--jobs", "2", "--out", "grid"]
    assert run_command(words, monkeypatch) == 0
    found = lines(tmp_path / "grid")
    assert len(found) == 7 * 3 + 2
    assert {file.stem for file in (tmp_path / "grid/tables").iterdir()} >= {
        "averages",
        "mAP",
        "OF1-CF1",
        "gain",
        "room",
    }
    assert (tmp_path / "grid/figures/loss.pdf").is_file()
