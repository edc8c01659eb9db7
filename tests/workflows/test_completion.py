"""The three commands on a real run of the coloured squares."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import sarb
from sarb.errors import ConfigError, DataError, SarbError
from sarb.labelling.calibration import Calibration, calibrate
from sarb.labelling.suggestion import usual_budget
from sarb.labels import LabelMatrix
from sarb.runs.lookup import load_calibration
from sarb.scores import Scores
from sarb.workflows.calibration import calibrate_session, describe
from sarb.workflows.completion import (
    _say_test,
    complete_session,
    score_splits,
    suggest_session,
    suggest_weights,
)
from sarb.workflows.labelled import run_data, trained_on
from sarb.workflows.prediction import _said, predict_session
from sarb.workflows.training import train_session
from tests.documentation.tools import run as run_command
from tests.labelling.made_scores import make

GIVEN = {
    "backbone": "tiny",
    "image_size": 64,
    "epochs": 2,
    "batch_size": 8,
    "network": "pooled",
    "method": "partial_bce",
}


def train(squares, out, **options):
    return train_session(
        source=str(squares / "labels.csv"),
        data_options={"encoding": "binary"},
        known=0.6,
        out=out,
        given=GIVEN,
        quiet=True,
        page=False,
        **options,
    )[0]


@pytest.fixture(scope="module")
def plain(squares, tmp_path_factory):
    """A run without validation images, calibrated with two parts."""
    folder = train(squares, tmp_path_factory.mktemp("runs") / "plain")
    assert load_calibration(folder) is None
    calibrate_session(folder, folds=2, progress=False)
    return folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_training_with_validation_images_is_calibrated(squares, tmp_path):
    folder = train(squares, tmp_path / "run", valid=0.3)
    found = load_calibration(folder)
    assert found.source == "known labels of the validation images"
    held = 36 - len(sarb.LabelMatrix.load(folder / "labels.npz"))
    labels = run_data(folder).train.labels
    used = set(sarb.LabelMatrix.load(folder / "labels.npz").paths)
    mine = labels.take([path not in used for path in labels.paths])
    assert len(mine) == held and found.counts.sum() == mine.known.sum()
    assert np.array_equal(load_calibration(folder / "model").slope, found.slope)


def test_out_of_fold(plain):
    scores, found = sarb.Scores.load(plain / "oof.npz"), load_calibration(plain)
    labels = trained_on(plain, run_data(plain).train).labels
    assert labels == sarb.LabelMatrix.load(plain / "labels.npz")
    assert scores.paths == labels.paths and found.counts.sum() == labels.known.sum()
    assert "2 parts" in found.source and not (plain / "folds").exists()


def test_complete_long(plain, tmp_path):
    filled = complete_session(plain, tmp_path / "filled.csv", min_confidence=0.7)
    table = rows(tmp_path / "filled.csv")
    assert (
        filled.scores.skipped == () and len(table) == 48 * 5
    )  # the test images have no gap, but belong to the table
    data = run_data(plain)
    given = {
        (p, c): v
        for d in data.splits.values()
        for p, row in zip(d.labels.paths, d.labels.values, strict=True)
        for c, v in zip(data.categories, row, strict=True)
    }
    words = {1: "present", -1: "absent", 0: "unknown"}
    for row in table:
        known = given[row["file_name"], row["label"]]
        assert row["given"] == words[known]
        assert row["source"] == "given" if known else row["source"] in ("machine", "none")
        assert not known or row["filled"] == row["given"]
    assert (tmp_path / "conflicts.csv").is_file()
    judged = load_calibration(plain)(sarb.Scores.load(plain / "oof.npz"))
    names = sarb.Scores.load(plain / "oof.npz").paths
    for conflict in filled.conflicts:
        if conflict.file_name in names:
            column = filled.labels.categories.index(conflict.label)
            assert conflict.calibrated == pytest.approx(judged[names.index(conflict.file_name), column])
    with pytest.raises(DataError, match="--overwrite"):
        complete_session(plain, tmp_path / "filled.csv")


def test_conflicts_of_another_completion_are_kept(plain, tmp_path, capsys):
    usual = tmp_path / "conflicts.csv"
    filled = complete_session(plain, tmp_path / "a.csv", min_confidence=0.7)
    first = usual.read_bytes()
    complete_session(plain, tmp_path / "b.csv", min_confidence=0.7)  # the same conflicts, the same file
    assert usual.read_bytes() == first and not (tmp_path / "b.conflicts.csv").exists()
    usual.write_text("of another run\n", encoding="utf-8")
    capsys.readouterr()
    complete_session(plain, tmp_path / "c.csv", min_confidence=0.7)
    assert usual.read_text(encoding="utf-8") == "of another run\n"
    assert (tmp_path / "c.conflicts.csv").read_bytes() == first
    assert "is of another completion and is kept" in capsys.readouterr().err
    (tmp_path / "c.csv").unlink()
    with pytest.raises(DataError, match=r"c\.conflicts\.csv: exists already"):
        complete_session(plain, tmp_path / "c.csv", min_confidence=0.7)
    assert not (tmp_path / "c.csv").exists()
    complete_session(plain, tmp_path / "b.csv", min_confidence=0.7, overwrite=True)
    assert usual.read_bytes() == first and "conflicts.csv: replaced" in capsys.readouterr().err
    assert filled.conflicts
    with pytest.raises(DataError, match="choose another one"):
        complete_session(plain, usual, min_confidence=0.7, overwrite=True)


def test_complete_wide_keeps_the_encoding_and_every_known_label(plain, squares, tmp_path):
    before = (squares / "labels.csv").read_bytes()
    complete_session(plain, tmp_path / "wide.csv", to="wide", which="oof", split="all")
    assert (squares / "labels.csv").read_bytes() == before
    data = sarb.load(tmp_path / "wide.csv", encoding="binary")
    old = run_data(plain)
    for name, dataset in old.splits.items():
        now = data.splits[name].labels
        assert [path.resolve() for path in data.splits[name].paths] == dataset.paths and now.known.all()
        assert np.array_equal(now.values[dataset.labels.known], dataset.labels.values[dataset.labels.known])


def test_complete_wide_leaves_test_images_as_they_were(plain, squares, tmp_path, capsys):
    """A completed table with gaps in its test images too must not test a model on its own opinion."""
    with (squares / "labels.csv").open(encoding="utf-8", newline="") as file:
        head, *table = csv.reader(file)
    with (tmp_path / "gaps.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *([*row[:2], "", *row[3:]] for row in table)])
    given = {
        "source": str(tmp_path / "gaps.csv"),
        "data_options": {"encoding": "binary", "root": str(squares)},
    }
    filled = complete_session(plain, tmp_path / "wide.csv", to="wide", **given)
    said = capsys.readouterr().err
    assert "the labels of 12 test images are left as given and not counted; --split all fills" in said
    assert len(filled.labels) == 36
    made = sarb.load(tmp_path / "wide.csv", encoding="binary", root=squares)
    assert made.train.labels.known.all() and (made.test.labels.known.mean(0) == [0, 1, 1, 1, 1]).all()
    complete_session(plain, tmp_path / "long.csv", **given)
    assert len(rows(tmp_path / "long.csv")) == 48 * 5
    complete_session(plain, tmp_path / "test.csv", split="test", **given)
    assert len(rows(tmp_path / "test.csv")) == 12 * 5
    with pytest.raises(ConfigError, match="Did you mean 'test'"):
        complete_session(plain, tmp_path / "x.csv", split="tset")


def test_figures_that_say_little_say_so():
    rare = calibrate(*make(60, [1.0, 1.0], [-2.0, 0.0], known=0.5)[:2])
    count = int(rare.counts[0].sum())
    assert 0 < count < 100 and f"only {count} held-out labels are present" in describe(rare)
    many = calibrate(*make(3_000, [0.4, 0.4], [-2.0, 0.0], known=0.5)[:2])
    lines = describe(many).splitlines()
    assert len(lines) == 4 and lines[3].startswith("OF1 on the held-out labels: ")
    worse = {"before": 0.02, "after": 0.02}
    assert "no better than before" in describe(
        replace(many, figures={**many.figures, "calibration_error": worse})
    )
    figures = {
        "calibration_error": {"before": 0.03, "after": 0.02},
        "brier_score": {"before": 0.10, "after": 0.1012},
    }
    mixed = describe(replace(many, figures={**many.figures, **figures}))
    assert "the Brier score is worse (by 0.0012)" in mixed and "--undo" in mixed


@pytest.mark.parametrize("to", ["open_images", "label_studio"])
def test_complete_for_other_tools(plain, tmp_path, to):
    filled = complete_session(plain, tmp_path / "out", to=to)
    assert (tmp_path / "out").stat().st_size > 100 and filled.labels.known.all()


def test_suggest(plain, tmp_path):
    found, _ = suggest_session(plain, 7, tmp_path / "ask.csv")
    labels = run_data(plain).train.labels
    table = rows(tmp_path / "ask.csv")
    assert len(table) == len(found) == 7
    for row in table:
        assert labels.values[labels.paths.index(row["file_name"]), labels.categories.index(row["label"])] == 0
    assert found.outlook.slope is not None and found.outlook.slope >= 0
    held, _ = suggest_session(plain, 7, tmp_path / "held.csv", which="oof")
    assert held.outlook.slope is None
    found, _ = suggest_session(plain, None, tmp_path / "usual.csv")
    assert len(rows(tmp_path / "usual.csv")) == usual_budget(labels)


def test_predict_uses_the_calibration(plain, squares, tmp_path, capsys):
    photo = squares / "40.jpg"
    predict_session(plain, [photo], tmp_path / "long.csv", 2, None, False)
    (first, second) = rows(tmp_path / "long.csv")
    raw = sarb.predict(sarb.load_model(plain), [photo])
    calibrated = dict(zip(raw.categories, load_calibration(plain)(raw)[0], strict=True))
    assert float(first["calibrated"]) == pytest.approx(calibrated[first["label"]], rel=1e-4)
    assert float(first["probability"]) == pytest.approx(
        raw.probabilities[0, raw.categories.index(first["label"])], rel=1e-4
    )
    assert float(first["calibrated"]) >= float(second["calibrated"])
    predict_session(plain, [photo], tmp_path / "wide.csv", None, None, False)
    (wide,) = rows(tmp_path / "wide.csv")
    assert float(wide["red"]) == pytest.approx(calibrated["red"], rel=1e-4)
    capsys.readouterr()
    predict_session(plain, [photo], None, None, None, True)
    said = capsys.readouterr()
    assert said.err.count("--threshold X sets one for all") == 1
    decided = json.loads(said.out)[0]["labels"]
    thresholds = dict(zip(raw.categories, load_calibration(plain).thresholds, strict=True))
    assert set(decided) == {name for name, p in calibrated.items() if p >= thresholds[name]}


def test_commands(plain, tmp_path, monkeypatch, capsys):
    out = str(tmp_path / "filled.csv")
    assert (
        run_command(
            ["sarb", "complete", str(plain), "--out", out, "--min-precision", "0.9", "--json"], monkeypatch
        )
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert said["filled_present"] + said["filled_absent"] + said["left_unknown"] + said["given"] == 48 * 5
    assert run_command(["sarb", "complete", str(plain), "--out", out], monkeypatch) == 2
    sure = ["sarb", "complete", str(plain), "--out", out, "--overwrite", "--min-confidence", "1"]
    assert run_command(sure, monkeypatch) == 0
    said = capsys.readouterr().err
    assert "no label is that certain; lower --min-confidence, or answer questions in the browser" in said
    ask = ["sarb", "suggest", str(plain), "--budget", "3", "--out", str(tmp_path / "ask.csv")]
    assert run_command([*ask, "--json", "--weight", "finds=2"], monkeypatch) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 3, said
    assert "3 questions\n" in said.err and "random questions" in said.err
    assert run_command(["sarb", "suggest", str(plain), "--out", str(tmp_path / "ask.csv")], monkeypatch) == 0
    said = capsys.readouterr().err
    assert (
        f"{len(rows(tmp_path / 'ask.csv'))} questions (1 % of the unknown labels" in said
        and "--budget" in said
    )
    assert run_command([*ask, "--weight", "find=2"], monkeypatch) == 2
    assert "Did you mean 'finds'?" in capsys.readouterr().err


def test_refusals(plain, tmp_path):
    with pytest.raises(ConfigError, match="add --data"):
        run_data(plain / "model")
    with pytest.raises(SarbError, match=r"labels\.npz"):
        trained_on(tmp_path, run_data(plain).train)
    with pytest.raises(SarbError, match="not the data it was trained on"):
        trained_on(plain, run_data(plain).test)
    with pytest.raises(ConfigError) as error:
        suggest_weights({"findss": "1", "rarity": "many"})
    assert len(error.value.problems) == 2
    with pytest.raises(ConfigError, match="Did you mean 'wide'"):
        complete_session(plain, tmp_path / "x.csv", to="wied")


def test_out_of_fold_scores_belong_to_files_not_to_names(plain, squares, tmp_path):
    """Another table with the same names for other photos must not get the scores of this run's photos."""
    other = tmp_path / "other"
    shutil.copytree(squares, other)
    options = {"own_data": False, "progress": False}
    same = sarb.load(squares / "labels.csv", encoding="binary")
    moved = sarb.load(other / "labels.csv", encoding="binary")
    found = score_splits(plain, same, ["train"], "model", **options)
    held = found.out_of_fold.take(np.array([bool(name) for name in found.learned_as]))
    assert len(held) and not np.allclose(
        held.logits, found.scores.take(np.array(found.learned_as) != "").logits
    )
    elsewhere = score_splits(plain, moved, ["train"], "model", **options)
    assert not any(elsewhere.learned_as)
    assert np.array_equal(elsewhere.out_of_fold.logits, elsewhere.scores.logits)
    own = score_splits(plain, moved, ["train"], "model", own_data=True, progress=False)
    assert np.allclose(own.out_of_fold.logits, found.out_of_fold.logits)


