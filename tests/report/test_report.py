"""Report: prints, saves and plots itself."""

import csv
import json
import math

import numpy as np
import pytest
from PIL import Image

from sarb.errors import SarbError
from sarb.metrics import evaluate
from sarb.report import Report
from sarb.scores import Scores
from tests.report.conftest import make_case


@pytest.fixture
def case():
    return make_case(6)


def test_numbers_are_those_of_evaluate(case):
    scores, labels = case
    report = Report.of(scores, labels, name="mine")
    low, high = (report.metrics.pop(name) for name in ("mAP_low", "mAP_high"))
    assert report.metrics == evaluate(scores.logits, labels)
    assert low < report.mAP < high
    assert Report.of(scores, labels, resamples=0).metrics == report.metrics
    assert report.mAP == report["mAP"] == report.metrics["mAP"]
    assert [row["category"] for row in report.per_category] == list(labels.categories)
    defined = [row["AP"] for row in report.per_category if not math.isnan(row["AP"])]
    assert report.mAP == pytest.approx(np.mean(defined))
    with pytest.raises(KeyError, match="Did you mean 'OF1'"):
        report["OF2"]


def test_printed_table_holds_the_numbers_and_odd_names(case):
    report = Report.of(*case, name="[red]mine[/red]")
    text = str(report)
    assert f"mAP {report.mAP:.1f}" in text and f"{report['CF1_top3_raw']:.1f}" in text
    assert (
        "[red]mine[/red]" in text
        and "[bold]rich[/bold]" in text
        and "<script>alert(1)</script>" in text
        and "\x1b" not in text
    )
    assert "1 without a known positive" in text
    assert repr(report).startswith("Report([red]mine[/red]: mAP ")


def test_a_long_list_is_cut_to_best_and_worst():
    report = Report.of(*make_case(60, 40))
    assert "more …" in str(report) and len(str(report).splitlines()) < 32


def test_save_writes_numbers_table_and_pictures(case, tmp_path):
    report = Report.of(*case, name="mine")
    report.save(tmp_path / "out")
    stored = json.loads((tmp_path / "out/metrics.json").read_text(), parse_constant=pytest.fail)
    assert stored == json.loads(report.to_json())
    assert (
        stored["mAP"] == report.mAP and stored["per_category"][-1]["AP"] is None and stored["name"] == "mine"
    )
    with (tmp_path / "out/per_category.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["category"] for row in rows] == [row["category"] for row in report.per_category]
    assert float(rows[0]["AP"]) == report.per_category[0]["AP"] and rows[-1]["AP"] == ""
    for name in ("per_category_ap.png", "precision_recall.png"):
        with Image.open(tmp_path / "out/plots" / name) as picture:
            assert picture.format == "PNG"
    assert report.plot(tmp_path / "ap.png").stat().st_size > 1000


def test_arrays_are_accepted_and_other_categories_are_not(case):
    scores, labels = case
    assert Report.of(scores, labels.values).metrics == Report.of(scores, labels).metrics
    with pytest.raises(SarbError, match=r"only on one side: .*dog"):
        Report.of(Scores(scores.logits, ["dog", *labels.categories[1:]]), labels)
    with pytest.raises(SarbError, match="different order"):
        Report.of(Scores(scores.logits, labels.categories[::-1]), labels)


def test_nothing_known_still_prints_and_saves(tmp_path):
    report = Report.of(Scores([[1.0]], ["cat"]), [[0]])
    assert "mAP n/a" in str(report)
    assert json.loads(report.save(tmp_path).joinpath("metrics.json").read_text())["mAP"] is None


@pytest.mark.parametrize(("positives", "rough"), [(99, True), (100, False)])
def test_few_positives_are_a_caution(positives, rough):
    labels = np.full((120, 1), -1)
    labels[:positives] = 1
    report = Report.of(Scores(np.linspace(-1, 1, 120)[:, None], ["cat"]), labels)
    assert ("rough: only 99 known positives in the test images" in str(report)) == rough
