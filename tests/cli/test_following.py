"""The next command: real paths, the user's own options, nothing that would fail."""

import json
import os
import shlex
from types import SimpleNamespace

import numpy as np
import pytest

from sarb.cli.following import (
    after_audit,
    after_checking,
    after_comparing,
    after_filling,
    after_measuring,
    after_training,
    say_next,
    source_words,
    unused,
)
from sarb.labels import LabelMatrix
from sarb.runs.folder import CONFIG, RunFolder
from tests.documentation.tools import parse


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in ``runs/my run`` that was trained on a table with one unknown label."""
    monkeypatch.chdir(tmp_path)
    folder = RunFolder("runs/my run")
    folder.path.mkdir(parents=True)
    command = "sarb train --data 'my labels.csv' -o encoding=binary --out 'runs/my run' --image-size 224"
    record = {"source": "my labels.csv", "options": {"encoding": "binary"}, "known": 1, "command": command}
    folder.write_config({"data": record})
    folder.write_train(LabelMatrix([[1, 0], [-1, 1]], ["a", "b"], ["x.jpg", "y.jpg"]))
    return folder


def calibrated(folder, monkeypatch):
    monkeypatch.setattr(RunFolder, "calibration", lambda self: object())
    return folder.path


def test_a_line_on_stderr_that_can_be_pasted(capsys):
    say_next(["train", *source_words("--data", "my labels.csv", {"encoding": "binary"})])
    say_next([])
    out, line = capsys.readouterr()
    assert out == "" and line == "next: sarb train --data 'my labels.csv' -o encoding=binary\n"
    assert parse(shlex.split(line.removeprefix("next: ")))["option"] == ["encoding=binary"]


def test_after_training_comes_calibrate_then_complete_then_serve(run, monkeypatch, tmp_path):
    assert after_training(run.path) == ["calibrate", run.path]
    path = calibrated(run, monkeypatch)
    sure = ["--min-confidence", "0.9"]
    assert list(map(str, after_training(path))) == ["complete", "runs/my run", "--out", "filled.csv", *sure]
    (tmp_path / "filled.csv").touch()
    assert str(after_training(path)[3]) == "filled-2.csv"
    run.write_train(LabelMatrix(np.ones((1, 2), np.int8), ["a", "b"], ["x.jpg"]))
    assert after_training(path) == ["serve", run.path]


def test_a_model_without_its_data_can_be_tried(tmp_path):
    assert after_training(tmp_path) == ["serve", tmp_path]
    assert after_training(tmp_path / "someone" / "hub") == []


def test_after_filling_comes_the_review_of_the_same_table(run):
    ours = ["serve", run.path, "--labels", "my labels.csv", "-o", "encoding=binary"]
    assert after_filling(run.path, None, {}) == ours
    other = after_filling(run.path, "new.csv", {"delimiter": ";"})
    assert other == ["serve", run.path, "--labels", "new.csv", "-o", "delimiter=;"]


def test_answers_of_a_review_are_reviewed_into_another_file(run, tmp_path):
    answers = tmp_path / "reviewed.csv"
    answers.touch()
    (tmp_path / "reviewed.answers.jsonl").touch()
    words = ["serve", run.path, "--labels", str(answers), "--out", tmp_path / "reviewed-2.csv"]
    assert after_filling(run.path, str(answers), {}) == words


def test_hidden_labels_need_no_review(run):
    run.write_config({"data": {"source": "demo", "options": {}, "known": 0.1}})
    assert after_filling(run.path, None, {}) == ["evaluate", run.path]


def test_a_name_that_is_not_used(tmp_path):
    for name in ("a.csv", "a-2.csv"):
        assert unused(tmp_path / "a.csv") == tmp_path / name
        (tmp_path / name).touch()
    assert unused(tmp_path / "a.csv") == tmp_path / "a-3.csv"


def test_a_run_that_was_measured_is_not_completed_once_more(run, monkeypatch):
    assert after_measuring(run.path) == ["calibrate", run.path]
    path = calibrated(run, monkeypatch)
    assert after_measuring(path) == ["serve", path, "--labels", "my labels.csv", "-o", "encoding=binary"]
    run.write_train(LabelMatrix(np.ones((1, 2), np.int8), ["a", "b"], ["x.jpg"]))
    assert after_measuring(path) == ["serve", path]


def test_after_an_audit_the_corrected_table_is_trained_on(run):
    again = ["train", "--image-size", "224", "--data", "my labels.csv", "-o", "encoding=binary"]
    assert after_audit(run.path, None, {}, 3) == [*again, "--out", "runs/my run-2"]
    assert "other.csv" in after_audit(run.path, "other.csv", {}, 3)
    assert after_audit(run.path, None, {}, 0) == ["calibrate", run.path]


def test_after_checking_answers_the_run_that_asked_is_trained_again(run, tmp_path):
    plain = ["train", "--data", "reviewed.csv", "-o", "encoding=binary", "--out", "runs/reviewed"]
    assert after_checking("reviewed.csv", {"encoding": "binary"}) == plain
    asked = json.dumps({"answer": "yes", "run": str(run.path.resolve())})
    (tmp_path / "reviewed.answers.jsonl").write_text(f'{asked}\n{{"answer": "no"}}\n', encoding="utf-8")
    words = after_checking("reviewed.csv", {"encoding": "binary"})
    assert words[:3] == ["train", "--image-size", "224"] and words[-1] == "runs/my run-2"
    (tmp_path / "runs" / "my run").rename(tmp_path / "gone")
    assert after_checking("reviewed.csv", {"encoding": "binary"}) == plain


def test_after_comparing_without_a_clear_difference_the_most_taught_run_goes_on(run, tmp_path):
    more = RunFolder("runs/more")
    more.path.mkdir()
    more.write_config({"data": run.data_record})
    more.write_train(LabelMatrix([[1, -1], [-1, 1]], ["a", "b"], ["x.jpg", "y.jpg"]))
    entries = [SimpleNamespace(run=run.path), SimpleNamespace(run=more.path)]
    for order in (entries, entries[::-1]):
        found = SimpleNamespace(clear=False, best=order[0], entries=order)
        assert after_comparing(found) == ["calibrate", more.path]
    clear = SimpleNamespace(clear=True, best=entries[0], entries=entries)
    assert after_comparing(clear) == ["calibrate", run.path]
    assert after_comparing(SimpleNamespace(clear=False, entries=[SimpleNamespace(run=None)])) == []


def test_of_equally_taught_runs_the_newest_goes_on(run):
    newer = RunFolder("runs/newer")
    newer.path.mkdir()
    newer.write_config({"data": run.data_record})
    newer.write_train(run.train)
    for first, second in ((1, 2), (2, 1)):
        os.utime(run.path / CONFIG, (first, first))
        os.utime(newer.path / CONFIG, (second, second))
        found = SimpleNamespace(
            clear=False, entries=[SimpleNamespace(run=run.path), SimpleNamespace(run=newer.path)]
        )
        assert after_comparing(found)[1] == (newer.path if second > first else run.path)
