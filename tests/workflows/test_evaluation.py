"""Which images ``sarb evaluate`` scores, what its first line says, and that training images are counted."""

import csv
import json
import shutil

import pytest

import sarb
from sarb.runs.folder import RunFolder
from sarb.workflows.evaluation import evaluate_session
from sarb.workflows.training import train_session
from tests.documentation.tools import run as command

GIVEN = {"backbone": "tiny", "image_size": 64}
BINARY = {"encoding": "binary"}


def write_table(squares, target, numbers):
    """A table without splits of these squares, wherever it lies."""
    with (squares / "labels.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    with target.open("w", newline="", encoding="utf-8") as file:
        lines = [[str(squares / rows[number][0]), *rows[number][2:]] for number in numbers]
        csv.writer(file).writerows([["file_name", *head[2:]], *lines])
    return target


@pytest.fixture(scope="module")
def own(squares, tmp_path_factory):
    """A table of 30 squares without splits, and the run that was trained on four fifths of it."""
    folder = tmp_path_factory.mktemp("own")
    table = write_table(squares, folder / "own.csv", range(30))
    run, _ = train_session(
        source=str(table), data_options=BINARY, out=folder / "run", given=GIVEN, quiet=True, page=False
    )
    return table, run


def test_the_run_s_own_data_give_the_images_that_were_held_out(own, monkeypatch, capsys):
    table, run = own
    assert command(["sarb", "evaluate", str(run)], monkeypatch) == 0
    said = capsys.readouterr()
    first = said.out.splitlines()[0]
    assert first == f"run: 6 of 30 images, split test (random share 0.2, seed 0); data {table}"
    assert "too good" not in said.err
    report = evaluate_session(run, None, {})
    assert set(report.labels.paths) == set(sarb.load(table, **BINARY).test.labels.paths)
    assert report.mAP == RunFolder(run).metrics["mAP"]


def test_another_table_without_splits_is_evaluated_whole(own, squares, tmp_path, monkeypatch, capsys):
    run = str(own[1])
    held = str(write_table(squares, tmp_path / "held.csv", range(30, 48)))
    words = ["sarb", "evaluate", run, "--data", held, "-o", "encoding=binary"]
    assert command(words, monkeypatch) == 0
    said = capsys.readouterr()
    first = said.out.splitlines()[0]
    assert first == f"run: 18 of 18 images, split all (the data have no splits); data {held}"
    assert "training images" not in said.err
    assert command([*words, "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["images_in_source"], found["split"]) == (18, 18, "all")
    assert command([*words, "--json", "--split", "test"], monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 4
    assert command([*words, "--json", "-o", "test=0.5"], monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["images"] == 9


def test_splits_of_the_file_are_kept_and_all_takes_every_image(own, squares, monkeypatch, capsys):
    words = ["sarb", "evaluate", str(own[1]), "--data", str(squares / "labels.csv"), "-o", "encoding=binary"]
    assert command(words, monkeypatch) == 0
    assert capsys.readouterr().out.startswith("run: 12 of 48 images, split test; data ")
    assert command([*words, "--split", "all"], monkeypatch) == 0
    assert capsys.readouterr().out.startswith("run: 48 of 48 images, split all; data ")
    assert command([*words, "--split", "tset"], monkeypatch) == 2
    assert "Did you mean 'test'?" in capsys.readouterr().err


def test_training_images_are_counted_by_their_real_paths(own, squares, tmp_path, capsys):
    table, run = own
    report = evaluate_session(run, str(table), BINARY)
    assert report.about["training_images"] == 24 and report.about["images_in_source"] == 30
    said = capsys.readouterr().err
    assert "24 of these 30 images were training images of this run, so the numbers are too good" in said
    assert "--split test takes the 6 images that it held out" in said
    (tmp_path / "link").symlink_to(squares)
    other = write_table(tmp_path / "link", tmp_path / "other.csv", range(20, 40))
    expected = sum(path in set(RunFolder(run).train.paths) for path in map(str, squares.glob("2?.jpg")))
    assert evaluate_session(run, str(other), BINARY).about["training_images"] == expected > 0


def test_the_test_images_stay_the_same_when_the_table_grows(own, squares, tmp_path, capsys):
    """A draw from more rows gives other images, some of which the run was trained on."""
    _, run = own
    held = set(RunFolder(run).test.paths)
    longer = write_table(squares, tmp_path / "longer.csv", range(48))
    report = evaluate_session(run, str(longer), BINARY, "test")
    assert set(report.labels.paths) == held and report.about["training_images"] == 0
    assert "6 of 48 images, split test (held out when the run was trained)" in report.name
    assert "too good" not in capsys.readouterr().err


def test_a_model_folder_knows_no_training_images(own, tmp_path, capsys):
    table, run = own
    copied = shutil.copytree(run / "model", tmp_path / "model")
    report = evaluate_session(copied, str(table), BINARY)
    assert report.about["training_images"] == 0 and report["images"] == 30
