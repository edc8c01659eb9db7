"""SST and HST on the toy case of the facts sheet, and their memories."""

import math

import pytest
import torch

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses.similarity import prototype_contrast, threshold_loss
from sarb.methods.pairs import PairHead, pair_loss, support
from tests.methods.toy import CLOSE, LABELS, LOGITS, SHEET, TARGETS, batch, ln, made

#: of the pairs 12, 13, 23
PAIRS = torch.tensor([[0.96, 0.5, 0.9], [0.9, 0.5, 0.97]], dtype=torch.float64).logit()
ALONE = {"pair": 0.0, "contrastive": 0.0, "width": 4}


def method_with_pairs(name, epoch=5, **options):
    method = made(name, epoch, **{**ALONE, **options})
    method.pairs.forward = lambda reps: PAIRS
    return method


class TestPairs:
    def test_the_head_equals_a_slow_loop(self):
        torch.manual_seed(0)
        head = PairHead(4, 5, 3).double()
        reps = torch.randn(2, 4, 5, dtype=torch.float64)
        scores = head(reps)
        assert scores.shape == (2, 6)
        for image in range(2):
            for number, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
                both = head.left(head.project(reps[image, i])) + head.right(head.project(reps[image, j]))
                expected = head.weight[number] @ head.join(both.relu()) + head.bias[number]
                assert scores[image, number].item() == pytest.approx(expected.item(), abs=1e-12)

    def test_the_loss(self):
        # no pair is known to be present, so all targets are 0
        shifted = [q - 0.05 for q in (0.96, 0.5, 0.9, 0.9, 0.5, 0.97)]
        expected = sum(q**2 * ln(1 - q) for q in shifted) / 6
        assert pair_loss(PAIRS, TARGETS).item() == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(1.18588, abs=SHEET)

    def test_both_known_present_is_the_only_positive_pair(self):
        targets = Targets.of(torch.tensor([[1, 1, 0]]))
        loss = pair_loss(torch.zeros(1, 3, dtype=torch.float64), targets)
        assert loss.item() == pytest.approx((0.5 * ln(0.5) + 2 * 0.45**2 * ln(0.55)) / 3, abs=CLOSE)

    def test_support(self):
        s = support(PAIRS, TARGETS.present)
        assert s.flatten().tolist() == pytest.approx([1, 0.96, 0.5, 0.9, 1, 0.97], abs=CLOSE)
        two = support(PAIRS[:1], torch.tensor([[True, True, False]]))
        assert two[0].tolist() == pytest.approx([(1 + 0.96) / 2, (1 + 0.96) / 2, (0.5 + 0.9) / 2], abs=CLOSE)
        others = support(PAIRS[:1], torch.tensor([[True, True, False]]), own=False)
        assert others[0].tolist() == pytest.approx([0.96, 0.96, 0.7], abs=CLOSE)
        assert support(PAIRS[:1], torch.zeros(1, 3, dtype=torch.bool)).abs().sum() == 0


class TestSST:
    def test_intra(self):
        method = method_with_pairs("sst")
        expected = (ln(0.8) + ln(0.8) + ln(0.5) + ln(0.5) + ln(0.1)) / 5  # (1,2) and (2,3) become present
        terms = method(batch())
        assert terms["intra"].item() == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(0.82703, abs=SHEET)
        assert method.figures()["completed_intra"] == 2

    def test_cross(self):
        """s = (1 + 0.6) / 2 = 0.8: enough at θ = 0.75, not at 0.95."""
        reps = torch.zeros(2, 3, 2)
        reps[..., 0] = 1
        for epoch, expected in ((5, 0), (13, 1)):
            method = method_with_pairs("sst", epoch, reps=reps)
            method.bank.add(torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([2, 2]))
            similarity, filled = method.bank.similarity(reps)
            assert similarity[1, 2].item() == pytest.approx(0.8, abs=CLOSE)
            assert filled.tolist() == [False, False, True]
            method(batch())
            assert method.figures()["completed_cross"] == expected  # only (2,3) is unknown and has a bank

    def test_the_threshold_falls(self):
        levels = [made("sst", epoch, width=4).current_threshold() for epoch in (0, 5, 6, 12, 13, 19)]
        assert levels == pytest.approx([0.95, 0.95, 0.925, 0.775, 0.75, 0.75])
        shares = {"epochs": 10, "start": 0.4, "fall": 0.2}
        levels = [made("sst", epoch, width=4, **shares).current_threshold() for epoch in (4, 5, 6, 9)]
        assert levels == pytest.approx([0.95, 0.85, 0.75, 0.75])

    def test_no_pseudo_labels_before_the_start(self):
        assert set(method_with_pairs("sst", 4)(batch())) == {"cls", "pair"}
        assert set(method_with_pairs("sst", 5)(batch())) == {"cls", "pair", "intra", "cross"}

    def test_weights_rise_over_the_first_epoch(self):
        method = method_with_pairs("sst", 0, pair=10.0)
        method.begin_step(0.25)
        expected = 10 * 0.25 * pair_loss(PAIRS, TARGETS).item()
        assert method(batch())["pair"].item() == pytest.approx(expected, abs=CLOSE)

    def test_each_step_adds_its_positives_to_the_bank(self):
        reps = torch.randn(2, 3, 2)
        method = method_with_pairs("sst", 0, reps=reps)
        method(batch())
        assert method.bank.seen.tolist() == [1, 1, 0]
        assert torch.allclose(method.bank.places[0, 0], reps[0, 0] / reps[0, 0].norm())
        assert {"bank.places", "bank.seen"} <= set(method.state_dict())

    def test_a_short_run_is_told(self):
        with pytest.warns(UserWarning, match="completed from epoch 5 on, but the last epoch is 2"):
            made("sst", epochs=3, width=4)

    def test_wrong_options(self):
        with pytest.raises(ConfigError, match=r"method\.threshold"):
            made("sst", threshold=2.0)


