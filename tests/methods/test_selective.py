"""Hill, SPLC and CSL on the toy case of the facts sheet, and their edges."""

import math

import pytest
import torch

from sarb.errors import ConfigError
from tests.methods.toy import CLOSE, LOGITS, SHEET, batch, ln, made, total


def shifted(p, margin=1.0):
    """σ(x − m)."""
    return 1 / (1 + math.exp(margin - math.log(p / (1 - p))))


def present(p, margin=1.0):
    q = shifted(p, margin)
    return (1 - q) ** 2 * ln(q)


def test_hill():
    absent = sum((1.5 - p) * p**2 for p in (0.5, 0.2, 0.9, 0.1))
    expected = present(0.8) + present(0.5) + absent
    assert total(made("hill")) == pytest.approx(expected, abs=CLOSE)
    assert expected == pytest.approx(1.58876, abs=SHEET)


def test_splc_before_and_after_correction():
    absent = {p: p**2 * ln(1 - p) for p in (0.5, 0.2, 0.9, 0.1)}
    first = present(0.8) + present(0.5) + sum(absent.values())
    later = first - absent[0.9] + present(0.9, margin=0)
    assert total(made("splc", epoch=0)) == pytest.approx(first, abs=CLOSE)
    method = made("splc", epoch=1)
    assert total(method) == pytest.approx(later, abs=CLOSE)
    assert method.figures() == {"completed_absent": 2, "completed_present": 1}
    assert [first, later] == pytest.approx([2.83512, 0.97108], abs=SHEET)
    same_margin = first - absent[0.9] + present(0.9)
    assert total(made("splc", epoch=1, corrected_margin=1.0)) == pytest.approx(same_margin, abs=CLOSE)


def test_splc_corrects_no_known_absent_label():
    logits = torch.full((2, 3), 3.0)  # p = 0.95 everywhere, also of the known absent label
    method = made("splc", epoch=1, logits=logits)
    terms = method(batch())
    p = logits[0, 0].sigmoid().item()
    plain = 2 * present(p) + p**2 * ln(1 - p)
    assert terms["cls"].item() == pytest.approx(plain, abs=1e-5)
    assert method.figures() == {"completed_absent": 0, "completed_present": 3}


@pytest.mark.parametrize("name", ["hill", "splc", "csl"])
def test_extreme_logits_stay_finite(name):
    logits = (LOGITS.sign() * 200).float().requires_grad_()  # the log of a sigmoid would be −inf
    loss = sum(made(name, epoch=1, logits=logits)(batch()).values())
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all()


class TestCSL:
    def test_toy(self):
        expected = ln(0.8) + 0.2 * ln(0.8) + ln(0.5) + 0.1**4 * ln(0.9)
        method = made("csl", epoch=1, highest=1, rounds=1)
        assert total(method) == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(0.96093, abs=SHEET)
        assert method.figures() == {"completed_absent": 1, "completed_present": 0}

    def test_the_powers_get_no_gradient(self):
        logits = LOGITS.clone().requires_grad_()
        method = made("csl", epoch=1, logits=logits, highest=0, rounds=1)
        sum(method(batch()).values()).backward()
        powers = {(0, 1): 4, (0, 2): 1, (1, 0): 4, (1, 2): 4}
        for place, power in powers.items():
            p = LOGITS[place].sigmoid().item()
            assert logits.grad[place].item() == pytest.approx(p**power * p, abs=CLOSE)

    def test_the_first_round_ignores_and_finds_the_prior(self):
        method = made("csl", epoch=0, epochs=2, highest=0)
        assert method.rounds == 2
        method(batch())
        assert method.figures()["completed_absent"] == 0
        method.end_round(lambda: [batch()])
        assert method.prior.tolist() == pytest.approx([0.85, 0.5, 0.15], abs=CLOSE)
        method.most = 0.6  # ignores the first category
        method.begin_epoch(2, list)
        method(batch())
        assert method.figures()["completed_absent"] == 2
        assert "prior" in method.state_dict()

    def test_without_known_absent_labels_there_is_no_prior(self):
        """The first network would call everything present, and then every category would be ignored."""
        labels = torch.tensor([[1, 0, 0], [0, 1, 0]], dtype=torch.int8)
        method = made("csl", labels=labels, epochs=2, highest=0)
        assert method.rounds == 1
        method(batch(labels))
        assert method.figures()["completed_absent"] == 4


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("hill", {"peak": 0.5}, r"method\.peak must be at least 1"),
        ("splc", {"threshold": 1.5}, r"method\.threshold"),
        ("csl", {"gamma_unknown": -1.0, "rounds": 3}, r"(?s)gamma.*method\.rounds is 1 or 2, got 3"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(ConfigError, match=message):
        made(name, **options)
