import pytest
import torch

from sarb.blends import PrototypeBlend, known_positives
from sarb.labels import Targets

# Image 0 has three unknowns, 1 has one, 2 has none, 3 has only unknowns.
LABELS = torch.tensor([[0, 0, 1, 0], [1, -1, 0, 1], [1, 1, -1, -1], [0, 0, 0, 0]])
COUNTS = [3, 0, 2, 1]
CATEGORIES = 4


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape):
    return torch.randn(*shape, generator=seeded(), dtype=torch.float64)


def filled(**options):
    """A blend with 3, 0, 2 and 1 prototypes for its four categories."""
    blend = PrototypeBlend(4, 5, prototypes=3, **options).double()
    centers = torch.randn(4, 3, 5, generator=seeded(9), dtype=torch.float64)
    for category, count in enumerate(COUNTS):
        centers[category, count:] = 0
    blend.load_state_dict({"centers": centers, "counts": torch.tensor(COUNTS)}, strict=False)
    return blend


def slow(blend, reps, labels, n, c, k):
    """Eq. 9-10 for one image, one category and one prototype."""
    beta = (blend.beta if blend.beta.ndim == 0 else blend.beta[c]).item()
    out = reps[n].clone()
    for d in range(reps.shape[2]):
        out[c, d] = beta * reps[n, c, d] + (1 - beta) * blend.centers[c, k, d]
    value = [1.0 if label == 1 else 0.0 for label in labels[n].tolist()]
    weight = [0.0 if label == 0 else 1.0 for label in labels[n].tolist()]
    value[c], weight[c] = 1 - beta, 1.0
    return out, value, weight


def drawn(blend, reps, labels, n, out, new):
    """The (category, prototype) that explains image n of the result, found by trying all of them."""
    for c in range(4):
        for k in range(COUNTS[c]):
            expected, value, weight = slow(blend, reps, labels, n, c, k)
            if torch.allclose(out[n], expected) and new.value[n].tolist() == pytest.approx(value):
                assert labels[n, c] == 0
                assert new.weight[n].tolist() == weight
                return c, k
    return None


@pytest.mark.parametrize(
    "options", [{}, {"beta": 0.3, "coefficients": CATEGORIES}, {"beta": 0.9, "learnable": False}]
)
@pytest.mark.parametrize("seed", range(10))
def test_equals_the_slow_equation_for_one_allowed_draw(options, seed):
    blend, reps, targets = filled(**options), draw(4, 4, 5), Targets.of(LABELS, torch.float64)
    out, new = blend(reps, targets, seeded(seed))
    assert drawn(blend, reps, LABELS, 0, out, new)[0] in (0, 3)  # category 1 has no prototype
    assert drawn(blend, reps, LABELS, 1, out, new)[0] == 2
    assert drawn(blend, reps, LABELS, 2, out, new) is None
    assert drawn(blend, reps, LABELS, 3, out, new)[0] in (0, 2, 3)
    assert blend.completed == 3


def test_other_entries_are_bit_identical_and_inputs_are_not_changed():
    blend, reps, targets = filled(), draw(4, 4, 5), Targets.of(LABELS, torch.float64)
    kept = reps.clone(), targets.value.clone(), targets.weight.clone()
    out, new = blend(reps, targets, seeded())
    untouched = new.weight == targets.weight
    assert untouched[2].all()
    assert torch.equal(out[untouched], reps[untouched])
    assert torch.equal(new.value[untouched], targets.value[untouched])
    assert (
        torch.equal(reps, kept[0])
        and torch.equal(targets.value, kept[1])
        and torch.equal(targets.weight, kept[2])
    )


