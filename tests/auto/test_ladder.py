"""The whole ladder on made-up data."""

import numpy as np
import pytest

from sarb.auto.evidence import ConceptScores
from sarb.auto.ladder import RUNGS, fit_ladder
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.metrics import average_precision
from tests.auto.made import made


@pytest.mark.parametrize(
    ("claims", "rungs"),
    [
        ("strict", ["probe", "student", "neighbours"]),
        ("no-names", ["probe", "bayes", "student", "neighbours"]),
        ("names", ["probe", "names", "bayes", "student", "neighbours"]),
    ],
)
def test_claims_decide_which_rungs_are_tried(claims, rungs):
    pooled, labels, full, concepts, ties = made()
    ladder = fit_ladder(pooled, labels, concepts, ties, claims=claims, width=16)
    assert [row["rung"] for row in ladder.rows if row["rung"] != "ridge"] == rungs
    assert np.isfinite(ladder.out_of_fold).all()
    assert ladder(pooled, concepts).shape == full.shape
    hidden = np.where(labels.values == 0, full, 0)
    rate = (full > 0).mean()
    assert np.nanmean(average_precision(ladder.out_of_fold, hidden)) > rate + 0.2
    for rung in ladder.rungs:
        assert rung.kept == (rung.name == "probe" or rung.gain > 0)
        assert rung.low <= rung.gain <= rung.high


def test_the_same_data_give_the_same_ladder():
    pooled, labels, _, concepts, ties = made()
    first = fit_ladder(pooled, labels, concepts, ties, width=16)
    second = fit_ladder(pooled, labels, concepts, ties, width=16)
    np.testing.assert_array_equal(first.out_of_fold, second.out_of_fold)
    np.testing.assert_array_equal(first(pooled, concepts), second(pooled, concepts))


def test_held_out_labels_leave_no_trace():
    """On features without information out-of-fold scores must not know the labels, whatever the rung."""
    _, labels, full, _, _ = made(images=200, known=1.0)
    noise = np.random.RandomState(5).rand(200, 32).astype(np.float32)
    random = np.random.RandomState(6).rand(200, 10).astype(np.float32)
    concepts = ConceptScores(random, random, random)
    ladder = fit_ladder(noise, labels, concepts, np.eye(4, 10) > 0, width=16)
    found = np.nanmean(average_precision(ladder.out_of_fold, full))
    assert found < (full > 0).mean() + 0.1


def test_names_that_help_get_weight_and_wrong_ones_do_not_hurt():
    pooled, labels, full, concepts, ties = made(images=300, known=0.3)
    noise = np.random.RandomState(9).rand(*pooled.shape).astype(np.float32)
    right = fit_ladder(noise, labels, concepts, ties, width=16, neighbours=0)
    wrong = fit_ladder(noise, labels, concepts, ties[:, ::-1], width=16, neighbours=0)
    without = fit_ladder(noise, labels, concepts, None, width=16, neighbours=0)
    scores = [np.nanmean(average_precision(each.out_of_fold, full)) for each in (right, wrong, without)]
    assert right.name_weight.mean() > 0.3
    assert scores[0] > scores[2]
    assert scores[1] > scores[2] - 0.02


@pytest.mark.parametrize("images", [2, 3, 6])
def test_very_few_images_and_one_category(images):
    pooled, labels, _, concepts, ties = made(images=images, categories=1, known=1.0)
    ladder = fit_ladder(pooled, labels, concepts, ties)
    assert np.isfinite(ladder.out_of_fold).all()
    assert np.isfinite(ladder(pooled, concepts)).all()


def test_nothing_known_at_all():
    pooled, labels, _, concepts, ties = made(images=12)
    empty = LabelMatrix(np.zeros_like(labels.values), labels.categories, labels.paths)
    ladder = fit_ladder(pooled, empty, concepts, ties, width=4)
    assert np.isfinite(ladder(pooled, concepts)).all()


def test_there_is_no_student_where_everything_is_known():
    pooled, labels, _, _, _ = made(known=1.0)
    ladder = fit_ladder(pooled, labels, None, None, width=8)
    assert [row["rung"] for row in ladder.rows] == ["probe", "neighbours"]


def test_no_concepts_leaves_the_strict_rungs():
    pooled, labels, _, _, _ = made()
    ladder = fit_ladder(pooled, labels, None, None, width=8)
    assert [row["rung"] for row in ladder.rows] == ["probe", "student", "neighbours"]


def test_a_wrong_claim_lists_the_right_ones():
    pooled, labels, _, concepts, ties = made(images=6)
    with pytest.raises(ConfigError, match="no-names"):
        fit_ladder(pooled, labels, concepts, ties, claims="all")
    assert isinstance(concepts, ConceptScores)


@pytest.mark.parametrize("rungs", [(), ("names",), ("bayes", "student"), ("neighbours",)])
def test_only_the_rungs_that_are_named_are_tried(rungs):
    pooled, labels, _, concepts, ties = made()
    ladder = fit_ladder(pooled, labels, concepts, ties, width=16, rungs=rungs, force=True)
    assert [row["rung"] for row in ladder.rows] == ["probe", *rungs]
    assert all(rung.kept for rung in ladder.rungs)
    assert (ladder.names is not None) == ("names" in rungs)
    assert (ladder.bayes is not None) == ("bayes" in rungs)
    assert "neighbours" in rungs or not len(ladder.bank)


def test_naming_all_rungs_changes_nothing():
    pooled, labels, _, concepts, ties = made()
    plain = fit_ladder(pooled, labels, concepts, ties, width=16)
    named = fit_ladder(pooled, labels, concepts, ties, width=16, rungs=RUNGS)
    np.testing.assert_array_equal(named(pooled, concepts), plain(pooled, concepts))


def test_a_forced_rung_is_used_though_it_does_not_help():
    pooled, labels, _, _, _ = made(images=60)
    noise = np.random.RandomState(1).rand(*pooled.shape).astype(np.float32)
    chosen = fit_ladder(noise, labels, width=16)
    forced = fit_ladder(noise, labels, width=16, force=True)
    assert [rung.kept for rung in chosen.rungs] == [True, False, False]
    assert [rung.kept for rung in forced.rungs] == [True, True, True]


def test_a_wrong_rung_lists_the_right_ones():
    pooled, labels, _, concepts, ties = made(images=6)
    with pytest.raises(ConfigError, match="student"):
        fit_ladder(pooled, labels, concepts, ties, rungs=["pupil"])
