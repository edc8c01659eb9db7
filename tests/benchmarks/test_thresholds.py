"""A row of the table of thresholds, from stored scores."""

import numpy as np
import pytest
from benchmarks.thresholds import RULES, measured, of1

import sarb
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


@pytest.fixture
def fit(tmp_path):
    """Held-out, training and test logits of made labels, as a fit stores them."""
    scores, labels, truth, _ = make(400, [1.5, 1.0], [-2.0, -1.0], known=0.4)
    file = tmp_path / "fit.npz"
    stored = {"held": scores.logits, "train": scores.logits, "test": scores.logits}
    np.savez(file, labels=labels.values, answers=truth.values, **stored)
    return file


def test_a_row_has_what_calibrate_decides(fit):
    row = measured(fit)
    stored = np.load(fit)
    labels = LabelMatrix(stored["labels"], ["c0", "c1"])
    found = sarb.calibrate(sarb.Scores(stored["held"], ["c0", "c1"]), labels)
    said = found(sarb.Scores(stored["test"], ["c0", "c1"])) >= found.thresholds
    present = stored["answers"] > 0
    own = 200 * (said & present).sum() / (said.sum() + present.sum())
    assert float(row["chosen"]) == pytest.approx(
        own, abs=0.5
    )  # rescaling by equal scores changes next to nothing
    assert row["known"] == labels.known.sum() and {float(row[rule]) >= 0 for rule in RULES} == {True}


def test_of1_by_hand():
    p = np.array([[0.9, 0.2], [0.6, 0.7]])
    assert of1(p, np.full(2, 0.5), np.array([[1, 1], [-1, 1]])) == pytest.approx(100 * 2 * 2 / (3 + 3))
