"""A comparison: numbers of evaluate, paired differences, words, files."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sarb.labels import LabelMatrix
from sarb.metrics import Interval, evaluate, map_difference, map_interval
from sarb.report import Comparison
from sarb.report.compared import told
from sarb.scores import Scores

NAMES = ["cat", "dog"]


@pytest.fixture
def found():
    """Three models on 200 images: the second a hair from the first, the third much worse."""
    random = np.random.RandomState(0)
    values = np.where(random.random_sample((200, 2)) < 0.3, 1, -1).astype(np.int8)
    paths = [f"{number}.jpg" for number in range(200)]
    good = values + random.standard_normal(values.shape)
    logits = [good, good + 0.05 * random.standard_normal(values.shape), 0.1 * good - values]
    named = [
        (name, Path("runs") / name, Scores(each, NAMES, paths), {"method": "sarb", "seed": 1})
        for name, each in zip(("first", "near <b>", "bad"), logits, strict=True)
    ]
    return Comparison.of(named, LabelMatrix(values, NAMES, paths), ["Compared on 200 images."])


def test_numbers_and_verdicts(found):
    first, near, bad = found.entries
    scores = [entry.report.scores.logits for entry in found.entries]
    assert first.difference is None and first.verdict == ""
    assert first.report.interval == pytest.approx(map_interval(scores[0], found.labels))
    assert near.difference == pytest.approx(map_difference([scores[1]], [scores[0]], found.labels))
    assert bad.report["OF1"] == evaluate(scores[2], found.labels)["OF1"]
    assert (near.verdict, bad.verdict) == ("no difference can be seen", "worse")
    assert bad.difference.high < 0 and found.best in (first, near)


def test_table_on_the_console(found):
    text = str(found)
    assert text.startswith("Compared on 200 images.\n") and "mAP minus first (95 % interval)" in text
    assert "no difference can be seen" in text and "): worse" in text
    assert "mAP: average precision" in text and "OP, OR, OF1: precision" in text


def test_files(found, tmp_path):
    page = found.save(tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    assert page.name == "comparison.html" and "near &lt;b&gt;" in text and "https://" not in text
    assert "Compared on 200 images." in text and text.count("no difference can be seen") >= 2
    assert "Average precision by category" in text and text.count("data:image/png") == 4
    with (tmp_path / "out" / "comparison.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["", "no difference can be seen", "worse"]
    assert rows[0]["difference"] == "" and float(rows[2]["difference_high"]) < 0
    stored = json.loads(found.to_json())
    assert stored["runs"][2]["mAP_low"] < stored["runs"][2]["mAP"] < stored["runs"][2]["mAP_high"]
    assert stored["runs"][0]["difference"] is None


def test_a_difference_in_words():
    nan = float("nan")
    assert told(None) == "–"
    assert told(Interval(1.23, 0.31, 2.1)) == "+1.2 (+0.3 to +2.1): better"
    assert told(Interval(0.0, nan, nan)) == "+0.0: no difference can be seen"
    assert told(Interval(0.0, 0.0, 0.0)) == "the same"
    assert told(Interval(0.0, 0.0, 0.01)) == "+0.0 (+0.0 to +0.0): no difference can be seen"


def test_whether_the_best_is_clear(found):
    first, _, bad = found.entries
    assert not found.clear  # the second is as good as the first
    assert replace(found, entries=(first, bad)).clear
    turned = Interval(-bad.difference.value, -bad.difference.high, -bad.difference.low)
    worse_first = (replace(bad, difference=None), replace(first, difference=turned))
    assert replace(found, entries=worse_first).clear
