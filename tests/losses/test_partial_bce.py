import math

import pytest
import torch

from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.losses import partial_bce
from sarb.losses.partial_bce import FORMS, known_share_weight

LABELS = torch.tensor([[1, -1, 0, 1], [0, 0, 0, 0], [-1, 0, -1, 1]])
LOGITS = torch.tensor(
    [[0.3, -1.2, 5.0, -2.0], [1.0, 2.0, 3.0, 4.0], [0.7, 0.0, -4.0, 1.5]], dtype=torch.float64
)


def entry(logit, value, positive_weight=1.0):
    probability = 1 / (1 + math.exp(-logit))
    return -(positive_weight * value * math.log(probability) + (1 - value) * math.log(1 - probability))


def slow(logits, value, weight, form, positive_weight=None):
    """The loss as two nested loops over images and categories."""
    total, known, images, durand = 0.0, 0.0, 0.0, 0.0
    for n in range(len(logits)):
        row, row_known, count = 0.0, 0.0, 0
        for c in range(len(logits[n])):
            if weight[n][c] > 0:
                extra = 1.0 if positive_weight is None else positive_weight[c]
                row += weight[n][c] * entry(logits[n][c], value[n][c], extra)
                row_known += weight[n][c]
                count += 1
        durand += (5.45 - 4.45 * count / len(logits[n])) / len(logits[n]) * row / len(logits)
        total, known = total + row, known + row_known
        images += row / row_known if row_known else 0.0
    if form == "image":
        return images
    if form == "durand":
        return durand
    if form == "entries":
        return total / (len(logits) * len(logits[0]))
    return total / known if known else 0.0


def soft_targets(seed=0, images=5, categories=6):
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(4, images, categories, generator=generator, dtype=torch.float64)
    weight = torch.where(draw[0] < 0.4, 0.0, draw[1] * 2 + 0.1)
    return (draw[3] - 0.5) * 8, Targets(draw[2], weight)


@pytest.mark.parametrize("form", FORMS)
def test_labels_equal_the_slow_loop(form):
    value = [[float(label > 0) for label in row] for row in LABELS.tolist()]
    weight = [[float(label != 0) for label in row] for row in LABELS.tolist()]
    expected = slow(LOGITS.tolist(), value, weight, form)
    assert partial_bce(LOGITS, LABELS, form).item() == pytest.approx(expected, rel=1e-12)
    assert partial_bce(LOGITS, LABELS.double(), form).item() == pytest.approx(expected, rel=1e-12)
    assert partial_bce(LOGITS, Targets.of(LABELS), form).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_soft_targets_and_weights_equal_the_slow_loop(form, seed):
    logits, targets = soft_targets(seed)
    expected = slow(logits.tolist(), targets.value.tolist(), targets.weight.tolist(), form)
    assert partial_bce(logits, targets, form).item() == pytest.approx(expected, rel=1e-12)


