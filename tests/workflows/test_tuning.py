"""``sarb tune``: whole searches of trainings of a second, also killed, pruned and wrong."""

import csv
import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sarb
import sarb.tuning.trial
import sarb.workflows.tuning
from sarb.errors import ConfigError, SarbError
from sarb.jobs.pool import Pool
from sarb.labels import LabelMatrix
from sarb.reproduce import QUICK
from sarb.settings import resolve
from sarb.tuning.space import default_space, read_space
from sarb.tuning.trial import Base, answer
from tests.documentation.tools import ROOT, blocks, coarse_pictures, commands, hurry, parse
from tests.documentation.tools import run as run_command
from tests.waiting import wait_until

pytest.importorskip("optuna", reason="needs the extra [tune]: pip install 'sarb[tune]'")

TRIALS = 6


class Here:
    """Runs trials in this process: nothing has to be imported for each search."""

    def run(self, task):
        return answer(json.loads(json.dumps(task)))

    def rest(self):
        pass

    def stop(self):
        pass


@pytest.fixture(autouse=True)
def here(monkeypatch):
    coarse_pictures(monkeypatch)
    monkeypatch.setattr(sarb.workflows.tuning, "Pool", lambda _, jobs, lost: Pool(Here, 1, lost))


@pytest.fixture(scope="module")
def options(squares):
    facts = {"source": str(squares / "labels.csv"), "data_options": {"encoding": "binary"}}
    facts |= {"recipe": QUICK["recipe"], "method": "sarb", "known": 0.7, "progress": False}
    return facts | {"search": {"lr": "1e-4..1e-1:log", "method.start": "0,1"}, "trials": TRIALS}


