"""EPR and ROLE on the toy case of the facts sheet, and what they remember."""

import math

import pytest
import torch

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from tests.methods.toy import CLOSE, LABELS, SHEET, batch, ln, made, total

Q = torch.tensor([[0.9, 0.6, 0.1], [0.4, 0.9, 0.5]])
PROBABILITIES = [0.8, 0.5, 0.2, 0.9, 0.5, 0.1]


def test_epr():
    # the source knows no absent labels
    expected = (ln(0.8) + ln(0.5)) / 6 + ((1.5 - 1.2) / 3) ** 2
    assert total(made("epr", positives=1.2, negatives=False)) == pytest.approx(expected, abs=CLOSE)
    assert expected == pytest.approx(0.16272, abs=SHEET)
    with_absent = expected + ln(0.8) / 6
    assert total(made("epr", positives=1.2)) == pytest.approx(with_absent, abs=CLOSE)


def role(**options):
    method = made("role", positives=1.2, negatives=False, **options)
    with torch.no_grad():
        method.estimates.copy_(Q.logit())
    return method


def cross_entropy(targets, probabilities):
    pairs = zip(targets, probabilities, strict=True)
    return sum(t * ln(p) + (1 - t) * ln(1 - p) for t, p in pairs) / 6


def test_role():
    q = [0.9, 0.6, 0.1, 0.4, 0.9, 0.5]
    known = (ln(0.8) + ln(0.5)) / 6, (ln(0.9) + ln(0.9)) / 6
    crossed = cross_entropy(q, PROBABILITIES), cross_entropy(PROBABILITIES, q)
    counts = ((1.5 - 1.2) / 3) ** 2, ((1.7 - 1.2) / 3) ** 2
    assert [*known, *crossed, *counts] == pytest.approx(
        [0.15272, 0.03512, 0.78958, 0.76267, 0.01, 0.02778], abs=SHEET
    )
    expected = (sum(known) + sum(crossed) + sum(counts)) / 2
    assert expected == pytest.approx(0.88894, abs=SHEET)
    assert total(role()) == pytest.approx(expected, abs=CLOSE)


def test_neither_target_gets_a_gradient():
    method = role()
    method.network.logits = method.network.logits.clone().requires_grad_()
    sum(method(batch()).values()).backward()
    p, q = PROBABILITIES, [0.9, 0.6, 0.1, 0.4, 0.9, 0.5]
    present = [1, 0, 0, 0, 1, 0]
    for gradient, own, other in (
        (method.network.logits.grad, p, q),
        (method.estimates.grad, q, p),
    ):
        counted = sum(own) / 2
        slope = 2 * (counted - 1.2) / 3 / 3 / 2
        expected = [
            (seen * (x - 1) / 6 + (x - y) / 6 + slope * x * (1 - x)) / 2
            for x, y, seen in zip(own, other, present, strict=True)
        ]
        assert gradient.flatten().tolist() == pytest.approx(expected, abs=CLOSE)


def test_the_start_of_the_learned_labels():
    method = made("role", positives=1.2)
    start = method.estimates.detach().sigmoid()
    assert start[LABELS == 1].tolist() == pytest.approx([0.995, 0.995], abs=CLOSE)
    assert start[LABELS == -1].tolist() == pytest.approx([0.005], abs=CLOSE)
    assert ((start[LABELS == 0] - 0.5).abs() <= 0.1 + CLOSE).all()
    assert len(set(start[LABELS == 0].tolist())) == 3


def test_rows_that_are_in_no_batch_rest():
    """A dense optimiser moves them by its momentum."""
    method = role()
    optimizer = torch.optim.Adam([method.estimates], lr=0.1)
    moved = []
    for rows in ([0, 1], [0]):
        before = method.estimates.detach().clone()
        method.begin_step(0.5)
        optimizer.zero_grad()
        shown = batch(LABELS[rows])
        method.network.logits = torch.zeros(len(rows), 3)
        sum(method(shown).values()).backward()
        optimizer.step()
        method.end_step()
        moved.append((method.estimates != before).any(1).tolist())
    assert moved == [[True, True], [True, False]]


def test_learned_labels_learn_ten_times_as_fast():
    from sarb.training.optim import parameter_groups

    groups = parameter_groups(made("role", positives=1.2), 0.01, {"blend": 0.3}, 0.1)
    own = [group for group in groups if group["part"] == "blend"]
    assert [(group["lr"], group["weight_decay"]) for group in own] == [(pytest.approx(0.1), 0.0)]


class TestExpectedNumber:
    def prepared(self, values, **options):
        method = made("epr", **options)
        method.prepare(LabelMatrix(values, ["a", "b", "c"]))
        return method.expected

    def test_from_known_labels(self):
        # a: 1 of 2 present, b: 1 of 4, c: unknown everywhere, so 2 of 6 as all together
        values = [[1, 1, 0], [-1, -1, 0], [0, -1, 0], [0, -1, 0]]
        assert self.prepared(values) == pytest.approx(1 / 2 + 1 / 4 + 1 / 3)
        assert self.prepared(values, positives=2.5) == 2.5

    def test_it_cannot_come_from_present_labels_alone(self):
        with pytest.raises(ConfigError, match=r"method\.positives: no label is known to be absent"):
            self.prepared([[1, 0, 0], [0, 1, 0]])
        assert self.prepared([[1, 0, 0], [0, 1, 0]], positives=1.5) == 1.5

    @pytest.mark.parametrize("positives", [0.0, 3.5, math.inf])
    def test_wrong(self, positives):
        with pytest.raises(ConfigError, match=r"method\.positives must be more than 0 and at most 3"):
            made("epr", positives=positives)
