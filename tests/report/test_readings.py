"""Decisions at 0.5 and at calibrated thresholds: measured on the same images, both named."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sarb.labelling.calibration import Calibration, calibrate
from sarb.labels import LabelMatrix
from sarb.report import Report
from sarb.report.readings import AT_HALF
from sarb.scores import Scores
from tests.labelling.made_scores import make


def hand():
    """Two categories, four images; the calibration says 0.25 where the network says 0.5."""
    scores = Scores([[0.0, 2.0], [0.0, -2.0], [1.0, -2.0], [-1.0, 2.0]], ["a", "b"])
    labels = LabelMatrix([[1, 1], [-1, 0], [1, -1], [1, -1]], ["a", "b"], scores.paths)
    third = -np.log(3.0)
    offset, thresholds = np.array([0.0, third]), np.array([0.9, 0.2])
    plain = Calibration.identity(["b", "a"])
    calibration = replace(plain, offset=offset, thresholds=thresholds, method="platt", source="the tests")
    return scores, labels, calibration


def test_both_are_measured():
    scores, labels, calibration = hand()
    report = Report.of(scores, labels, calibration=calibration)
    # a: present at 0.5 in images 0, 1, 2, two of them right; b: in images 0 and 3, one right
    assert report["OP"] == pytest.approx(60) and report["OR"] == pytest.approx(75)
    # calibrated: a in images 0, 1, 2 as before (0.25 ≥ 0.2); σ(2) = 0.88 < 0.9, so b never
    assert report.calibrated["OP"] == pytest.approx(100 * 2 / 3)
    assert report.calibrated["OR"] == pytest.approx(50)
    first, second = report.per_category
    assert (first["threshold"], second["threshold"]) == (0.2, 0.9)
    assert (second["precision"], second["precision_calibrated"]) == (50, 0)
    assert (second["recall"], second["recall_calibrated"]) == (100, 0)


def test_both_are_named_in_text_and_json():
    report = Report.of(*hand()[:2], calibration=hand()[2])
    lines = str(report).splitlines()
    named = {line.split("  ")[0]: line.split()[-6:] for line in lines if "≥" in line}
    assert named["probability ≥ 0.5, as in the paper"][:2] == ["60.0", "75.0"]
    assert named["calibrated ≥ its threshold"][:2] == ["66.7", "50.0"]
    assert "probabilities: calibrated (platt) on the tests; thresholds: one per category" in str(report)
    stored = json.loads(report.to_json())
    assert stored["reading"] == AT_HALF and stored["OP"] == report["OP"]
    assert stored["calibrated"]["reading"] == str(report.calibration)
    assert stored["calibrated"]["OP"] == report.calibrated["OP"]


def test_without_a_calibration_there_is_one_reading():
    scores, labels, _ = hand()
    report = Report.of(scores, labels, calibration=Calibration.identity(scores.categories))
    assert report.calibrated == {} and "calibrated" not in json.loads(report.to_json())
    assert "calibrated ≥" not in str(report)
    assert "probabilities: not calibrated; thresholds: 0.5 for all categories" in str(report)
    assert "threshold" not in report.per_category[0]


@pytest.mark.parametrize("method", ["platt", "temperature"])
def test_a_rising_curve_keeps_map(method):
    scores, labels, _, _ = make(300, [0.6, 1.5, 1.0], [-1.0, 0.5, 0.0])
    report = Report.of(scores, labels, calibration=calibrate(scores, labels, method=method))
    assert report.calibrated["mAP"] == pytest.approx(report.mAP, abs=1e-9)
    assert "ties some images" not in str(report)


def test_steps_of_an_isotonic_curve_make_ties_and_the_report_says_so():
    scores, labels, _, _ = make(300, [0.6, 1.5, 1.0], [-1.0, 0.5, 0.0])
    calibration = calibrate(scores, labels, method="isotonic")
    report = Report.of(scores, labels, calibration=calibration)
    assert len(np.unique(calibration(scores)[:, 0])) < len(np.unique(scores.logits[:, 0]))
    assert abs(report.calibrated["mAP"] - report.mAP) > 0.05
    assert f"mAP by calibrated probabilities is {report.calibrated['mAP']:.1f}" in str(report)
