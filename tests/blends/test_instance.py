import pytest
import torch

from sarb.blends import InstanceBlend, random_partner
from sarb.labels import Targets

LABELS = torch.tensor([[0, 0, 0, 1, -1], [1, -1, 0, 0, 0], [0, 1, 0, 1, 1]])
PARTNER = torch.tensor([1, 2, 0])


def draw(images=3, categories=5, width=4):
    return torch.randn(
        images, categories, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )


def slow(reps, labels, partner, alpha):
    """Eq. 3-4 as loops; returns representations, (value, weight) and how many entries were completed."""
    out, value, weight, completed = reps.clone(), torch.zeros(labels.shape), torch.zeros(labels.shape), 0
    for n in range(len(labels)):
        for c in range(len(labels[n])):
            if labels[n][c] == 0 and labels[partner[n]][c] == 1:
                for d in range(reps.shape[2]):
                    out[n, c, d] = alpha[c] * reps[n, c, d] + (1 - alpha[c]) * reps[partner[n], c, d]
                value[n, c], weight[n, c] = 1 - alpha[c], 1
                completed += 1
            elif labels[n][c] != 0:
                value[n, c], weight[n, c] = (1 if labels[n][c] == 1 else 0), 1
    return out, value, weight, completed


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("learnable", [True, False])
def test_equals_the_slow_loop(alpha, learnable):
    blend = InstanceBlend(alpha, learnable).double()
    reps, targets = blend(draw(), Targets.of(LABELS, torch.float64), PARTNER)
    out, value, weight, completed = slow(draw(), LABELS, PARTNER.tolist(), [blend.alpha.item()] * 5)
    assert completed == 3
    assert blend.completed == completed
    torch.testing.assert_close(reps, out)
    torch.testing.assert_close(targets.value, value.double())
    assert torch.equal(targets.weight, weight.double())


def test_one_alpha_per_category():
    blend = InstanceBlend(coefficients=5).double()
    numbers = torch.tensor([0.2, 0.4, 0.5, 0.6, 0.8], dtype=torch.float64)
    blend.load_state_dict({"alpha": numbers})
    reps, targets = blend(draw(), Targets.of(LABELS, torch.float64), PARTNER)
    out, value, weight, _ = slow(draw(), LABELS, PARTNER.tolist(), numbers.tolist())
    torch.testing.assert_close(reps, out)
    torch.testing.assert_close(targets.value, value.double())
    assert torch.equal(targets.weight, weight.double())


def test_other_entries_are_bit_identical_and_inputs_are_not_changed():
    reps, targets = draw().float(), Targets.of(LABELS)
    kept = reps.clone(), targets.value.clone(), targets.weight.clone()
    out, new = InstanceBlend(0.3)(reps, targets, PARTNER)
    untouched = new.weight == targets.weight
    assert torch.equal(out[untouched], reps[untouched])
    assert torch.equal(new.value[untouched], targets.value[untouched])
    assert (out[~untouched] != reps[~untouched]).any(1).all()
    assert (
        torch.equal(reps, kept[0])
        and torch.equal(targets.value, kept[1])
        and torch.equal(targets.weight, kept[2])
    )


@pytest.mark.parametrize("label", [0, 1, -1])
def test_nothing_to_blend(label):
    targets, reps = Targets.of(torch.full((3, 5), label)), draw().float()
    blend = InstanceBlend()
    out, new = blend(reps, targets, PARTNER)
    assert (
        torch.equal(out, reps)
        and torch.equal(new.value, targets.value)
        and torch.equal(new.weight, targets.weight)
    )
    assert blend.completed == 0


def test_batch_of_one_is_its_own_partner_and_stays():
    targets, reps = Targets.of(torch.tensor([[1, 0, -1, 0, 1]])), draw(1).float()
    out, new = InstanceBlend()(reps, targets, random_partner(1))
    assert torch.equal(out, reps) and torch.equal(new.weight, targets.weight)


def test_a_soft_or_weightless_partner_is_not_a_positive():
    value, weight = torch.tensor([[0.0, 0.0], [0.5, 1.0]]), torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    blend = InstanceBlend()
    blend(draw(2, 2).float(), Targets(value, weight), torch.tensor([1, 0]))
    assert blend.completed == 0


@pytest.mark.parametrize("coefficients", [None, 5])
def test_gradcheck_of_features_and_alpha(coefficients):
    blend = InstanceBlend(0.4, coefficients=coefficients).double()
    targets = Targets.of(LABELS, torch.float64)

    def run(reps, alpha):
        out, new = torch.func.functional_call(blend, {"alpha": alpha}, (reps, targets, PARTNER))
        return out, new.value

    assert torch.autograd.gradcheck(run, (draw().requires_grad_(), blend.alpha))


@pytest.mark.parametrize("detach", [False, True])
def test_label_path_can_be_detached(detach):
    blend = InstanceBlend(detach_label=detach)
    out, new = blend(draw().float(), Targets.of(LABELS), PARTNER)
    assert new.value.requires_grad is not detach
    assert out.requires_grad
    if not detach:
        new.value.sum().backward()
        assert blend.alpha.grad == -3  # three completed entries, each with d(1-α)/dα = -1


def test_alpha_outside_its_interval_is_safe_and_comes_back():
    blend = InstanceBlend()
    with torch.no_grad():
        blend.alpha.fill_(1.7)
    _, new = blend(draw().float(), Targets.of(LABELS), PARTNER)
    assert new.value.min() >= 0 and new.value.max() <= 1
    assert (new.value[(LABELS == 0) & (new.weight > 0)] - 0.01).abs().max() < 1e-6
    blend.clamp_()
    assert blend.alpha.item() == pytest.approx(0.99)


def test_half_precision_keeps_its_type():
    out, new = InstanceBlend()(draw().bfloat16(), Targets.of(LABELS), PARTNER)
    assert out.dtype == torch.bfloat16
    assert new.value.dtype == torch.float32


@pytest.mark.parametrize("batch", [2, 3, 8, 17])
def test_partner_is_a_permutation_without_fixed_points(batch):
    for seed in range(20):
        partner = random_partner(batch, torch.Generator().manual_seed(seed))
        assert sorted(partner.tolist()) == list(range(batch))
        assert (partner != torch.arange(batch)).all()


def test_partner_is_seeded_and_every_other_image_is_equally_likely():
    first, second = (random_partner(16, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    generator = torch.Generator().manual_seed(0)
    count = torch.zeros(5, 5)
    for _ in range(2000):
        count[torch.arange(5), random_partner(5, generator)] += 1
    assert (count.diagonal() == 0).all()
    assert (count[~torch.eye(5, dtype=torch.bool)] - 500).abs().max() < 100  # five standard deviations


def test_single_image_gets_itself():
    assert random_partner(1).tolist() == [0]
    assert random_partner(0).tolist() == []


def test_a_completed_entry_has_the_weight_asked_for() -> None:
    labels = torch.tensor([[0, 1], [1, 0]])
    _, targets = InstanceBlend(weight=0.25)(torch.randn(2, 2, 3), Targets.of(labels), torch.tensor([1, 0]))
    assert targets.weight.tolist() == [[0.25, 1.0], [1.0, 0.25]]
