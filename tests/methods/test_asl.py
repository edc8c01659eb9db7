"""The asymmetric loss against a slow loop, and by hand."""

import math

import pytest
import torch

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses import partial_bce
from sarb.methods.asl import ASL
from sarb.networks import create_backbone
from sarb.networks.pooled import Pooled

LABELS = torch.tensor([[1, -1, 0], [-1, 1, -1]])
LOGITS = torch.tensor([[0.3, -1.2, 5.0], [2.0, -0.5, -4.0]])


def asl(**options):
    return ASL(Pooled(create_backbone("tiny"), 3), **options)


def slow(logits, labels, positive, negative, margin):
    total, known = 0.0, 0
    for row, signs in zip(logits.tolist(), labels.tolist(), strict=True):
        for x, sign in zip(row, signs, strict=True):
            p = 1 / (1 + math.exp(-x))
            q = max(p - margin, 0)
            if sign:
                known += 1
                total -= (1 - p) ** positive * math.log(p) if sign > 0 else q**negative * math.log(1 - q)
    return total / known


@pytest.mark.parametrize(
    ("positive", "negative", "margin"), [(0.0, 4.0, 0.05), (1.0, 2.0, 0.2), (0.5, 0.5, 0.0)]
)
def test_equals_the_slow_loop(positive, negative, margin):
    method = asl(gamma_positive=positive, gamma_negative=negative, margin=margin)
    expected = slow(LOGITS, LABELS, positive, negative, margin)
    assert method.loss(LOGITS, Targets.of(LABELS)).item() == pytest.approx(expected, rel=1e-5)


def test_by_hand_and_by_default():
    # p = 0.5: present costs log 2; absent 0.45^4 · -log 0.55
    loss = asl().loss(torch.zeros(1, 3), Targets.of(torch.tensor([[1, -1, 0]])))
    assert loss.item() == pytest.approx((math.log(2) - 0.45**4 * math.log(0.55)) / 2, rel=1e-5)


def test_without_focus_and_margin_it_is_partial_bce():
    plain = asl(gamma_positive=0.0, gamma_negative=0.0, margin=0.0).loss(LOGITS, Targets.of(LABELS))
    assert plain.item() == pytest.approx(partial_bce(LOGITS, LABELS).item(), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 4.0])
def test_unknown_and_easy_absent_entries_teach_nothing(gamma):
    logits = LOGITS.masked_fill(
        LABELS == 0, math.nan
    ).requires_grad_()  # the last one is absent at p = 0.018 < 0.05
    loss = asl(gamma_negative=gamma).loss(logits, Targets.of(LABELS))
    loss.backward()
    assert torch.isfinite(loss)
    assert (logits.grad != 0).tolist() == [[True, True, False], [True, True, False]]


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[-200.0, 200.0, 0.0]], requires_grad=True)
    loss = asl(margin=0.0).loss(logits, Targets.of(torch.tensor([[1, -1, 0]])))
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all()


def test_wrong_options():
    with pytest.raises(ConfigError, match=r"method\.margin must be at least 0 and below 1"):
        asl(margin=1.0)
