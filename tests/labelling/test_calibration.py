import json

import numpy as np
import pytest

import sarb
from sarb.errors import ConfigError, DataError, SarbError
from sarb.labelling.calibration import Calibration, calibrate
from sarb.labelling.reliability import brier_score, calibration_error
from sarb.labels import LabelMatrix
from sarb.runs.lookup import load_calibration
from tests.labelling.made_scores import make


@pytest.fixture(scope="module")
def case():
    return make(3_000, np.full(12, 0.5), np.linspace(-2.5, -1, 12), known=0.15)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_better_than_before_and_than_the_base_rate_on_the_unknown(case, method):
    scores, labels, truth, _ = case
    found = calibrate(scores, labels, method=method)
    unseen = LabelMatrix(np.where(labels.known, 0, truth.values), labels.categories, labels.paths)
    for measure in (calibration_error, brier_score):
        before, after = measure(scores.probabilities, unseen).mean(), measure(found(scores), unseen).mean()
        assert after < 0.6 * before
    base = np.tile(labels.positives / labels.known.sum(0), (len(labels), 1))
    assert brier_score(found(scores), unseen).mean() < brier_score(base, unseen).mean()


def test_figures_are_measured_on_labels_the_fit_has_not_seen():
    """Random labels: a fit judged on its own labels would seem better than the base rate."""
    random = np.random.default_rng(0)
    labels = LabelMatrix(np.where(random.random((100, 5)) < 0.5, 1, -1), list("abcde"))
    scores = sarb.Scores(random.normal(size=(100, 5)), list("abcde"))
    found = calibrate(scores, labels, method="isotonic")
    base = found.figures["brier_score"]["base_rate"]
    assert (
        brier_score(found(scores), labels).mean() < 0.97 * base < base < found.figures["brier_score"]["after"]
    )


def test_temperature_is_one_slope(case):
    found = calibrate(*case[:2], method="temperature")
    assert len(set(found.slope.tolist())) == 1 and not found.offset.any()


def test_isotonic_rises_and_rare_categories_share_a_curve(case):
    scores, labels, _, _ = case
    values = labels.values.copy()
    values[200:, :2] = 0
    found = calibrate(scores, LabelMatrix(values, labels.categories, labels.paths), method="isotonic")
    first, second, other = found.knots[0], found.knots[1], found.knots[11]
    assert np.array_equal(first[0], second[0]) and not np.array_equal(first[1], other[1])
    p = found(scores)
    order = np.argsort(scores.logits[:, 11])
    assert (np.diff(p[order, 11]) >= 0).all() and p.min() > 0 and p.max() < 1


@pytest.mark.parametrize("method", ["platt", "temperature", "isotonic"])
def test_saves_and_loads(case, method, tmp_path):
    found = calibrate(*case[:2], method=method, source="the tests")
    found.save(tmp_path / "thresholds.json")
    again = load_calibration(tmp_path)
    assert np.array_equal(again(case[0]), found(case[0]))
    assert np.array_equal(again.counts, found.counts) and np.array_equal(again.thresholds, found.thresholds)
    assert (again.method, again.source, again.figures["brier_score"]) == (
        method,
        "the tests",
        found.figures["brier_score"],
    )
    stored = json.loads((tmp_path / "thresholds.json").read_text(encoding="utf-8"))
    row = stored["categories"][3]
    assert (row["category"], row["positives"]) == ("thing 3", int(case[1].positives[3]))
    assert set(stored["calibration_error"]) == {"before", "after", "base_rate"}


def test_found_in_run_and_model_folder(case, tmp_path):
    assert load_calibration(tmp_path) is None
    calibrate(*case[:2]).save(tmp_path / "model" / "thresholds.json")
    assert isinstance(load_calibration(tmp_path), Calibration)
    assert isinstance(load_calibration(tmp_path / "model"), Calibration)
    (tmp_path / "thresholds.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SarbError, match="sarb calibrate"):
        load_calibration(tmp_path)


def test_categories_in_another_order(case):
    scores, labels, _, _ = case
    found = calibrate(scores, labels)
    turned = sarb.Scores(scores.logits[:, ::-1], scores.categories[::-1], scores.paths)
    assert np.array_equal(found(turned), found(scores)[:, ::-1])
    with pytest.raises(SarbError, match="Did you mean 'thing 11'"):
        found(sarb.Scores([[0.0]], ["thing 111"]))


def test_scores_and_decisions(case):
    scores, labels, _, _ = case
    found = calibrate(scores, labels)
    np.testing.assert_allclose(found.scores(scores).probabilities, found(scores), atol=1e-6)
    row = found.decided(scores)[0]
    expected = {
        name
        for name, p, t in zip(scores.categories, found(scores)[0], found.thresholds, strict=True)
        if p >= t
    }
    assert {name for name, _ in row} == expected
    assert [p for _, p in row] == sorted((p for _, p in row), reverse=True)


def test_refuses_what_it_cannot_fit(case):
    scores, labels, _, _ = case
    with pytest.raises(DataError, match="both kinds"):
        calibrate(scores, LabelMatrix(np.minimum(labels.values, 0), labels.categories, labels.paths))
    with pytest.raises(ConfigError, match="Did you mean 'platt'"):
        calibrate(scores, labels, method="plat")
    with pytest.raises(DataError, match="same images"):
        calibrate(scores, labels.take(np.arange(5)))
    with pytest.raises(DataError, match="categories"):
        calibrate(scores, LabelMatrix(labels.values, [f"x{n}" for n in range(12)], labels.paths))


def test_a_handful_of_labels_is_enough():
    labels = LabelMatrix([[1, 0], [-1, 0], [0, 0]], ["a", "b"])
    found = calibrate(sarb.Scores([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], ["a", "b"]), labels)
    assert np.isfinite(found(sarb.Scores([[5.0, 5.0]], ["a", "b"]))).all()
