import csv
import json

import numpy as np
import pytest
from PIL import Image

import sarb
from sarb.errors import ConfigError, DataError
from sarb.labelling.completion import complete
from sarb.labelling.formats import classes_file, conflicts_csv
from sarb.labels import LabelMatrix
from sarb.scores import Scores

NAMES = ["cat, small", "dog", 'say "car"']


@pytest.fixture
def filled(tmp_path):
    labels = LabelMatrix(
        [[1, 0, -1], [0, 0, 0], [0, -1, 1], [0, 1, 0]], NAMES, ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    )
    for path in labels.paths:
        Image.new("RGB", (8, 8)).save(tmp_path / path)
    logits = np.array([[-2.0, 3.0, 1.0], [2.0, -3.0, 0.1], [0.2, 1.0, 1.0], [-4.0, -1.0, 2.5]])
    return complete(Scores(logits, NAMES, labels.paths), labels, min_confidence=0.8)


def test_open_images_are_read_again_without_the_machine_rows(filled, tmp_path):
    filled.save(tmp_path / "train.csv", "open_images")
    data = sarb.load(
        f"open_images:{tmp_path / 'train.csv'}", descriptions=classes_file(tmp_path / "train.csv")
    )
    known = filled.given.known.any(1)  # an image with no verified row is not read
    assert data.categories == tuple(NAMES)
    read = {
        path: row
        for d in data.splits.values()
        for path, row in zip(d.labels.paths, d.labels.values, strict=True)
    }
    rows = [read[path] for path in np.array(filled.given.paths)[known]]
    assert np.array_equal(rows, filled.given.values[known]) and len(read) == known.sum()
    assert data.notes["machine_rows"] == (filled.present | filled.absent).sum()
    with (tmp_path / "train.csv").open(encoding="utf-8", newline="") as file:
        machine = {
            (r["ImageID"], r["LabelName"]): float(r["Confidence"])
            for r in csv.DictReader(file)
            if r["Source"] == "machine"
        }
    assert machine["a", "/sarb/1"] == pytest.approx(filled.calibrated[0, 1], abs=1e-5)


def test_open_images_need_one_name_per_image():
    labels = LabelMatrix([[0], [0]], ["x"], ["one/a.jpg", "two/a.jpg"])
    found = complete(Scores([[1.0], [1.0]], ["x"], labels.paths), labels)
    with pytest.raises(DataError, match="ImageID 'a'"):
        found.save("never.csv", "open_images")


def test_label_studio_is_read_again(filled, tmp_path):
    filled.save(tmp_path / "tasks.json", "label_studio")
    data = sarb.load(f"label_studio:{tmp_path / 'tasks.json'}", unlisted="unknown")
    order = [data.categories.index(name) for name in NAMES]
    assert data.notes["predictions_ignored"] == filled.present.any(1).sum()
    together = {
        p: row for d in data.splits.values() for p, row in zip(d.labels.paths, d.labels.values, strict=True)
    }
    for path, row in zip(filled.given.paths, filled.given.values, strict=True):
        assert together[path][order].tolist() == np.maximum(row, 0).tolist()
    tasks = json.loads((tmp_path / "tasks.json").read_text(encoding="utf-8"))
    assert tasks[0]["predictions"][0]["result"][0]["value"] == {"choices": ["dog"]}
    assert tasks[0]["predictions"][0]["score"] == pytest.approx(filled.calibrated[0, 1], abs=1e-5)
    assert tasks[1]["annotations"] == []


def test_conflicts(filled, tmp_path):
    conflicts_csv(filled.conflicts, tmp_path / "conflicts.csv")
    with (tmp_path / "conflicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file_name"] for row in rows] == [conflict.file_name for conflict in filled.conflicts]
    assert {(row["file_name"], row["label"], row["given"]) for row in rows} == {
        ("a.jpg", NAMES[0], "present"),
        ("a.jpg", NAMES[2], "absent"),
        ("c.jpg", "dog", "absent"),
        ("d.jpg", "dog", "present"),
    }
    assert [float(row["belief"]) for row in rows] == sorted(float(row["belief"]) for row in rows)


def test_unknown_format(filled, tmp_path):
    with pytest.raises(ConfigError, match="Did you mean 'open_images'"):
        filled.save(tmp_path / "x.csv", "openimages")
