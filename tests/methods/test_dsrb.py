"""DSRB on the toy case of the facts sheet."""

import pytest
import torch

from sarb.blends import InstanceBlend
from sarb.blends.quadrant import QuadrantBlend
from sarb.errors import ConfigError
from sarb.losses import partial_bce
from tests.contract.test_contract import make, make_batch, random_labels, start_blending
from tests.methods.toy import CLOSE, LOGITS, SHEET, TARGETS, ln


def test_instance_blend():
    _, targets = InstanceBlend(0.5)(torch.zeros(2, 3, 1), TARGETS, torch.tensor([1, 0]))
    assert targets.value.tolist() == [[1, 0.5, 0], [0.5, 1, 0]]
    assert targets.weight.tolist() == [[1, 1, 1], [1, 1, 0]]
    expected = (ln(0.8) + ln(0.5) + ln(0.8) + (ln(0.9) + ln(0.1)) / 2 + ln(0.5)) / 5
    assert partial_bce(LOGITS, targets).item() == pytest.approx(expected, abs=CLOSE)
    assert expected == pytest.approx(0.60731, abs=SHEET)


def test_prototypes_by_quadrant():
    """The authors' code averages a row of zeros with them: 2 and 3 instead of 3 and 6."""
    blend = QuadrantBlend(2, 1)
    blend.fit_quadrants(torch.tensor([[2.0], [4.0], [6.0]]), torch.zeros(3).long(), torch.tensor([0, 0, 3]))
    assert blend.centers[0, :, 0].tolist() == pytest.approx([3, 4, 4, 6], abs=CLOSE)
    assert blend.counts.tolist() == [4, 0]


def test_forward_blends_both_and_counts():
    method = make("ssgrl", "dsrb")
    batch = make_batch(random_labels())
    start_blending(method, batch)
    terms = method(batch)
    assert set(terms) == {"cls", "cst", "iprb", "pprb"}
    figures = method.figures()
    assert figures["completed_pprb"] > 0 and (figures["alpha"], figures["beta"]) == (0.5, 0.5)
    start_blending(method, batch, epoch=0)
    assert set(method(batch)) == {"cls", "cst"}


def test_quadrants_follow_attention_times_values():
    method = make("ssgrl-sam", "dsrb")
    maps = torch.rand(2, 16, 4, 4)
    attention, values = method.network.attention(maps), method.network.values(maps)
    whole = torch.einsum("bchw,bdhw->bcdhw", attention, values).sum(2)
    for image in range(2):
        for category in range(4):
            row, column = divmod(int(whole[image, category].argmax()), 4)
            assert method.quadrants(maps)[image, category] == 2 * (row >= 2) + (column >= 2)


def test_wrong_options():
    from tests.methods.toy import made

    with pytest.raises(ConfigError, match=r"method\.most must be at least 1, got 0"):
        made("dsrb", most=0)
