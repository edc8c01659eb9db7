"""The probe on known entries only."""

import numpy as np

from sarb.auto.features import fit_projection
from sarb.auto.parts import Parts
from sarb.auto.probe import Setting, compare, fit_linear, row_space
from sarb.labels import LabelMatrix
from tests.auto.made import made


def _features(pooled):
    return fit_projection(pooled, 16)(pooled)


def _with(labels, values):
    return LabelMatrix(values, labels.categories, labels.paths)


def test_unknown_entries_contribute_exactly_nothing():
    pooled, labels, _, _, _ = made()
    features = _features(pooled)
    parts = Parts.of(labels, 3)
    before = fit_linear(features, parts, 0.3)
    other = features.copy()
    unknown = (labels.values == 0).all(1)
    assert unknown.any()
    other[unknown] = 1e6
    after = fit_linear(other, parts, 0.3)
    np.testing.assert_array_equal(before.weight, after.weight)
    np.testing.assert_array_equal(before.bias, after.bias)


def test_a_model_does_not_see_the_labels_of_its_part():
    pooled, labels, _, _, _ = made()
    parts = Parts.of(labels, 3)
    turned = Parts(np.where(parts.numbers == 1, -parts.values, parts.values), parts.numbers, 3)
    before = fit_linear(_features(pooled), parts, 0.3)
    after = fit_linear(_features(pooled), turned, 0.3)
    np.testing.assert_allclose(before.weight[1], after.weight[1], atol=1e-6)
    assert np.abs(before.weight[0] - after.weight[0]).max() > 0.01


def test_compare_gives_the_held_out_scores_of_the_fits():
    pooled, labels, _, _, _ = made()
    features = _features(pooled)
    parts = Parts.of(labels, 3)
    evidence = np.random.RandomState(3).randn(4, *labels.shape)
    grid = compare(features, parts, [Setting(0.1), Setting(1.0, 0.5)], evidence)
    fitted = fit_linear(features, parts, 1.0, 0.5 * evidence).scores(features) + 0.5 * evidence
    known = parts.known
    np.testing.assert_allclose(grid[1][known], parts.held_out(fitted)[known], atol=1e-3)
    assert (grid[:, ~known] == 0).all()


def test_a_category_with_one_kind_of_label_keeps_its_rate():
    pooled, labels, _, _, _ = made()
    values = labels.values.copy()
    values[:, 0] = np.minimum(values[:, 0], 0)
    values[:, 1] = np.maximum(values[:, 1], 0)
    values[:, 2] = 0
    parts = Parts.of(_with(labels, values), 3)
    found = fit_linear(_features(pooled), parts, 0.3)
    assert (found.weight[:, :3] == 0).all()
    assert np.isfinite(found.bias).all()
    assert (found.bias[:, 0] < found.bias[:, 2]).all()
    assert (found.bias[:, 2] < found.bias[:, 1]).all()
    assert (found.weight[:, 3] != 0).any()


def test_narrow_features_give_the_same_scores():
    pooled, labels, *_ = made(images=60, width=200)
    parts = Parts.of(labels, 5, 0)
    x = pooled - pooled.mean(0)
    settings = [Setting(1.0), Setting(30.0)]
    plain = compare(x, parts, settings, steps=200)
    narrow = compare(x, parts, settings, steps=200, narrow=True)
    assert row_space(x[:20]).shape == (20, 20) and row_space(x[:, :30]).shape == (60, 30)
    np.testing.assert_allclose(narrow, plain, atol=0.02)  # of logits of up to 6; both stop a little early
