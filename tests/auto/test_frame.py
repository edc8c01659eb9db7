"""The ladder between the ten-line baseline and the finished model."""

from dataclasses import replace

import numpy as np
import pytest

from sarb.auto.frame import framed
from sarb.auto.judge import Judge
from sarb.auto.ladder import fit_ladder
from sarb.auto.parts import Parts
from sarb.auto.tenlines import ten_lines
from sarb.labels import LabelMatrix
from sarb.metrics import average_precision
from tests.auto.made import made


def test_baseline_and_final_model_frame_the_steps():
    pooled, labels, _, concepts, ties = made()
    steps = fit_ladder(pooled, labels, concepts, ties, width=16)
    ladder = framed(steps, pooled, Parts.of(labels, 5, 0))
    assert ladder.rungs[1:-1] == steps.rungs and ladder.rows[1:-1] != steps.rows
    first = ladder.rungs[0]
    last = ladder.rungs[-1]
    assert (first.name, first.kept, last.name, last.kept) == ("ten lines", False, "final", True)
    known = 100 * np.nanmean(average_precision(ladder.out_of_fold, labels.values))
    assert last.mean_ap == pytest.approx(known)
    assert last.gain == pytest.approx(first.loss - last.loss, abs=0.02)
    row = ladder.rows[-1]
    assert row["ahead"] == pytest.approx(last.mean_ap - first.mean_ap, abs=1e-5)
    assert row["ahead_low"] < row["ahead"] < row["ahead_high"]
    assert row["mean_ap_low"] < row["mean_ap"] < row["mean_ap_high"]
    assert np.isnan(ladder.rows[0]["ahead"]) and [set(each) for each in ladder.rows] == [set(row)] * len(
        ladder.rows
    )


def test_without_a_baseline_the_rest_is_the_same(monkeypatch):
    pooled, labels, _, concepts, ties = made()
    parts = Parts.of(labels, 5, 0)
    steps = fit_ladder(pooled, labels, concepts, ties, width=16)
    monkeypatch.setattr("sarb.auto.tenlines.MOST_ENTRIES", 1)
    ladder = framed(steps, pooled, parts)
    assert ladder.rungs[:-1] == steps.rungs and ladder.rungs[-1].name == "final"
    assert np.isnan(ladder.rungs[-1].gain) and np.isnan(ladder.rows[-1]["ahead"])


@pytest.mark.parametrize("images", [2, 3, 6])
def test_very_few_images_and_nothing_known(images):
    pooled, labels, _, concepts, ties = made(images=images, categories=1, known=1.0)
    empty = LabelMatrix(np.zeros_like(labels.values), labels.categories, labels.paths)
    for given in (labels, empty):
        ladder = framed(fit_ladder(pooled, given, concepts, ties), pooled, Parts.of(given, 5, 0))
        assert ladder.rungs[0].name == "ten lines" and np.isfinite(ladder.rungs[-1].loss)


def test_the_baseline_itself_gains_nothing_over_the_baseline():
    pooled, labels, _, concepts, ties = made(images=60, known=0.3)
    parts = Parts.of(labels, 5, 0)
    judge = Judge.of(parts)
    scores = ten_lines(pooled, parts).scores
    slope, shift = judge.temper(scores)
    same = replace(fit_ladder(pooled, labels, concepts, ties, width=8), out_of_fold=slope * scores + shift)
    last = framed(same, pooled, parts).rungs[-1]
    assert (last.gain, last.low, last.high) == (0, 0, 0)