@pytest.fixture(scope="module")
def whole(options, tmp_path_factory):
    """A search that nothing disturbed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sarb.workflows.tuning, "Pool", lambda _, jobs, lost: Pool(Here, 1, lost))
        return sarb.tune(out=tmp_path_factory.mktemp("tune") / "whole", **options)


def lines(out):
    """The lines of trials.csv without times, and with the folder called OUT."""
    with (out / "trials.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    changed = {"seconds": ""}
    return [
        {**row, **changed, **{name: row[name].replace(str(out), "OUT") for name in ("folder", "command")}}
        for row in rows
    ]


def weights(folder):
    return hashlib.sha256((folder / "model/model.safetensors").read_bytes()).hexdigest()


def test_a_search_leaves_one_line_per_trial_and_all_outputs(whole):
    out = whole.folder
    found = lines(out)
    assert [row["trial"] for row in found] == [str(number) for number in range(TRIALS)]
    assert {row["state"] for row in found} == {"finished"} and {row["seed"] for row in found} == {"0"}
    assert all(0 < float(row["valid_mAP"]) <= 100 for row in found)
    assert len({row["lr"] for row in found}) == TRIALS and {row["method.start"] for row in found} == {
        "0",
        "1",
    }
    for name in ("best.toml", "README.md", "history.png", "study.jsonl"):
        assert (out / name).stat().st_size, name
    assert whole.best.value == max(trial.value for trial in whole.trials)
    assert f"trial {whole.best.number}, mAP {whole.best.value:.2f}" in (out / "README.md").read_text("utf-8")


def test_no_trial_was_tested_and_only_the_best_keeps_its_weights(whole):
    for trial in whole.trials:
        files = {file.name for file in trial.folder.iterdir()}
        assert {"config.json", "log.csv", "labels.npz"} <= files
        assert not {"metrics.json", "scores.npz", "test_labels.npz"} & files
        assert (trial.folder / "model").is_dir() is (trial is whole.best)
        assert not (trial.folder / "checkpoint").exists()


def test_test_images_are_not_even_opened(options, tmp_path, monkeypatch):
    """A test image that cannot be read disturbs nothing."""
    source = Path(options["source"])
    rows = source.read_text(encoding="utf-8").replace(",test,", ",valid,")  # of all images but one
    kept = [row for row in rows.splitlines() if row][:-1]
    gone = ["gone.jpg,test,1,1,1,1,1"]
    table = tmp_path / "labels.csv"
    table.write_text("\n".join([*kept, *gone]) + "\n", encoding="utf-8")
    for image in source.parent.glob("*.jpg"):
        (tmp_path / image.name).symlink_to(image)
    (tmp_path / "gone.jpg").write_bytes(b"not an image")
    found = sarb.tune(**{**options, "source": str(table), "trials": 1, "out": tmp_path / "out"})
    assert found.best.value > 0
    assert json.loads((found.best.folder / "config.json").read_text())["data"]["valid_images"] == 11
    assert "those of the data" in found.page.read_text(encoding="utf-8")


def test_the_value_is_that_of_the_known_labels_of_the_validation_images(whole, options):
    best = whole.best
    model = sarb.load_model(best.folder)
    data = sarb.load(options["source"], **options["data_options"]).hide(0.7, 0, False)
    trained = set(LabelMatrix.load(best.folder / "labels.npz").paths)
    held = [row for row, path in enumerate(data.train.labels.paths) if path not in trained]
    assert len(held) == 7 and (data.train.labels.values[held] == 0).any()
    report = sarb.evaluate(model, data.train.take(held))
    assert report.metrics["mAP"] == pytest.approx(best.value, abs=1e-4)


def test_the_recipe_repeats_the_best_trial(whole, options, monkeypatch, tmp_path):
    settings = json.loads((whole.best.folder / "config.json").read_text())["settings"]
    assert resolve(whole.recipe) == resolve({}, **settings)
    page = whole.page.read_text(encoding="utf-8")
    shown = next(line for line in page.splitlines() if " sarb train " in line).removeprefix("$ ").split()
    assert shown[0] == "OMP_NUM_THREADS=1" and parse(shown[1:])
    monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    words = [*shown[1:-1], str(tmp_path / "best"), "-o", "encoding=binary"]
    assert run_command(words, monkeypatch) == 0
    assert weights(tmp_path / "best") == weights(whole.best.folder)
    assert (tmp_path / "best/metrics.json").is_file(), "the recipe is tested"


def test_the_command_of_a_trial_repeats_it(whole, monkeypatch, tmp_path):
    monkeypatch.setattr("sarb.workflows.training.write_report", lambda folder: folder)
    words = whole.best.command.split()[1:]
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert run_command(words, monkeypatch) == 0
    assert weights(tmp_path / "again") == weights(whole.best.folder)


def test_the_same_command_repeats_nothing_and_more_trials_go_on(whole, options, tmp_path, monkeypatch):
    out = tmp_path / "part"
    sarb.tune(out=out, **{**options, "trials": 2})
    before = lines(out)
    trained = []
    run = sarb.tuning.trial.start_run
    monkeypatch.setattr(
        sarb.tuning.trial,
        "start_run",
        lambda *given, **named: trained.append(named["out"].name) or run(*given, **named),
    )
    sarb.tune(out=out, **{**options, "trials": 2})
    assert trained == [] and lines(out) == before
    sarb.tune(out=out, **options)
    assert trained == [f"trial-000{number}" for number in range(2, TRIALS)]
    assert lines(out) == lines(whole.folder)


def test_a_search_that_is_killed_at_any_point_goes_on(whole, options, tmp_path, monkeypatch):
    """Interrupted within a training, between training and journal, and after the journal."""
    out = tmp_path / "stopped"
    told, told_before = sarb.tuning.study.Study.tell, []

    def stop_before_second(self, *given, **named):
        told_before.append(given[0])
        if len(told_before) == 2:
            raise KeyboardInterrupt
        return told(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(sarb.tuning.study.Study, "tell", stop_before_second)
        with pytest.raises(KeyboardInterrupt):
            sarb.tune(out=out, **options)
    assert [row["state"] for row in lines(out)] == ["finished"], "what ended is written after each trial"
    with monkeypatch.context() as patch:
        patch.setattr(
            sarb.workflows.tuning._Tuning, "_write_trials", lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            sarb.tune(out=out, **options)
    sarb.tune(out=out, **options)
    assert lines(out) == lines(whole.folder)


@pytest.mark.slow
def test_a_killed_driver_loses_and_repeats_no_trial(whole, options, tmp_path):
    """SIGKILL, with two trials under way, each in its own process; then the same command again."""
    out = tmp_path / "killed"
    words = [
        "tune",
        options["recipe"],
        "--data",
        options["source"],
        "-o",
        "encoding=binary",
        "--method",
        "sarb",
    ]
    words += [
        "--known",
        "0.7",
        "--search",
        "lr=1e-4..1e-1:log",
        "--search",
        "method.start=0,1",
        "--jobs",
        "2",
    ]
    command = [sys.executable, "-m", "sarb.cli", *words, "--out", str(out)]
    search = subprocess.Popen([*command, "--trials", "200"], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: (out / "trials.csv").exists() or search.poll() is not None, "a trial has ended")
    finally:
        search.kill()
        search.wait()
    assert search.returncode == -signal.SIGKILL
    first = [row for row in lines(out) if row["state"] == "finished"]
    times = {
        row["folder"]: (out / Path(row["folder"]).name / "config.json").stat().st_mtime_ns for row in first
    }
    done = subprocess.run([*command, "--trials", "8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = lines(out)
    assert len(found) == 8 and {row["state"] for row in found} == {"finished"}
    assert first and [row for row in found if row["trial"] in {kept["trial"] for kept in first}] == first
    for folder, time in times.items():
        assert (out / Path(folder).name / "config.json").stat().st_mtime_ns == time, "not trained again"
    undisturbed = tmp_path / "undisturbed"
    again = [*command[:-1], str(undisturbed), "--trials", "8", "-q"]
    subprocess.run(again, check=True, stderr=subprocess.DEVNULL)
    assert found == lines(undisturbed)


def test_a_failing_trial_is_kept_with_its_reason(options, tmp_path):
    bad = {**options, "search": ["backbone.weights=none,nowhere.pth"], "sampler": "grid", "trials": None}
    found = sarb.tune(out=tmp_path / "out", **bad)
    assert [trial.state for trial in found.trials] == ["finished", "failed"]
    assert "nowhere.pth" in found.trials[1].error and found.best.number == 0


def test_a_backbone_that_cannot_be_made_costs_no_trial(options, tmp_path):
    bad = {**options, "out": tmp_path / "out", "trials": 1}
    with pytest.raises(ConfigError, match=r"nowhere\.pth: no such weight file"):
        sarb.tune(**bad, backbone_options={"weights": "nowhere.pth"})
    with pytest.raises(ConfigError, match="backbone 'resnet18' has no weights installed"):
        sarb.tune(**bad, backbone="resnet18")
    assert [trial.state for trial in sarb.tune(**bad).trials] == ["finished"]


def test_without_any_finished_trial_it_says_where_to_look(options, tmp_path):
    bad = {**options, "search": ["backbone.weights=nowhere.pth,other.pth"], "sampler": "grid", "trials": None}
    with pytest.raises(SarbError, match=r"no trial has finished; trials\.csv has the reasons.*nowhere\.pth"):
        _ = sarb.tune(out=tmp_path / "out", **bad).best


def test_a_lost_trial_is_not_a_failed_one(options, tmp_path, monkeypatch):
    class Away(Here):
        def run(self, task):
            return {"error": "out of memory?", "died": True}

    with monkeypatch.context() as patch:
        patch.setattr(sarb.workflows.tuning, "Pool", lambda _, jobs, lost: Pool(Away, 1, lost))
        found = sarb.tune(out=tmp_path / "out", **{**options, "trials": 1})
    assert found.trials[0].state == "running" and "given up after 3 tries" in found.lost[0]
    assert sarb.tune(out=tmp_path / "out", **{**options, "trials": 1}).best.number == 0


def test_pruned_trials_end_early_and_are_never_the_best(options, tmp_path, monkeypatch):
    monkeypatch.setattr("sarb.tuning.pruning.FIRST", 2)
    given = {
        **options,
        "search": ["lr=0.003,0.002,1e-9,1e-8"],
        "sampler": "grid",
        "trials": None,
        "epochs": 3,
    }
    found = sarb.tune(out=tmp_path / "out", prune=True, **given)
    states = [trial.state for trial in found.trials]
    assert states[:2] == ["finished", "finished"] and "pruned" in states[2:]
    pruned = next(trial for trial in found.trials if trial.state == "pruned")
    with (pruned.folder / "log.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) < 3
    assert found.best.number in (0, 1)


def test_all_mistakes_come_in_one_message(options, tmp_path):
    wrong = {**options, "search": ["lrr=1..2"], "metric": "mPA", "sampler": "tpee", "valid": 2.0}
    with pytest.raises(ConfigError) as caught:
        sarb.tune(out=tmp_path / "out", engine="rya", jobs=0, **wrong)
    said = str(caught.value)
    for part in (
        "'mAP'",
        "'tpe'",
        "'lr'",
        "'ray'",
        "jobs must be at least 1",
        "valid must be between 0 and 1",
    ):
        assert part in said
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_pruned(options, tmp_path):
    with pytest.raises(ConfigError, match="prune follows one of mAP"):
        sarb.tune(out=tmp_path / "out", prune=True, metric="CP", **options)
    fitted = {**options, "method": "auto", "recipe": None, "search": ()}
    with pytest.raises(ConfigError, match="method auto is fitted, it has no epochs"):
        sarb.tune(out=tmp_path / "out", prune=True, **fitted)


def test_another_search_in_the_same_folder_is_refused(whole, options):
    from filelock import FileLock

    with FileLock(whole.folder / ".lock"), pytest.raises(SarbError, match="another search is at work"):
        sarb.tune(out=whole.folder, **options)
    with pytest.raises(
        SarbError, match=r"other settings; choose another --out:\n  known: was 0\.7, now 0\.5"
    ):
        sarb.tune(out=whole.folder, **{**options, "known": 0.5})


PAGE = ROOT / "docs/tune.md"


def test_commands_of_the_page():
    found = [words for block in blocks(PAGE) if block.language == "console" for words, _ in commands(block)]
    assert len(found) == 3
    for words in found:
        given = parse(words)
        base = Base(given["data"], given={name: given[name] for name in ("method", "network") if given[name]})
        assert read_space(given["search"] or default_space(base.job({}).settings), *base.options())


def test_python_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shown,) = [block for block in blocks(PAGE) if block.language == "python"]
    hurry(monkeypatch)
    exec(compile(shown.text, "tune.md", "exec"), {})
    assert Path("runs/search/best.toml").is_file()
