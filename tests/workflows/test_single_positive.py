"""One known positive per image: the other way to hide labels."""

import json

import numpy as np
import pytest

import sarb
from sarb import matrix
from sarb.errors import ConfigError
from sarb.runs.differences import settings_told
from sarb.runs.folder import RunFolder
from sarb.workflows.labelled import run_data
from tests.documentation.tools import coarse_pictures, run

CATEGORIES = [f"c{number}" for number in range(6)]


def labels(images=200, seed=1):
    values = np.random.RandomState(seed).choice([-1, 0, 1], (images, 6), p=[0.4, 0.3, 0.3])
    values[:5] = -1  # no known positive
    return sarb.LabelMatrix(values, CATEGORIES)


def test_one_known_positive_per_image_and_nothing_else():
    whole = labels()
    kept = whole.hide(single_positive=True, seed=0)
    assert (kept.values >= 0).all()
    assert (kept.values.sum(1) == (whole.values == 1).any(1)).all()
    assert (whole.values[kept.values == 1] == 1).all()
    assert not kept.values[:5].any()
    assert not kept.values.flags.writeable


def test_the_seed_decides_and_blocks_do_not(monkeypatch):
    whole = labels()
    first, other = (whole.hide(single_positive=True, seed=seed) for seed in (0, 1))
    assert first == whole.hide(single_positive=True, seed=0) and first != other
    monkeypatch.setattr(matrix, "BLOCK", 7)
    assert whole.hide(single_positive=True, seed=0) == first


def test_every_positive_is_equally_likely():
    whole = sarb.LabelMatrix(np.tile([1, 1, -1, 1, 0, -1], (6000, 1)), CATEGORIES)
    shares = whole.hide(single_positive=True, seed=3).positives / 6000
    assert shares == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0, 0], abs=0.03)


def test_not_together_with_a_share():
    with pytest.raises(ConfigError, match="known and single_positive are two ways to hide labels"):
        labels().hide(0.5, single_positive=True)
    empty = sarb.LabelMatrix(np.zeros((0, 6)), CATEGORIES)
    assert len(empty.hide(single_positive=True)) == 0


def test_data_keep_their_test_labels(squares_data):
    data = squares_data.hide(single_positive=True, seed=4)
    assert data.test.labels == squares_data.test.labels
    assert data.train.labels == squares_data.train.labels.hide(single_positive=True, seed=4)


def test_train_records_it_and_repeats_it(squares, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    source = ["--data", str(squares / "labels.csv"), "-o", "encoding=binary"]
    small = [
        "--backbone",
        "tiny",
        "--image-size",
        "64",
        "--epochs",
        "1",
        "--network",
        "pooled",
        "--method",
        "an",
    ]
    words = ["sarb", "train", *source, *small, "--single-positive", "--mask-seed", "5", "--quiet"]
    assert run(words, monkeypatch) == 0, capsys.readouterr().err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("-an-single-positive")
    record = json.loads((folder / "config.json").read_text(encoding="utf-8"))["data"]
    assert record["single_positive"] is True and record["without_label"] == 0
    assert "--single-positive --mask-seed 5" in record["command"] and "--known" not in record["command"]
    used = RunFolder(folder).train
    assert used is not None and (used.values.sum(1) == 1).all() and (used.values >= 0).all()
    assert run_data(folder).train.labels.values.tolist() == used.values.tolist()
    other = [*words[:-1], "--out", "other", "--mask-seed", "6", "--quiet"]
    assert run(other, monkeypatch) == 0, capsys.readouterr().err
    told = settings_told([("a", RunFolder(folder)), ("b", RunFolder(tmp_path / "other"))])
    assert told == "Settings that differ: --mask-seed (a 5, b 6)."


def test_images_without_a_known_positive_are_counted(squares, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    coarse_pictures(monkeypatch)
    source = tmp_path / "labels.csv"
    lines = (squares / "labels.csv").read_text(encoding="utf-8").splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:2], *("0" for _ in range(5))])
    for image in squares.glob("*.jpg"):
        (tmp_path / image.name).symlink_to(image)
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    small = [
        "--backbone",
        "tiny",
        "--image-size",
        "64",
        "--epochs",
        "1",
        "--network",
        "pooled",
        "--method",
        "an",
    ]
    words = ["sarb", "train", "--data", str(source), "-o", "encoding=binary", *small, "--single-positive"]
    assert run([*words, "--out", "run"], monkeypatch) == 0, capsys.readouterr().err
    assert "1 training images have no known positive: nothing is known about them" in capsys.readouterr().err
    assert (
        json.loads((tmp_path / "run/config.json").read_text(encoding="utf-8"))["data"]["without_label"] == 1
    )


def test_the_command_line_takes_one_way_to_hide(monkeypatch, capsys):
    words = ["sarb", "train", "--data", "demo", "--known", "0.5", "--single-positive"]
    assert run(words, monkeypatch) == 2
    assert "--known and --single-positive are two ways to hide labels" in capsys.readouterr().err
