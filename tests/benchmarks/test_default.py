"""The benchmark of the default: cells, baseline, paired bootstrap, and a run on a few demo images."""

import csv

import numpy as np
import pytest
from benchmarks.baseline import CHOICES, baseline
from benchmarks.default import grid, main, summary
from benchmarks.fits import COLUMNS, Key, Results
from benchmarks.paired import difference
from benchmarks.source import Cell, How, Source

import sarb
from sarb.metrics import average_precision, evaluate
from tests.benchmarks.small import DEMO


def test_the_grid_has_all_cells_of_the_acceptance():
    names = [cell.name for cell in grid()]
    assert len(names) == len(set(names)) == 24
    assert {"coco256-80/5", "coco256-20/10", "coco256-5/30", "scenes5/100", "demo/5"} <= set(names)
    few = {name for name in names if "60photos" in name}
    assert few == {f"{data}-60photos/{known}" for data in ("scenes5", "coco256-5") for known in (30, 100)}
    assert Cell("demo", 0, 0, 1.0).masks([11, 12]) == [11]
    assert Cell("demo", 0, 0, 0.3).masks([11, 12]) == [11, 12]


def made(photos=60, categories=3, seed=0):
    random = np.random.RandomState(seed)
    labels = np.where(random.random_sample((photos, categories)) < 0.4, 1, -1).astype(np.int8)
    return random, labels


def test_the_difference_pools_the_masks_and_knows_a_winner():
    random, labels = made(200)
    noise = random.standard_normal((4, *labels.shape))
    good = [labels + noise[0], labels + noise[1]]
    poor = [0.2 * labels + noise[2], 0.2 * labels + noise[3]]
    won = difference(good, poor, labels)
    means = [np.mean([evaluate(scores, labels)["mAP"] for scores in kind]) for kind in (good, poor)]
    assert won["gain"] == f"{means[0] - means[1]:+.2f}"
    assert 0 < float(won["low"]) < float(won["gain"]) < float(won["high"])
    assert difference(good, good, labels) == {"gain": "+0.00", "low": "+0.00", "high": "+0.00"}


def test_baseline_learns_from_known_entries_only():
    random, labels = made(300)
    vectors = random.standard_normal((300, 6)) + 1.5 * np.pad(labels, ((0, 0), (0, 3)))
    hidden = np.where(random.random_sample(labels.shape) < 0.5, labels, 0).astype(np.int8)
    hidden[:, 2] = np.where(hidden[:, 2] > 0, 1, 0)  # no known negative: nothing to learn
    scores, c = baseline(vectors[:150], hidden[:150], vectors[150:])
    assert c in CHOICES
    assert average_precision(scores, labels[150:])[:2].min() > 0.9
    assert (scores[:, 2] == 0).all()


OPTIONS = [*DEMO, "--image-size", "64"]


@pytest.mark.parametrize("develop", [True, False])
def test_a_run_writes_rows_once_and_resumes(tmp_path, capsys, develop):
    out = tmp_path / "new" / "default.csv"
    command = ["--out", str(out), "--cells", "demo/30", "--masks", "1", *OPTIONS]
    if develop:
        command += ["--develop"]
    assert main(command) in (0, 1)
    assert "from sarb.fit" in capsys.readouterr().out
    before = out.read_text(encoding="utf-8")
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == ["auto strict", "auto names", "ten lines"]
    assert {row["split"] for row in rows} == {"develop" if develop else "test"}
    assert {row["photos"] for row in rows} == {"8" if develop else "16"}
    assert {row["train_photos"] for row in rows} == {"32" if develop else "40"}
    assert all("benchmarks.default" in row["command"] for row in rows)
    main(command)
    assert out.read_text(encoding="utf-8") == before  # seconds too: nothing ran again
    main(["demo/100" if text == "demo/30" else text for text in command])
    with (out.parent / "default-cells.csv").open(newline="", encoding="utf-8") as file:
        assert [row["cell"] for row in csv.DictReader(file)] == 2 * ["demo/30"] + 2 * ["demo/100"]
    main([*command, "--pooled"])
    with out.open(newline="", encoding="utf-8") as file:
        assert [row["cell"] for row in csv.DictReader(file) if row["model"] == "pooled"] == ["demo/30"]


def test_development_never_opens_a_test_photo(tmp_path, monkeypatch):
    data = sarb.load("demo", train=40, test=16, size=64)
    opened = []
    pool = Source._pool
    monkeypatch.setattr(Source, "_pool", lambda self, fit: opened.append(fit.split.whole) or pool(self, fit))
    source = Source(data, How(True, 0, "tiny", 64))
    assert [photos.labels.paths for photos in opened] == [data.train.labels.paths]
    assert not set(source.parts.rows) & set(source.parts.held)
    few = source.problem(Cell("demo", 2, 10, 0.5), 1)
    assert len(few.rows) == 10 and set(few.rows) <= set(source.parts.rows)
    assert len(few.labels.categories) == 2
    positives = dict(zip(data.categories, data.train.labels.positives, strict=True))
    assert sorted(positives.values())[-2:] == sorted(positives[name] for name in few.labels.categories)


def test_two_processes_can_add_to_one_file(tmp_path):
    here = Results(tmp_path / "fits.csv")
    there = Results(tmp_path / "fits.csv")
    row = {**dict.fromkeys(COLUMNS, "1"), "cell": "demo/30"}
    here.add(row, np.zeros((2, 1)))
    there.add({**row, "mask": 2}, np.ones((2, 1)))
    here.add({**row, "mAP": "2"}, np.ones((2, 1)))  # once more: replaced
    assert [(each["mask"], each["mAP"]) for each in Results(tmp_path / "fits.csv").rows] == [
        ("2", "1"),
        ("1", "2"),
    ]
    key = Key.read({**row, "mask": "2"})
    assert here.has(key) and here.scores(key).all()


def test_summary_says_where_the_default_is_beaten():
    row = {"cell": "demo/5", "claims": "strict", "auto": "1", "ten lines": "2", "pooled": ""}
    lost = {**row, "against": "ten lines", "gain": "-1.00", "low": "-2.00", "high": "-0.10"}
    assert "beaten: demo/5 (strict) by ten lines, -1.00 mAP" in summary([lost])
    assert "beaten in no cell" in summary([{**lost, "high": "+0.10"}])


def test_a_pattern_that_names_no_cell_lists_them(tmp_path, capsys):
    assert main(["--out", str(tmp_path / "a.csv"), "--cells", "nothing"]) == 2
    assert "scenes5/30" in capsys.readouterr().out
