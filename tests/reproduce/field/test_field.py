"""A small field, with real trainings in processes of its own: killed, continued, with a failing row, and its page."""

import csv
import shutil

import pytest

from sarb.errors import ConfigError, DataError
from sarb.progress import Progress
from sarb.reproduce import QUICK, Plan
from sarb.reproduce.field import Field, reproduce_field
from sarb.reproduce.field import run as run_module
from sarb.reproduce.field.cost import measured
from tests.documentation.tools import coarse_pictures

pytestmark = pytest.mark.slow
ROWS = ("AN", "EPR")


@pytest.fixture(scope="module")
def plan_of(squares):
    def made(out, **changes):
        facts = {"source": str(squares / "labels.csv"), "data_options": {"encoding": "binary"}}
        facts |= {"recipe": QUICK["recipe"], "out": str(out), "given": {"epochs": 2}}
        return Plan(**{**facts, **changes})

    return made


def run(plan, rows=ROWS, **options):
    given = {"shares": (0.5,), "seeds": (0, 1), "trials": 2, "progress": False, **options}
    return reproduce_field(plan, rows=rows, **given)


@pytest.fixture(scope="module")
def whole(plan_of, tmp_path_factory):
    out = tmp_path_factory.mktemp("field") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        coarse_pictures(patch)
        _, failed = run(plan_of(out))
    assert failed == []
    return out


def table(file):
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_every_row_gets_the_same_trials_and_the_best_is_tested(whole):
    tried = table(whole / "trials.csv")
    assert len(tried) == 2 * 2 * 2 and {line["trial"] for line in tried} == {"0", "1"}
    cells = table(whole / "results.csv")
    assert len(cells) == 2 * 2 + 2
    for cell in cells:
        mine = [line for line in tried if all(line[name] == cell[name] for name in ("row", "setting"))]
        best = max(mine, key=lambda line: float(line["valid_mAP"]))
        assert (
            cell["options"] == best["options"] and cell["options"].split()[0].split("=")[1] in cell["command"]
        )
        assert float(cell["cpu_seconds"]) > 0 and float(cell["mAP"]) > 0
        assert ("--single-positive" in cell["command"]) == (cell["setting"] == "single-positive")
    counted = [cell for cell in cells if cell["row"] == "EPR" and cell["setting"] == "single-positive"]
    assert "method.positives=" in counted[0]["command"]


def test_the_page_has_all_parts(whole):
    page = (whole / "README.md").read_text(encoding="utf-8")
    for part in (
        "6 of 6 cells",
        "The field, 50 % known",
        "The field, single-positive",
        "What a training costs",
    ):
        assert part in page
    for part in ("What is inside the noise", "mean rank", "## Trials", "## Published numbers", "second-hand"):
        assert part in page
    assert (whole / "figures" / "ranks.png").is_file() and (whole / "figures" / "mAP.png").is_file()
    assert {line["row"] for line in table(whole / "standing.csv")} == set(ROWS)


def test_the_ranking_needs_no_run_folder_once_it_was_made(whole, plan_of, tmp_path, monkeypatch):
    coarse_pictures(monkeypatch)
    out = tmp_path / "elsewhere"
    out.mkdir()
    for name in ("results.csv", "trials.csv", "resamples.csv"):
        shutil.copy(whole / name, out)
    run(plan_of(out), run=False)
    assert table(out / "standing.csv") == table(whole / "standing.csv")
    (out / "resamples.csv").write_text("setting,row,known,seed,options,mAP\npartial,AN,0.5,0,lr=1,high\n")
    with pytest.raises(DataError, match=r"resamples\.csv: line 2"):
        run(plan_of(out), run=False)


def test_finished_trainings_are_kept_and_a_lost_line_comes_back(whole, plan_of, tmp_path, monkeypatch):
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    lines = (out / "results.csv").read_text(encoding="utf-8").splitlines()
    (out / "results.csv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def never(*given, **options):
        raise AssertionError("a finished training ran again")

    monkeypatch.setattr(run_module, "run_grid", never)
    field = Field(plan_of(out), ROWS, shares=(0.5,), seeds=(0, 1), number=2)
    field.run(1, Progress(False))
    assert len(table(out / "results.csv")) == len(lines) - 1


def test_a_failing_row_does_not_stop_the_others(plan_of, tmp_path, monkeypatch):
    coarse_pictures(monkeypatch)
    plan = plan_of(tmp_path / "out", assignments=("EPR:method.positives=99",))
    page, failed = run(plan, settings=("partial",), seeds=(0,), trials=1)
    assert {job.row for job, _ in failed} == {"EPR"}
    assert "method.positives" in page.read_text(encoding="utf-8")
    assert [line["row"] for line in table(tmp_path / "out" / "results.csv")] == ["AN"]


def test_one_trial_is_none_and_the_page_says_so(whole, plan_of, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("results.csv", "trials.csv", "resamples.csv"):
        (out / name).write_bytes((whole / name).read_bytes())
    options = {"settings": ("partial",), "seeds": (0,)}
    before = table(out / "trials.csv")
    page, failed = run(plan_of(out), rows=["WAN"], trials=1, **options)
    text = page.read_text(encoding="utf-8")
    assert not failed and "1 of 1 cells are finished" in text
    assert "There are no trials: every row is trained with its published options." in text
    assert table(out / "trials.csv") == before
    page, _ = run(plan_of(out), rows=[*ROWS, "WAN"], run=False, **options)
    assert "**Not all trials, so published options: WAN.**" in page.read_text(encoding="utf-8")


def test_the_page_names_the_setting_in_which_a_row_lacks_trials(whole, plan_of, tmp_path):
    for name in ("results.csv", "resamples.csv"):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    lines = (whole / "trials.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("single-positive,AN,")]
    assert len(kept) == len(lines) - 2
    (tmp_path / "trials.csv").write_text("".join(kept), encoding="utf-8")
    page, _ = run(plan_of(tmp_path), run=False)
    assert "so published options: AN (single-positive).**" in page.read_text(encoding="utf-8")


def test_what_is_given_twice_runs_once_and_a_page_without_trials_has_no_table_of_them(plan_of, tmp_path):
    plan = plan_of(tmp_path / "out")
    twice = {"rows": ("AN", "EPR", "AN"), "settings": ("partial", "partial"), "seeds": (0, 0)}
    field = Field(plan, **twice, shares=(0.5, 0.5), number=2)
    assert len(field.cells) == 2 and len(field.trials) == 4
    page, failed = reproduce_field(plan, **twice, shares=(0.5,), trials=1, run=False, progress=False)
    assert failed == [] and "## Trials" not in page.read_text(encoding="utf-8")


def test_other_settings_are_not_mixed(whole, plan_of):
    with pytest.raises(DataError, match="other settings"):
        Field(plan_of(whole, given={"epochs": 3}), ROWS)
    with pytest.raises(ConfigError, match="trials"):
        Field(plan_of(whole), ROWS, number=0)


def test_cost():
    with measured() as found:
        block = bytearray(50_000_000)
        block[::4096] = b"x" * len(block[::4096])
    assert found["cpu_seconds"] >= 0 and found["peak_mb"] > 50