class TestHST:
    def test_thresholds_choose(self):
        method = method_with_pairs("hst", threshold=0.8)
        terms = method(batch())
        expected = (ln(0.8) + ln(0.8) + ln(0.5) + ln(0.5) + ln(0.1) + ln(0.9)) / 6
        assert terms["intra"].item() == pytest.approx(expected, abs=CLOSE)
        assert method.figures()["completed_intra"] == 3

    def test_the_threshold_loss(self):
        threshold = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
        loss = threshold_loss(support(PAIRS, TARGETS.present), threshold, TARGETS)
        up = 1 / (1 + math.exp(-0.2))
        expected = (2 * ln(up) + ln(0.5)) / 3
        assert loss.item() == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(0.62981, abs=SHEET)
        loss.backward()
        assert threshold.grad.item() == pytest.approx(2 * (1 - up) / 3, abs=CLOSE)
        assert threshold.grad.item() == pytest.approx(0.30011, abs=SHEET)

    def test_a_missed_positive_lowers_the_threshold_and_an_absent_label_below_it_does_nothing(self):
        """In the authors' code nothing below θ has a gradient, and θ starts at 1."""
        threshold = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
        s = torch.tensor([[0.7, 0.6, 0.3]], dtype=torch.float64, requires_grad=True)
        targets = Targets.of(torch.tensor([[1, 0, -1]]), torch.float64)
        loss = threshold_loss(s, threshold, targets)
        loss.backward()
        assert loss.item() == pytest.approx(ln(0.5), abs=CLOSE)
        assert threshold.grad.item() == pytest.approx(0.25, abs=CLOSE)
        assert s.grad[0].tolist() == pytest.approx([-0.25, 0, 0], abs=CLOSE)

    def test_the_own_label_does_not_teach_its_threshold(self):
        """In the authors' code q_cc = 1 of the label to predict is the only source of gradient."""
        method = method_with_pairs("hst", threshold=0.8)
        method(batch())["theta"].backward()
        assert method.intra.grad.item() == 0  # each image has one known positive, so no other speaks
        labels = torch.tensor([[1, 1, -1], [0, 1, 0]], dtype=torch.int8)
        method = method_with_pairs("hst", threshold=0.8, labels=labels)
        method(batch(labels))["theta"].backward()
        assert method.intra.grad.item() > 0  # the pair 12 at 0.96 confirms both, so the threshold falls

    def test_the_prototype_contrast_attracts_known_positives(self):
        s = torch.tensor([[0.9, 0.5, 0.2]], dtype=torch.float64)
        targets = Targets.of(torch.tensor([[1, 0, -1]]), torch.float64)
        mended = prototype_contrast(s, targets).item()
        assert mended == pytest.approx((0.1 + 1 + 1.2) / 3, abs=CLOSE)
        assert mended == pytest.approx(0.76667, abs=SHEET)
        # the sign of the authors' code
        inverted = prototype_contrast(-s, targets).item()
        assert inverted == pytest.approx((1.9 + 1 + 0.8) / 3, abs=CLOSE)
        assert inverted == pytest.approx(1.23333, abs=SHEET)

    def test_prototypes_of_few_positives(self):
        reps = torch.tensor([[[3.0, 0.0]] * 3, [[0.0, 2.0]] * 3])
        method = method_with_pairs("hst", reps=reps)
        assert method.counts.tolist() == [1, 1, 0]  # fewer than K, and none
        assert {"centers", "counts", "intra", "cross"} <= set(method.state_dict())
        s = method.similarity(reps)
        assert s.tolist() == [[1, 0, 0], [0, 1, 0]]

    def test_the_thresholds_stay_inside(self):
        method = method_with_pairs("hst")
        with torch.no_grad():
            method.intra.fill_(1.5)
            method.cross.fill_(-1)
        method.end_step()
        assert [method.intra.item(), method.cross.item()] == pytest.approx([0.99, 0.01])


def test_known_labels_keep_their_loss_in_all_three_terms():
    method = method_with_pairs("sst", logits=LOGITS, threshold=1.0, lowest=1.0)
    terms = method(batch(LABELS))
    assert terms["cls"].item() == terms["intra"].item() == terms["cross"].item()
