"""The batched L-BFGS against scipy, one problem at a time."""

import numpy as np
from scipy.optimize import minimize

from sarb.auto.solver import log_loss, sigmoid, solve


def test_every_problem_reaches_its_own_minimum():
    random = np.random.RandomState(0)
    rows = random.randn(80, 12) * np.exp(-np.arange(12) / 4)
    targets = (random.rand(6, 80) < 0.2).astype(float)
    weights = (random.rand(6, 80) < 0.8).astype(float)
    offsets = random.randn(6, 80)
    ridge = np.array([0.03, 0.3, 3.0, 0.03, 0.3, 3.0])
    found = solve(rows, targets, weights, offsets, ridge, np.full(6, -1.0))
    for problem in range(6):

        def value(point, p=problem):
            logits = rows @ point[:-1] + point[-1] + offsets[p]
            slope = weights[p] * (sigmoid(logits) - targets[p])
            loss = (weights[p] * log_loss(logits, targets[p])).sum() + ridge[p] / 2 * (point[:-1] ** 2).sum()
            return loss, np.append(slope @ rows + ridge[p] * point[:-1], slope.sum())

        exact = minimize(value, np.zeros(13), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
        np.testing.assert_allclose(value(found[problem])[0], exact.fun, rtol=1e-6)
        np.testing.assert_allclose(found[problem], exact.x, atol=2e-3)


def test_sigmoid_and_loss_do_not_overflow():
    far = np.array([-1e4, 0.0, 1e4])
    np.testing.assert_array_equal(sigmoid(far), [0, 0.5, 1])
    assert np.isfinite(log_loss(far, np.array([1.0, 0.0, 0.0]))).all()
