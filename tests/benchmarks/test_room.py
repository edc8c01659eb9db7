"""The room between few labels and all labels: shares, ratios, permuted names, and a run on a few images."""

import numpy as np
import pytest
from benchmarks.fits import read_csv
from benchmarks.room import Point, Score, main, permutations, ratio, room_closed, summary, table_rows
from benchmarks.source import Cell, How, Source, fit_auto, fit_rungs

import sarb
from tests.benchmarks.small import DEMO

#: figures of closing-the-room.md
FOUND = {
    Point(10.0, 224, "probe"): Score(45.8, 0.4, (21, 22, 23)),
    Point(10.0, 224, "names"): Score(53.4, 0.3, (21, 22, 23)),
    Point(10.0, 320, "names"): Score(55.4, 0.2, (21, 22, 23)),
    Point(100.0, 224, "probe"): Score(57.8, float("nan"), (21,)),
    Point(100.0, 320, "names"): Score(63.5, float("nan"), (21,)),
}


def test_room_and_ratio_are_those_of_the_study():
    names = Point(10.0, 224, "names")
    assert room_closed(FOUND, names) == pytest.approx(63, abs=0.5)
    larger = names._replace(image_size=320)
    assert room_closed(FOUND, larger) == pytest.approx(80, abs=0.5)
    assert ratio(FOUND, larger) == pytest.approx(87.2, abs=0.1)
    assert ratio(FOUND, names) is None
    assert room_closed(FOUND, Point(100.0, 320, "names")) is None
    assert room_closed({names: FOUND[names]}, names) is None


def test_the_tables_have_every_share_and_size():
    text = summary(FOUND)
    assert "| names, 320 px | 55.40 ± 0.20 | 63.50 |" in text
    assert "| names, 320 px | 80 | – |" in text
    assert "| names, 320 px | 87.2 | 100.0 |" in text
    assert "| strict, 224 px | – | – |" in text
    rows = table_rows(FOUND, "test", "coco256")
    assert [row["sd"] for row in rows] == ["0.30", "0.40", "0.20", "", ""]


def test_wrong_names_may_cost_half_a_point():
    right = Score(50.0, 0.1, (21, 22))
    at = Point(10.0, 224, "no-names")
    assert permutations({at: right}) == ""
    wrong = at._replace(model="names permuted 1")
    assert "worst -0.40 mAP, at most 0.5" in permutations({at: right, wrong: Score(49.6, 0.1, (21, 22))})
    assert "worst -0.60 mAP, MORE THAN 0.5" in permutations({at: right, wrong: Score(49.4, 0.1, (21, 22))})


def test_a_run_writes_rows_once_and_resumes(tmp_path, capsys):
    out = tmp_path / "room.csv"
    command = ["--data", "demo", "--out", str(out), "--masks", "1,2", "--sizes", "48,64", "--develop", *DEMO]
    assert main([*command, "--shares", "10", "--permute", "1"]) == 0
    assert "permuted names: worst" in capsys.readouterr().out
    models = ["probe", "strict", "no-names", "names"]
    rows = read_csv(out)
    assert [row["model"] for row in rows] == [
        *models,
        *models,
        "names permuted 1",
        "names permuted 1",
        *models * 2,
    ]
    assert [row["image_size"] for row in rows] == 10 * ["48"] + 8 * ["64"]
    assert {row["split"] for row in rows} == {"develop"}
    before = out.read_text(encoding="utf-8")
    main([*command, "--shares", "10"])
    assert out.read_text(encoding="utf-8") == before  # seconds too: nothing ran again
    main([*command, "--shares", "100"])
    assert {row["mask"] for row in read_csv(out) if row["cell"] == "demo/100"} == {"1"}
    table = read_csv(tmp_path / "room-table.csv")
    assert len(table) == 2 * 2 * len(models) + 1
    assert all(row["ratio"] for row in table if row["model"] in models)


def test_permuted_names_reach_the_ladder_and_the_probe_is_alone(monkeypatch):
    source = Source(sarb.load("demo", train=40, test=16, size=64), How(True, 0, "tiny", 64))
    seen = []
    monkeypatch.setattr(
        "sarb.methods.auto.fit_ladder",
        lambda *given, fit=sarb.auto.ladder.fit_ladder, **options: (
            seen.append(given[1]) or fit(*given, **options)
        ),
    )
    cell = Cell("demo", 0, 0, 0.5)
    for permutation in (None, 1, 1, 2):
        fit_auto(source, cell, 1, "names", permutation)
    plain, first, again, second = seen
    assert sorted(first.categories) == sorted(plain.categories)
    assert first.categories == again.categories
    assert len({tuple(each.categories) for each in (plain, first, second)}) == 3
    np.testing.assert_array_equal(plain.values, first.values)
    assert fit_rungs(source, cell, 1, "strict", ()).note.endswith(": probe")
