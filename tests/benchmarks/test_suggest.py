"""The benchmark of suggest: its cells, one round on a few demo images, and the table."""

import csv

import numpy as np
import pytest
from benchmarks.suggest import Ours, budget, grid, main
from benchmarks.suggest_tables import CELL_COLUMNS, draw, summary
from PIL import Image

from sarb.labels import LabelMatrix
from tests.benchmarks.small import DEMO


def rows(file):
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_the_grid_has_all_cells_of_the_acceptance():
    names = [(model, cell.name) for model, cell in grid(scenes=False)]
    wanted = {(data, known) for data in ("coco256-80", "coco256-5", "demo") for known in ("5", "10", "30")}
    for model in ("auto", "Ours"):
        assert wanted <= {tuple(cell.split("/")) for each, cell in names if each == model}
    assert len(names) == len(set(names)) == 21
    assert ("auto", "scenes5/5") in [(model, cell.name) for model, cell in grid(scenes=True)]


@pytest.mark.parametrize(("images", "expected"), [(300, 9), (100_000, 2000)])
def test_a_round_is_one_percent_of_the_entries(images, expected):
    assert budget(LabelMatrix(np.zeros((images, 3)), list("abc"))) == expected


@pytest.mark.parametrize("develop", [True, False])
def test_a_round_of_the_default(tmp_path, capsys, develop):
    out = tmp_path / "suggest.csv"
    command = [
        "--out",
        str(out),
        "--cells",
        "demo/30",
        "--models",
        "auto",
        "--masks",
        "1",
        "--image-size",
        "64",
        *DEMO,
    ]
    command += ["--develop"] * develop
    assert main([*command, "--fits", "start,random"]) == 0
    assert [row["model"] for row in rows(out)] == ["auto start", "auto random"]
    assert not (tmp_path / "suggest-cells.csv").exists()
    main(command)
    before = out.read_text(encoding="utf-8")
    (cell,) = rows(tmp_path / "suggest-cells.csv")
    found = {row["model"]: row for row in rows(out)}
    asked = {
        name: dict(part.split("=") for part in found[f"auto {name}"]["note"].split())
        for name in ("random", "suggest")
    }
    count = "10" if develop else "12"  # 1 % of 32 or 40 images with 30 categories
    assert asked["random"]["asked"] == asked["suggest"]["asked"] == cell["asked"] == count
    assert float(cell["predicted"]) == pytest.approx(float(asked["suggest"]["predicted"]), abs=0.01)
    gain = float(found["auto suggest"]["mAP"]) - float(found["auto random"]["mAP"])
    assert float(cell["gain"]) == pytest.approx(gain, abs=0.01)
    main(command)
    assert out.read_text(encoding="utf-8") == before  # nothing ran again
    assert "demo/30" in capsys.readouterr().out
    assert (tmp_path / "suggest.png").read_bytes().startswith(b"\x89PNG")


def test_ours_is_calibrated_on_labels_it_has_not_seen(monkeypatch):
    labels = LabelMatrix(np.random.RandomState(0).randint(-1, 2, (30, 2)), ["a", "b"])
    seen = []
    monkeypatch.setattr(Ours, "train", lambda self, source, cell, mask, known: seen.append(known) or (0, 0))
    found = Ours({})(None, None, 1, labels, True)
    first, second = seen
    assert (first.values == labels.values).all()
    assert found.judged.any() and not second.known[found.judged].any()
    assert (second.known | found.judged == labels.known).all()


def test_summary_says_where_suggest_is_worse():
    row = dict.fromkeys(CELL_COLUMNS, "1") | {
        "cell": "demo/5",
        "model": "auto",
        "low": "-2.00",
        "high": "-0.10",
    }
    assert "worse than random: auto demo/5" in summary([row])
    assert "worse than random in no cell" in summary([{**row, "high": "+0.10"}])


def test_the_picture_shows_all_panels(tmp_path):
    numbers = {"gain": "+1.00", "low": "+0.50", "high": "+1.50", "predicted": "+0.80"}
    cells = [("auto", "demo/5"), ("auto", "demo/30"), ("Ours", "demo/5"), ("auto", "coco256-80/5")]
    widths = []
    for count in (3, 4):
        file = tmp_path / f"{count}.png"
        draw([{"model": model, "cell": cell, **numbers} for model, cell in cells[:count]], file)
        with Image.open(file) as picture:
            widths.append(picture.width)
            assert picture.convert("RGB").getcolors(1) is None
    assert widths[1] > widths[0]
