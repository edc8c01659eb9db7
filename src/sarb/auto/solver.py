"""Many small ridge-penalised logistic regressions on the same rows at once, by L-BFGS.

Problem p of P has its own targets t, weights m and offsets o on the n rows, and its own λ:

    minimise over (w, b)   Σ_i m_pi · BCE(w·x_i + b + o_pi, t_pi) + λ_p/2 ‖w‖²

The P problems share each matrix product. Principal components are uncorrelated, so the diagonal of the
Hessian at the start is a good preconditioner: most problems need ten to twenty steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], tuple[Floats, Floats]]

#: pairs of steps and gradient changes that L-BFGS remembers
MEMORY = 6
#: a problem is solved when no entry of its scaled gradient is larger
TOLERANCE = 1e-4


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + e^−v) without overflow.

    Equal to :func:`sarb.labelling.platt.sigmoid` within 2.3e-16 and three times as fast, which counts here: it is the
    inner loop of the fit. The calibration keeps its own, so that stored numbers do not change in the last digit.
    """
    out: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return out


def log_loss(logits: Floats, targets: Floats) -> Floats:
    """BCE of each entry: log(1 + e^s) − t s."""
    out: Floats = np.logaddexp(0, logits) - targets * logits
    return out


def solve(
    rows: Floats,
    targets: Floats,
    weights: Floats,
    offsets: Floats,
    ridge: Floats,
    bias: Floats,
    steps: int = 40,
) -> Floats:
    """Solve P problems.

    Args:
        rows: (n, d) features.
        targets: (P, n) in [0, 1].
        weights: (P, n), 0 where a row does not belong to the problem.
        offsets: (P, n) added to the logits.
        ridge: (P,) λ.
        bias: (P,) where the biases start; the weights start at 0.
        steps: at most.

    Returns:
        (P, d + 1): w and, last, b.
    """
    ones = np.concatenate([rows, np.ones((len(rows), 1))], 1)
    start = np.zeros((len(targets), ones.shape[1]))
    start[:, -1] = bias
    penalty = np.repeat(ridge[:, None], ones.shape[1], 1)
    penalty[:, -1] = 0
    rate = sigmoid(bias[:, None] + offsets)
    curvature = (weights * rate * (1 - rate)) @ ones**2 + penalty
    scale = 1 / np.sqrt(np.maximum(curvature, 1e-8))

    def evaluate(scaled: Floats) -> tuple[Floats, Floats]:
        point = scaled * scale
        logits = point @ ones.T + offsets
        value = (weights * log_loss(logits, targets)).sum(1) + 0.5 * (penalty * point**2).sum(1)
        slope = (weights * (sigmoid(logits) - targets)) @ ones + penalty * point
        return value, slope * scale

    out: Floats = scale * minimise(evaluate, start / scale, steps)
    return out


def minimise(evaluate: Evaluate, start: Floats, steps: int) -> Floats:
    """L-BFGS on P convex problems (P, k) at once, each with its own step length (Armijo, halving)."""
    point = start
    value, slope = evaluate(point)
    moves: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(steps):
        solved = np.abs(slope).max(1) <= TOLERANCE
        if solved.all():
            break
        direction = -_inverse_times(slope, moves, changes)
        descent = (direction * slope).sum(1)
        uphill = descent >= 0
        direction[uphill] = -slope[uphill]
        descent[uphill] = -(slope[uphill] ** 2).sum(1)
        direction[solved] = 0  # so that no problem depends on how long the others take
        length = np.ones(len(point))
        for _ in range(20):
            trial = point + length[:, None] * direction
            new_value, new_slope = evaluate(trial)
            failed = new_value > value + 1e-4 * length * descent + 1e-12 * np.abs(value)
            if not failed.any():
                break
            length[failed] /= 2
        if failed.any():  # rounding: such a problem cannot be improved any more
            trial[failed] = point[failed]
            new_value[failed] = value[failed]
            new_slope[failed] = slope[failed]
        moves = [*moves, trial - point][-MEMORY:]
        changes = [*changes, new_slope - slope][-MEMORY:]
        point = trial
        value = new_value
        slope = new_slope
    return point


def _inverse_times(slope: Floats, moves: list[Floats], changes: list[Floats]) -> Floats:
    """The two-loop recursion: inverse Hessian times slope (P, k), each problem by its own history."""
    if not moves:
        return slope.copy()
    result = slope.copy()
    products = [(move * change).sum(1) for move, change in zip(moves, changes, strict=True)]
    usable = [product > 1e-14 for product in products]
    factors = [
        np.where(fine, 1 / np.where(fine, product, 1), 0)
        for product, fine in zip(products, usable, strict=True)
    ]
    shares = []
    for move, change, factor in zip(moves[::-1], changes[::-1], factors[::-1], strict=True):
        share = factor * (move * result).sum(1)
        result -= share[:, None] * change
        shares.append(share)
    square = (changes[-1] ** 2).sum(1)
    result *= np.where(usable[-1], products[-1] / np.where(square > 0, square, 1), 1.0)[:, None]
    for move, change, factor, share in zip(moves, changes, factors, shares[::-1], strict=True):
        back = factor * (change * result).sum(1)
        result += (share - back)[:, None] * move
    return result