def test_thresholds_that_are_kept_or_extreme_are_told():
    found = calibrate(*make(300, [1.0, 1.0], [-2.0, 0.0], known=0.5)[:2])
    figures = {
        **found.figures,
        "OF1": {"half": 61.26, "chosen": 60.0},
        "extreme": [f"c{n}: 0.06" for n in range(7)],
    }
    kept = replace(found, thresholds=np.full(2, 0.5), figures=figures)
    said = describe(kept)
    assert "OF1 on the held-out labels: 61.3 at 0.5, 60.0 at thresholds per category" in said
    assert "0.5 is kept for all categories, because chosen ones are no better" in said
    assert (
        "look at these thresholds: c0: 0.06;" in said and said.count("0.06") == 5 and "; and 2 more" in said
    )
    assert kept.thresholds_are.startswith("0.5 for all categories, because")
    other = describe(replace(kept, thresholds=np.array([0.5, 0.4])))
    assert "is kept for all" not in other


def test_filled_labels_of_test_photos_are_counted(capsys):
    values = np.array([[1, 0], [0, -1], [0, 0]], np.int8)
    labels = LabelMatrix(values, ["a", "b"], ["train.jpg", "t1.jpg", "t2.jpg"])
    filled = sarb.complete(Scores(np.ones((3, 2)), ["a", "b"], labels.paths), labels)
    _say_test(2, filled)
    assert "sarb: 3 of the filled labels are of test photos" in capsys.readouterr().err
    _say_test(0, filled)
    assert capsys.readouterr().err == ""


def test_a_line_says_which_column_the_threshold_compares():
    fitted = calibrate(*make(300, [1.0, 1.0], [-2.0, 0.0], known=0.5)[:2])
    assert _said(fitted, False, 0.5).endswith("--threshold compares the calibrated ones")
    assert "--threshold" not in _said(fitted, False, None)
    assert "--threshold" not in _said(Calibration.identity(["a"]), False, 0.5)
