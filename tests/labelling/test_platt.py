import numpy as np

from sarb.labelling import platt
from sarb.labelling.platt import SMALLEST, Extrapolation, Known, fit_platt, fit_temperature, sigmoid
from sarb.labels import LabelMatrix
from tests.labelling.made_scores import make


def entries(scores, labels):
    return Known.of(scores.logits, labels.values)


def test_sigmoid_does_not_overflow():
    assert sigmoid(np.array([-1e5, 0.0, 1e5])).tolist() == [0.0, 0.5, 1.0]


def test_finds_slope_and_offset():
    slope, offset = [0.5, 1.0, 2.0], [-1.0, 0.5, 1.0]
    scores, labels, _, _ = make(20_000, slope, offset)
    found = fit_platt(entries(scores, labels), 3).each
    np.testing.assert_allclose(found, np.stack([slope, offset], 1), atol=0.1)


def test_a_category_with_many_labels_is_plain_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    scores, labels, _, _ = make(20_000, [0.7, 0.7], [-2.0, -2.0], seed=3)
    plain = LogisticRegression(C=1e9).fit(scores.logits[:, :1], labels.values[:, 0])
    found = fit_platt(entries(scores, labels), 2).each[0]
    np.testing.assert_allclose(found, [plain.coef_[0, 0], plain.intercept_[0]], atol=0.03)


def test_few_labels_stay_at_the_shared_fit():
    scores, labels, _, _ = make(2_000, [0.6] * 12, [-1.5] * 12)
    values = labels.values.copy()
    values[4:, 0] = 0  # four labels, all against the scores
    values[:4, 0] = np.where(scores.logits[:4, 0] > 0, -1, 1)
    values[:, 1] = 0  # none at all
    found = fit_platt(entries(scores, LabelMatrix(values, labels.categories)), 12)
    np.testing.assert_allclose(found.shared, [0.6, -1.5], atol=0.15)
    np.testing.assert_allclose(found.each[1], found.shared, atol=1e-3)
    assert np.abs(found.each[0] - found.shared).max() < 0.6  # alone it goes to the other end, see below
    alone = fit_platt(
        entries(*part(scores, LabelMatrix(values, labels.categories, labels.paths), 0)), 1
    ).each[0]
    assert alone[0] < 0.5 * found.each[0, 0]


def test_the_data_say_how_far_categories_differ():
    alike = make(1_000, [1.0] * 20, [-1.0] * 20)
    apart = make(1_000, [1.0] * 20, np.linspace(-4, 2, 20))
    spreads = [np.sqrt(fit_platt(entries(*case[:2]), 20).spread[1]) for case in (alike, apart)]
    assert spreads[0] < 0.5 < 1.2 < spreads[1]


def test_shrinking_pays_for_rare_categories():
    """The mean distance to the true probabilities is smaller than that of separate fits."""
    slope, offset = np.full(30, 0.8), np.random.default_rng(0).normal(-3, 0.4, 30)
    scores, labels, _, truth = make(2_000, slope, offset, known=0.05)
    together = fit_platt(entries(scores, labels), 30).each
    apart = np.array([fit_platt(entries(*(part(scores, labels, c))), 1).each[0] for c in range(30)])
    errors = [
        np.abs(sigmoid(each[:, 0] * scores.logits + each[:, 1]) - truth).mean() for each in (together, apart)
    ]
    assert errors[0] < 0.8 * errors[1]


def part(scores, labels, column):
    from sarb.scores import Scores

    name = [labels.categories[column]]
    return (
        Scores(scores.logits[:, [column]], name, scores.paths),
        LabelMatrix(labels.values[:, [column]], name, labels.paths),
    )


def test_separated_scores_stay_finite():
    logit = np.linspace(-8, 8, 50)
    found = fit_platt(Known(logit, (logit > 0) * 1.0, np.zeros(50, np.int64)), 1).each
    assert np.isfinite(found).all() and found[0, 0] < 20
    turned = fit_platt(Known(logit, (logit < 0) * 1.0, np.zeros(50, np.int64)), 1).each
    assert turned[0, 0] == SMALLEST


def test_temperature():
    scores, labels, _, _ = make(20_000, [0.4], [0.0])
    assert abs(fit_temperature(entries(scores, labels)) - 0.4) < 0.02


def test_extrapolation_solves_what_creeps():
    """x = A x + b with eigenvalues up to 0.99: hundreds of rounds alone, as many as dimensions with extrapolation."""
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((4, 4)))[0]
    matrix = basis @ np.diag([0.99, 0.9, 0.5, 0.1]) @ basis.T
    solution = random.uniform(-0.5, 0.5, 4)
    x, next_point = np.zeros(4), Extrapolation()
    for _ in range(8):
        x = next_point(x, matrix @ (x - solution) + solution)
    np.testing.assert_allclose(x, solution, atol=1e-6)


def test_extrapolation_takes_plain_rounds_where_it_would_leap():
    next_point = Extrapolation()
    assert next_point(np.zeros(1), np.array([1.0])) == 1.0
    assert (
        next_point(np.array([1.0]), np.array([1.999])) == 1.999
    )  # the straight line meets x = g(x) at 1,000


def test_the_fit_is_settled(monkeypatch):
    """Few labels of many categories, where EM alone is far from its end after 60 rounds."""
    scores, labels, _, _ = make(500, np.full(80, 1.0), np.linspace(-4, -1, 80), known=0.05)
    known = entries(scores, labels)
    found = fit_platt(known, 80)
    monkeypatch.setattr(platt, "Extrapolation", lambda: lambda x, g: g)
    assert np.abs(fit_platt(known, 80).each - found.each).max() > 10 * platt.SETTLED
    monkeypatch.setattr(platt, "ROUNDS", 2_000)
    monkeypatch.setattr(platt, "SETTLED", 1e-9)
    np.testing.assert_allclose(fit_platt(known, 80).each, found.each, atol=1e-3)


def test_blocks_change_only_rounding(monkeypatch):
    scores, labels, _, _ = make(300, [0.5, 1.0, 2.0, 1.0], [-1.0, 0.5, 1.0, -1.0], known=0.3)
    values = labels.values.copy()
    values[:, 1] = 0  # an empty category between two blocks
    known = Known.of(scores.logits, values)
    whole = fit_platt(known, 4)
    monkeypatch.setattr(platt, "BLOCK", 50)
    np.testing.assert_allclose(fit_platt(known, 4).each, whole.each, atol=1e-9)