def test_the_forms_differ_and_batch_is_the_default():
    assert partial_bce(LOGITS, LABELS) == partial_bce(LOGITS, LABELS, "batch")
    assert partial_bce(LOGITS, LABELS, "image") > 1.5 * partial_bce(LOGITS, LABELS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive_weight", [3.0, torch.tensor([1.0, 2.0, 0.5, 4.0])])
def test_positive_weight_equals_the_slow_loop(form, positive_weight):
    value, weight = Targets.of(LABELS)
    extra = [3.0] * 4 if isinstance(positive_weight, float) else positive_weight.tolist()
    expected = slow(LOGITS.tolist(), value.tolist(), weight.tolist(), form, extra)
    assert partial_bce(LOGITS, LABELS, form, positive_weight).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("poison", [math.inf, -math.inf, math.nan])
def test_unknown_entries_give_exactly_zero_gradient(form, poison):
    clean, unknown = LOGITS.clone().requires_grad_(), LABELS == 0
    poisoned = LOGITS.masked_fill(unknown, poison).requires_grad_()
    value = torch.full_like(LOGITS, poison).where(unknown, Targets.of(LABELS).value.double()).requires_grad_()
    partial_bce(clean, LABELS, form).backward()
    loss = partial_bce(poisoned, Targets(value, Targets.of(LABELS).weight), form)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.equal(poisoned.grad, clean.grad)
    assert (poisoned.grad[unknown] == 0).all()
    assert (value.grad[unknown] == 0).all()
    assert (poisoned.grad[~unknown] != 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("images", [0, 1, 3])
def test_nothing_known_is_exactly_zero_with_a_zero_gradient(form, images):
    logits = torch.randn(images, 4, requires_grad=True)
    loss = partial_bce(logits, torch.zeros(images, 4, dtype=torch.long), form)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(logits.grad, torch.zeros(images, 4))


@pytest.mark.parametrize(("share", "weight"), [(0.1, 5.005), (0.5, 3.225), (1.0, 1.0), (0.0, 5.45)])
def test_durand_weight_of_a_known_share(share, weight):
    assert known_share_weight(torch.tensor(share, dtype=torch.float64)).item() == pytest.approx(
        weight, rel=1e-9
    )


def test_durand_by_hand():
    # logit 0 costs log 2 whatever the label. Ten categories: one known in the first image, all in the second,
    # none in the third. g(0.1)/10 · 1 + g(1)/10 · 10 + 0 = 0.5005 + 1, over three images.
    labels = torch.tensor([[1] + [0] * 9, [-1] * 10, [0] * 10])
    loss = partial_bce(torch.zeros(3, 10, dtype=torch.float64), labels, "durand")
    assert loss.item() == pytest.approx(1.5005 / 3 * math.log(2), rel=1e-12)


def test_all_known_is_the_ordinary_mean():
    labels = torch.where(LABELS == 0, -1, LABELS)
    ordinary = torch.nn.functional.binary_cross_entropy_with_logits(LOGITS, (labels > 0).double())
    assert partial_bce(LOGITS, labels).item() == pytest.approx(ordinary.item(), rel=1e-12)
    assert partial_bce(LOGITS, labels, "image").item() == pytest.approx(3 * ordinary.item(), rel=1e-12)
    assert partial_bce(LOGITS, labels, "durand").item() == pytest.approx(ordinary.item(), rel=1e-12)


def test_batch_of_one():
    logits, labels = torch.tensor([[2.0, -1.0]], dtype=torch.float64), torch.tensor([[0, 1]])
    assert partial_bce(logits, labels).item() == pytest.approx(entry(-1.0, 1.0), rel=1e-12)
    assert partial_bce(logits, labels, "image").item() == pytest.approx(entry(-1.0, 1.0), rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("positive_weight", [None, 2.5])
def test_gradcheck_of_logits_and_soft_targets(form, positive_weight):
    logits, (value, weight) = soft_targets(images=3, categories=4)

    def loss(logits, value):
        return partial_bce(logits, Targets(value, weight), form, positive_weight)

    assert torch.autograd.gradcheck(loss, (logits.requires_grad_(), value.requires_grad_()))


def test_gradient_of_a_soft_target_is_minus_the_logit():
    value = torch.tensor([[0.5, 0.5]], requires_grad=True)
    partial_bce(torch.tensor([[3.0, -2.0]]), Targets(value, torch.tensor([[1.0, 1.0]]))).backward()
    assert value.grad.tolist() == [[pytest.approx(-1.5), pytest.approx(1.0)]]


def test_large_logits_do_not_overflow():
    logits = torch.tensor([[200.0, -200.0]], requires_grad=True)
    loss = partial_bce(logits, torch.tensor([[-1, 1]]))
    loss.backward()
    assert loss.item() == 200.0
    assert logits.grad.tolist() == [[0.5, -0.5]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    loss = partial_bce(LOGITS.to(dtype), LABELS)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(partial_bce(LOGITS, LABELS).item(), rel=1e-2)


def test_wrong_form_names_the_right_ones():
    with pytest.raises(ConfigError, match=r"unknown form of partial_bce 'imag'. Did you mean 'image'\?"):
        partial_bce(LOGITS, LABELS, "imag")


def test_shapes_are_never_broadcast():
    with pytest.raises(ValueError, match=r"logits \(3, 4\), values \(1, 4\)"):
        partial_bce(LOGITS, LABELS[:1])
