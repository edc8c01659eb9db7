"""SR-ST's self-training on the toy case of the facts sheet; its saliency is in the network, ``test_pooled.py``."""

import pytest
import torch

from sarb.errors import ConfigError
from tests.methods.toy import CLOSE, LOGITS, SHEET, batch, ln, made


def test_the_weak_view_labels_the_strong_view():
    strong = LOGITS.clone()
    strong[1, 0] = torch.tensor(0.6, dtype=torch.float64).logit()
    strong[1, 2] = torch.tensor(0.3, dtype=torch.float64).logit()
    method = made("sr_st")
    answers = iter([LOGITS, strong])
    method.network.classify = lambda features: next(answers)
    terms = method(batch(views=(torch.zeros(2, 3, 1, 1),)))
    expected = (ln(0.6) + ln(0.7)) / 2  # (2,1) present, (2,3) absent; (1,2) at 0.5 has no label
    assert terms["strong"].item() == pytest.approx(expected, abs=CLOSE)
    assert expected == pytest.approx(0.43375, abs=SHEET)
    assert terms["cls"].item() == pytest.approx((ln(0.8) + ln(0.8) + ln(0.5)) / 3, abs=CLOSE)
    assert method.figures() == {"completed_absent": 1, "completed_present": 1}


def test_the_strong_view_alone_learns_from_pseudo_labels():
    method = made("sr_st")
    weak, strong = (LOGITS.clone().requires_grad_() for _ in range(2))
    answers = iter([weak, strong])
    method.network.classify = lambda features: next(answers)
    method(batch(views=(torch.zeros(2, 3, 1, 1),)))["strong"].backward()
    assert weak.grad is None
    assert (strong.grad != 0).tolist() == [[False, False, False], [True, False, True]]


def test_wrong_options():
    with pytest.raises(ConfigError, match=r"method\.threshold must be above 0\.5 and at most 1"):
        made("sr_st", threshold=0.5)
