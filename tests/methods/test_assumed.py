"""AN, WAN, AN-LS, IU and the large-loss methods on the toy case of the facts sheet, and their edges."""

import math

import pytest
import torch

from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from tests.methods.toy import AN_ENTRIES, CLOSE, LABELS, LOGITS, SHEET, batch, ln, made, total

AN = sum(AN_ENTRIES) / 6


def test_an():
    assert total(made("an")) == pytest.approx(AN, abs=CLOSE)
    assert pytest.approx(0.70675, abs=SHEET) == AN


def test_wan():
    expected = (ln(0.8) + ln(0.5) + (ln(0.5) + ln(0.8) + ln(0.1) + ln(0.9)) / 2) / 6
    assert total(made("wan")) == pytest.approx(expected, abs=CLOSE)
    assert expected == pytest.approx(0.42973, abs=SHEET)


def test_an_with_smoothing_against_a_slow_loop():
    expected = 0.0
    for p, y in zip([0.8, 0.5, 0.2, 0.9, 0.5, 0.1], LABELS.flatten().tolist(), strict=True):
        target = 0.9 if y > 0 else 0.1
        expected += target * ln(p) + (1 - target) * ln(1 - p)
    assert total(made("an_ls")) == pytest.approx(expected / 6, abs=CLOSE)
    assert total(made("an_ls", smoothing=0.0)) == pytest.approx(AN, abs=CLOSE)


def test_iu():
    known = ln(0.8) + ln(0.8) + ln(0.5)
    assert total(made("iu")) == pytest.approx(known / 6, abs=CLOSE)
    assert total(made("partial_bce")) == pytest.approx(known / 3, abs=CLOSE)
    assert [known / 6, known / 3] == pytest.approx([0.18991, 0.37981], abs=SHEET)


def test_the_plain_term_holds_the_known_labels_only():
    terms = made("an")(batch())
    assert terms["cls"].item() == pytest.approx((ln(0.8) + ln(0.8) + ln(0.5)) / 6, abs=CLOSE)


class TestLargeLoss:
    def test_rejection(self):
        expected = (sum(AN_ENTRIES) - ln(0.1)) / 6  # image 2, category 1
        assert total(made("ll_r", epoch=1)) == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(0.32299, abs=SHEET)

    @pytest.mark.parametrize("name", ["ll_ct", "ll_cp"])
    def test_correction(self, name):
        expected = (sum(AN_ENTRIES) - ln(0.1) + ln(0.9)) / 6
        assert total(made(name, epoch=1)) == pytest.approx(expected, abs=CLOSE)
        assert expected == pytest.approx(0.34055, abs=SHEET)

    @pytest.mark.parametrize("name", ["ll_r", "ll_ct", "ll_cp"])
    def test_the_first_epoch_is_plain(self, name):
        assert total(made(name, epoch=0)) == pytest.approx(AN, abs=CLOSE)

    def test_only_the_permanent_one_remembers(self):
        method = made("ll_cp", epoch=1)
        method(batch())
        stored = torch.zeros(2, 3, dtype=torch.bool)
        stored[1, 0] = True
        assert torch.equal(method.relabelled, stored) and "relabelled" in method.state_dict()
        # the next step leaves it present and takes the next largest: image 1, category 2, at p = 0.5
        assert total(method) == pytest.approx((sum(AN_ENTRIES) - ln(0.1) + ln(0.9)) / 6, abs=CLOSE)
        assert method.relabelled.sum() == 2 and method.relabelled[0, 1]
        temporary = made("ll_ct", epoch=1)
        temporary(batch())
        assert "relabelled" not in temporary.state_dict()

    def test_the_number_grows_with_the_epochs_and_counts_all_entries(self):
        method = made("ll_r", epoch=3, rate=0.5)
        assert [method.chosen_count(entries) for entries in (6, 1000, 1001)] == [1, 15, math.ceil(15.015)]
        assert made("ll_cp", epoch=3, rate=0.1).chosen_count(1001) == 2

    @pytest.mark.parametrize("name", ["ll_r", "ll_ct", "ll_cp"])
    def test_known_labels_are_never_chosen(self, name):
        """The authors' code takes known ones if there are fewer unknown entries than k."""
        method = made(name, epoch=1, rate=100.0)
        terms = method(batch())
        assert terms["cls"].item() == pytest.approx((ln(0.8) + ln(0.8) + ln(0.5)) / 6, abs=CLOSE)
        changed = 0 if name == "ll_r" else 3
        assert method.figures() == {"completed_absent": 0, "completed_present": changed}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("an_ls", {"smoothing": 0.5}, r"method\.smoothing must be at least 0 and below 0\.5, got 0\.5"),
        ("ll_r", {"rate": 101.0}, r"method\.rate is a percentage, between 0 and 100, got 101"),
    ],
)
def test_wrong_options(name, options, message):
    with pytest.raises(ConfigError, match=message):
        made(name, **options)


def test_one_category_has_no_others_to_weigh_against():
    labels = torch.tensor([[1], [0]], dtype=torch.int8)
    from sarb.methods.wan import WAN
    from tests.methods.toy import Fixed

    method = WAN(Fixed(LOGITS[:, :1]))
    method.prepare(LabelMatrix(labels.numpy(), ["a"]))
    assert total(method, labels) == pytest.approx((ln(0.8) + ln(0.1)) / 2, abs=CLOSE)