def test_category_and_prototype_are_uniform_and_drawn_per_image():
    blend, images = filled(), 3000
    labels = torch.zeros(images, 4, dtype=torch.long)
    reps = torch.zeros(images, 4, 5, dtype=torch.float64)
    out, new = blend(reps, Targets.of(labels, torch.float64), seeded())
    category = new.weight.argmax(1)
    assert category.bincount(minlength=4)[1] == 0
    assert (category.bincount(minlength=4)[[0, 2, 3]] - 1000).abs().max() < 130  # five standard deviations
    first = out[category == 0, 0]
    number = torch.cdist(first, 0.5 * blend.centers[0]).argmin(1)
    assert (number.bincount(minlength=3) - len(first) / 3).abs().max() < 80
    assert blend.completed == images


@pytest.mark.parametrize("labels", [torch.ones(3, 4), -torch.ones(3, 4), torch.tensor([[1, 0, -1, 1]])])
def test_images_without_an_allowed_category_are_left_alone(labels):
    blend, reps, targets = filled(), draw(len(labels), 4, 5), Targets.of(labels, torch.float64)
    out, new = blend(reps, targets)
    assert (
        torch.equal(out, reps)
        and torch.equal(new.value, targets.value)
        and torch.equal(new.weight, targets.weight)
    )
    assert blend.completed == 0


def test_nothing_happens_before_the_first_fit():
    blend, reps, targets = PrototypeBlend(4, 5), draw(4, 4, 5), Targets.of(LABELS)
    out, new = blend(reps, targets)
    assert torch.equal(out, reps) and torch.equal(new.weight, targets.weight)
    assert blend.completed == 0 and blend.counts.tolist() == [0] * 4


def test_batch_of_one():
    blend = filled()
    out, new = blend(draw(1, 4, 5), Targets.of(LABELS[1:2], torch.float64))
    assert blend.completed == 1
    assert drawn(blend, draw(1, 4, 5), LABELS[1:2], 0, out, new)[0] == 2


@pytest.mark.parametrize("coefficients", [None, CATEGORIES])
def test_gradcheck_of_features_and_beta(coefficients):
    blend, targets = filled(coefficients=coefficients), Targets.of(LABELS, torch.float64)

    def run(reps, beta):
        out, new = torch.func.functional_call(blend, {"beta": beta}, (reps, targets, seeded(2)))
        return out, new.value

    assert torch.autograd.gradcheck(run, (draw(4, 4, 5).requires_grad_(), blend.beta))


@pytest.mark.parametrize("detach", [False, True])
def test_label_path_can_be_detached(detach):
    blend = filled(detach_label=detach)
    out, new = blend(draw(4, 4, 5), Targets.of(LABELS, torch.float64))
    assert out.requires_grad
    assert new.value.requires_grad is not detach
    if not detach:
        new.value.sum().backward()
        assert blend.beta.grad == -3  # three completed entries, each with d(1-β)/dβ = -1


def test_fit_with_none_to_twelve_positives():
    blend = PrototypeBlend(13, 4, prototypes=10)
    owner = torch.cat([torch.full((count,), count) for count in range(13)])
    features = torch.randn(len(owner), 4, generator=seeded())
    blend.fit(features, owner, seeded())
    assert blend.counts.tolist() == [min(count, 10) for count in range(13)]
    for category in range(13):
        count = blend.counts[category]
        assert (blend.centers[category, count:] == 0).all()
        if 0 < category <= 10:  # as many prototypes as positives: each is one of them
            assert (
                torch.cdist(features[owner == category], blend.centers[category, :count]).min(1).values.max()
                < 1e-3
            )
        elif category:
            mean = features[owner == category].mean(0)
            assert torch.cdist(mean[None], blend.centers[category, :count]).max() > 0.1
    assert torch.isfinite(blend.centers).all()


def test_prototypes_of_two_groups_are_their_means():
    features = torch.tensor([[0.0, 0.0], [0.0, 2.0], [10.0, 0.0], [10.0, 2.0], [7.0, 7.0]])
    blend = PrototypeBlend(3, 2, prototypes=2)
    blend.fit(features, torch.tensor([2, 2, 2, 2, 0]), seeded())
    assert blend.counts.tolist() == [1, 0, 2]
    assert sorted(blend.centers[2].tolist()) == [pytest.approx([0.0, 1.0]), pytest.approx([10.0, 1.0])]
    assert blend.centers[0, 0].tolist() == pytest.approx([7.0, 7.0])


