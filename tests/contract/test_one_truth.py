"""One truth: report, evaluate, predict, predict --onnx, Try and complete give the same numbers.

Each way of looking at a model is asked about the same 50 test images, before and after ``sarb calibrate``: for
the probability of every label, for the decision, and for the metrics that follow from them.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import sarb
from sarb.metrics import evaluate
from sarb.runs.folder import RunFolder
from sarb.serve.api_try import MAX_PHOTOS
from sarb.workflows.training import train_session
from tests.conftest import draw_squares
from tests.documentation.tools import run as command

IMAGES = 50
#: the report was made from the fp16 feature cache, and ONNX may differ from torch by 1e-4 in a logit
CLOSE = 1e-3


class Said(NamedTuple):
    """What one of the six says: (N, C) probabilities and decisions."""

    probabilities: Any
    present: Any


class Asked:
    """A run and the ways to ask about its test images."""

    def __init__(self, folder: Path, test: sarb.Dataset, monkeypatch: Any, capsys: Any, out: Path) -> None:
        self.run = str(folder)
        self.test = test
        self.files = [str(path) for path in test.paths]
        self.names = test.categories
        self.out = out
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def sarb(self, *words: str) -> str:
        """Run a command; return what it prints on stdout."""
        code = command(["sarb", *words], self._monkeypatch)
        said = self._capsys.readouterr()
        assert code == 0, said.err
        self.told = said.err
        return str(said.out)

    def predict(self, *model: str) -> Said:
        table = self.out / "predictions.csv"
        self.sarb("predict", *model, *self.files, "--out", str(table))
        rows = _rows(table)
        assert [row["file_name"] for row in rows] == self.files
        decided = [row["labels"] for row in json.loads(self.sarb("predict", *model, *self.files, "--json"))]
        return Said(
            np.array([[float(row[name]) for name in self.names] for row in rows]),
            np.array([[name in labels for name in self.names] for labels in decided]),
        )

    def onnx(self) -> Said:
        file = str(self.out / "model.onnx")
        self.sarb("export", self.run, file)
        return self.predict("--onnx", file)

    def page(self) -> Said:
        from fastapi.testclient import TestClient

        from sarb.serve.app import create_app
        from sarb.serve.recogniser import Recogniser

        app = create_app(Path(self.run), Recogniser(sarb.load_model(self.run)))
        found = []
        with TestClient(app, base_url="http://127.0.0.1:8000") as client:
            for start in range(0, IMAGES, MAX_PHOTOS):
                photos = [Path(file) for file in self.files[start : start + MAX_PHOTOS]]
                files = [("photos", (photo.name, photo.read_bytes())) for photo in photos]
                found += client.post("/api/predict", files=files).json()
        labels = [{entry["label"]: entry for entry in photo["labels"]} for photo in found]
        return Said(
            np.array([[row[name]["probability"] for name in self.names] for row in labels]),
            np.array([[row[name]["present"] for name in self.names] for row in labels]),
        )

    def complete(self) -> Said:
        """Ask for the same images in a table of their own in which nothing is known but one label."""
        gaps = self.test.root / "gaps.csv"
        blank = [[Path(file).name, *("" for _ in self.names)] for file in self.files]
        blank[0][1] = "1"
        with gaps.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["file_name", *self.names], *blank])
        table = self.out / "filled.csv"
        words = ("--data", str(gaps), "-o", "encoding=binary", "--out", str(table), "--overwrite")
        self.sarb("complete", self.run, *words)
        rows = {(row["file_name"], row["label"]): row for row in _rows(table)}
        found = [[rows[Path(file).name, name] for name in self.names] for file in self.files]
        present = np.array([[row["filled"] == "present" for row in line] for line in found])
        # the one that was known is not filled
        first = found[0][0]
        present[0, 0] = float(first["calibrated"]) >= float(first["threshold"])
        return Said(np.array([[float(row["calibrated"]) for row in line] for line in found]), present)

    def evaluate(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.sarb("evaluate", self.run, "--json"))
        return found

    def report(self) -> dict[str, Any]:
        page = RunFolder(self.run).report_page.read_text(encoding="utf-8")
        block = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.S)
        assert block is not None
        found: dict[str, Any] = json.loads(block[1])
        return found


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    (tmp_path / "squares").mkdir()
    source = draw_squares(tmp_path / "squares", 60, IMAGES) / "labels.csv"
    folder, _ = train_session(
        source=str(source),
        data_options={"encoding": "binary"},
        known=0.6,
        out=tmp_path / "run",
        given={"backbone": "tiny", "image_size": 64},
        quiet=True,
    )
    test = sarb.load(source, encoding="binary").test
    assert len(test) == IMAGES
    return Asked(folder, test, monkeypatch, capsys, tmp_path)


def check_all(asked: Asked) -> tuple[Said, dict[str, Any]]:
    """Ask all six, compare, and return what predict and evaluate say."""
    said = asked.predict(asked.run)
    for name, other in (("onnx", asked.onnx()), ("Try", asked.page()), ("complete", asked.complete())):
        np.testing.assert_allclose(other.probabilities, said.probabilities, atol=CLOSE, err_msg=name)
        np.testing.assert_array_equal(other.present, said.present, err_msg=name)
    numbers = asked.evaluate()
    report = asked.report()
    kept = {*numbers} & {*report} - {"name"}
    assert {key: numbers[key] for key in kept} == {key: report[key] for key in kept}
    decided = numbers.get("calibrated", numbers)
    expected = evaluate(np.where(said.present, 1.0, -1.0), asked.test.labels)
    for name in ("OP", "OR", "OF1", "CP", "CR", "CF1"):
        assert decided[name] == pytest.approx(expected[name]), name
    rows = {Path(file).name: row for row, file in enumerate(asked.files)}
    assert len(report["samples"]) == 12
    for sample in report["samples"]:
        for guess in sample["labels"]:
            place = rows[sample["file_name"]], asked.names.index(guess["label"])
            assert guess["probability"] == pytest.approx(said.probabilities[place], abs=CLOSE)
            assert (guess["mark"] == "missed") != said.present[place]
    return said, numbers


@pytest.mark.slow
def test_all_six_agree_before_and_after_calibrate(asked: Asked) -> None:
    model = sarb.load_model(asked.run)
    raw = sarb.predict(model, asked.files)
    before, numbers = check_all(asked)
    np.testing.assert_allclose(before.probabilities, raw.probabilities, atol=CLOSE)
    np.testing.assert_array_equal(before.present, raw.logits >= 0)
    assert "calibrated" not in numbers and "calibrated" not in asked.report()
    assert "probabilities: not calibrated; thresholds: 0.5 for all categories" in asked.report()["shown"]

    asked.sarb("calibrate", asked.run)
    after, calibrated = check_all(asked)
    calibration = sarb.load_calibration(asked.run)
    assert calibration is not None
    np.testing.assert_allclose(after.probabilities, calibration(raw), atol=CLOSE)
    np.testing.assert_array_equal(after.present, calibration.present(raw))
    assert np.abs(after.probabilities - before.probabilities).max() > 0.01
    assert (after.present != before.present).any()
    # the numbers of the paper stay, and both are named
    paper = [name for name in numbers if name not in ("per_category", "name")]
    assert {name: calibrated[name] for name in paper} == {name: numbers[name] for name in paper}
    assert "0.5 for all categories, as in the paper" in calibrated["reading"]
    assert calibrated["calibrated"]["reading"] == str(calibration) == asked.report()["shown"]
    assert calibrated["calibrated"]["mAP"] == pytest.approx(numbers["mAP"])