def test_fit_again_replaces_everything():
    blend = filled().float()
    blend.fit(torch.ones(1, 5), torch.tensor([1]))
    assert blend.counts.tolist() == [0, 1, 0, 0]
    assert blend.centers.sum() == 5
    blend.fit(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long))
    assert blend.counts.tolist() == [0] * 4 and blend.centers.sum() == 0


def test_fit_and_forward_are_seeded():
    features, owner = torch.randn(200, 5, generator=seeded()), torch.arange(200) % 4
    blends = [PrototypeBlend(4, 5) for _ in range(2)]
    for blend in blends:
        blend.fit(features, owner, seeded(1))
    assert torch.equal(blends[0].centers, blends[1].centers)
    reps, targets = draw(4, 4, 5).float(), Targets.of(LABELS)
    first, second = (blend(reps, targets, seeded(5))[0] for blend in blends)
    assert torch.equal(first, second)
    assert any(not torch.equal(first, blends[0](reps, targets, seeded(seed))[0]) for seed in range(5))


def test_saved_state_holds_the_prototypes(tmp_path):
    blend = PrototypeBlend(4, 5, beta=0.3)
    blend.fit(torch.randn(30, 5), torch.arange(30) % 3)
    from safetensors.torch import load_file, save_file

    save_file(blend.state_dict(), tmp_path / "state.safetensors")
    fresh = PrototypeBlend(4, 5)
    fresh.load_state_dict(load_file(tmp_path / "state.safetensors"))
    assert set(blend.state_dict()) == {"beta", "centers", "counts"}
    assert torch.equal(fresh.centers, blend.centers) and torch.equal(fresh.counts, blend.counts)
    assert fresh.beta.item() == pytest.approx(0.3)
    reps, targets = draw(4, 4, 5).float(), Targets.of(LABELS)
    for ours, theirs in zip(
        blend(reps, targets, seeded())[1], fresh(reps, targets, seeded())[1], strict=True
    ):
        assert torch.equal(ours, theirs)


def test_known_positives_are_collected_with_their_category():
    reps = draw(4, 4, 5).requires_grad_()
    features, owner = known_positives(reps, Targets.of(LABELS))
    expected = [(n, c) for n in range(4) for c in range(4) if LABELS[n, c] == 1]
    assert owner.tolist() == [c for _, c in expected]
    assert torch.equal(features, torch.stack([reps[n, c] for n, c in expected]))
    assert not features.requires_grad


def test_fit_refuses_features_of_another_width():
    with pytest.raises(ValueError, match=r"expected features \(2, 5\), got \(2, 3\)"):
        PrototypeBlend(4, 5).fit(torch.zeros(2, 3), torch.zeros(2, dtype=torch.long))


def test_half_precision_keeps_its_type_and_clamp_returns_beta():
    blend = filled().float()
    out, new = blend(draw(4, 4, 5).bfloat16(), Targets.of(LABELS))
    assert out.dtype == torch.bfloat16 and new.value.dtype == torch.float32
    with torch.no_grad():
        blend.beta.fill_(-2)
    blend.clamp_()
    assert blend.beta.item() == pytest.approx(0.01)


def test_a_completed_entry_has_the_weight_asked_for() -> None:
    blend = PrototypeBlend(2, 3, prototypes=1, weight=0.25)
    blend.fit(torch.randn(4, 3), torch.tensor([0, 0, 1, 1]))
    _, targets = blend(torch.randn(2, 2, 3), Targets.of(torch.tensor([[0, 1], [-1, 0]])))
    assert targets.weight.tolist() == [[0.25, 1.0], [1.0, 0.25]]
