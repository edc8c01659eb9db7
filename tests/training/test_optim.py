"""Schedules and parameter groups."""

import math
from typing import ClassVar

import pytest
import torch

from sarb.errors import ConfigError
from sarb.methods.hst import HST
from sarb.methods.partial_bce import PartialBCE
from sarb.methods.sarb import SARB
from sarb.networks import SSGRL, Network, Pooled, create_backbone
from sarb.registry import NETWORKS, find
from sarb.settings import METHOD_PART, resolve
from sarb.training.optim import OPTIMIZERS, SCHEDULES, parameter_groups, part_of, schedule_factor


def sarb_method(**options):
    return SARB(SSGRL(create_backbone("tiny", train_stages=1), 3, dim=8, hidden=4, word_dim=5), **options)


# schedules


@pytest.mark.parametrize(("epoch", "factor"), [(0, 1), (9, 1), (10, 0.1), (19, 0.1), (20, 0.01), (29, 0.01)])
def test_step_divides_by_ten_every_ten_epochs(epoch, factor):
    count, epochs = 7, 30
    for number in (0, count - 1):
        step = epoch * count + number
        assert schedule_factor("step", step, epochs * count, epochs, 0) == pytest.approx(factor)


def test_step_changes_exactly_at_the_epoch_for_any_number_of_steps():
    for count in range(1, 40):
        for epochs in (11, 20, 77):  # 10 / 77 · 77 falls short of 10 in floating point
            factors = [
                schedule_factor("step", step, epochs * count, epochs, 0) for step in range(epochs * count)
            ]
            assert factors.index(pytest.approx(0.1)) == 10 * count


def test_constant_linear_and_cosine_by_hand():
    assert [schedule_factor("constant", step, 8, 2, 0) for step in range(8)] == [1] * 8
    assert [schedule_factor("linear", step, 4, 2, 0) for step in range(4)] == [1, 0.75, 0.5, 0.25]
    cosine = [schedule_factor("cosine", step, 4, 2, 0) for step in range(5)]
    assert cosine == pytest.approx([1, 0.5 + math.sqrt(0.5) / 2, 0.5, 0.5 - math.sqrt(0.5) / 2, 0])


def test_warmup_grows_linearly_to_full_and_is_then_over():
    # two epochs of five steps in ten epochs
    factors = [schedule_factor("constant", step, 50, 10, 2.0) for step in range(50)]
    assert factors[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
    assert factors[10:] == [1] * 40


def test_warmup_multiplies_the_schedule_and_may_end_inside_an_epoch():
    factors = [schedule_factor("linear", step, 8, 2, 0.5) for step in range(8)]  # half an epoch is two steps
    assert factors == pytest.approx([0.5 * 1, 1 * 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0.0, 0.1, 3.0])
def test_factors_stay_between_zero_and_one_even_in_the_shortest_run(schedule, warmup):
    for steps, epochs in ((1, 1), (3, 1), (30, 3)):
        factors = [schedule_factor(schedule, step, steps, epochs, warmup) for step in range(steps)]
        assert all(0 < factor <= 1 for factor in factors)


# parameter groups


def test_every_trainable_parameter_is_in_exactly_one_group():
    method = sarb_method()
    groups = parameter_groups(method, 0.1, {}, 0.01)
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    trainable = [id(parameter) for parameter in method.parameters() if parameter.requires_grad]
    frozen = {id(parameter) for parameter in method.parameters() if not parameter.requires_grad}
    assert sorted(grouped) == sorted(trainable) and frozen and not frozen & set(grouped)
    assert [group["part"] for group in groups].count("backbone") == 1
    assert {group["part"] for group in groups} == {*SSGRL.parts.values(), METHOD_PART} - {"sam"}


def test_alpha_and_beta_are_the_blend_group_without_weight_decay():
    method = sarb_method()
    groups = {group["part"]: group for group in parameter_groups(method, 0.1, {}, 0.01)}
    assert {id(p) for p in groups["blend"]["params"]} == {id(method.ilrb.alpha), id(method.plrb.beta)}
    assert groups["blend"]["weight_decay"] == 0
    assert all(group["weight_decay"] == 0.01 for part, group in groups.items() if part != "blend")


def test_fixed_coefficients_make_no_group():
    parts = [group["part"] for group in parameter_groups(sarb_method(learnable=False), 0.1, {}, 0.01)]
    assert "blend" not in parts and "sd" in parts


def test_learning_rate_by_part():
    scale = {"blend": 0.1, "sd": 3.0, "backbone": 0.0}
    for group in parameter_groups(sarb_method(), 0.2, scale, 0.0):
        expected = 0.2 * scale.get(group["part"], 1.0)
        assert group["lr"] == pytest.approx(expected) and group["base_lr"] == pytest.approx(expected)


def test_a_head_of_the_method_learns_like_one_of_the_network():
    network = SSGRL(create_backbone("tiny", train_stages=0), 3, dim=8, hidden=4, word_dim=5)
    method = HST(network, width=2)
    groups = [g for g in parameter_groups(method, 0.2, {"blend": 0.1}, 0.01) if g["part"] == METHOD_PART]
    rates = {(len(g["params"]), round(g["lr"], 9), g["weight_decay"]) for g in groups}
    assert rates == {(len(list(method.pairs.parameters())), 0.2, 0.01), (2, 0.02, 0.0)}


def test_the_pooled_network_has_a_backbone_and_a_classifier():
    method = PartialBCE(Pooled(create_backbone("tiny", train_stages=0), 3))
    assert [group["part"] for group in parameter_groups(method, 0.1, {}, 0.0)] == ["classifier"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimisers_take_the_groups(name):
    method = sarb_method()
    optimizer = OPTIMIZERS[name](parameter_groups(method, 0.5, {"blend": 0.1}, 0.0), betas=(0.9, 0.999))
    before = method.ilrb.alpha.item()
    method.ilrb.alpha.grad = torch.tensor(1.0)
    optimizer.step()
    assert method.ilrb.alpha.item() == pytest.approx(
        before - 0.05, abs=1e-5
    )  # Adam's first step is lr · sign


def test_part_of():
    network = sarb_method().network
    assert part_of("network.sd.image.weight", network) == "sd"
    assert part_of("network.sam.mask.weight", network) == "sam"
    assert part_of("network.sam.transform.weight", network) == "project"
    assert part_of("network.classifier.join.weight", network) == "join"
    assert part_of("network.classifier.category.weight", network) == "classifier"
    assert part_of("network.backbone.stage1.0.weight", network) == "backbone"
    assert part_of("ilrb.alpha", network) == "blend"


@pytest.mark.parametrize(
    ("parameter", "part"),
    [("backbone.stage1.weight", "backbone"), ("backbones.weight", "head"), ("queries", "head")],
)
def test_a_network_that_names_no_parts_has_a_backbone_and_a_head(parameter, part):
    assert Network.part_of(parameter) == part


def test_a_prefix_ends_with_a_name_and_the_longest_counts():
    class Own(Network):
        parts: ClassVar = {"a": "one", "a.b": "two"}

    assert [Own.part_of(name) for name in ("a", "a.x", "a.b", "a.b.x", "a.bb")] == [
        "one",
        "one",
        "two",
        "two",
        "one",
    ]
    with pytest.raises(ConfigError, match=r"Own\.parts has no prefix for the parameter 'ab\.weight'"):
        Own.part_of("ab.weight")


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_names_its_parts(name):
    network = find("network", NETWORKS, name)(create_backbone("tiny"), 3)
    used = {network.part_of(parameter) for parameter, _ in network.named_parameters()}
    optional = {"sam", "classifier"}  # SSGRL has SD by default, GCN-ML no bias
    assert used <= set(network.parts.values()) <= used | optional
    scale = dict.fromkeys(network.parts.values(), 0.5)
    assert resolve("small", network=name, lr_scale=scale).lr_scale.items() >= scale.items()


def test_unknown_parts_are_all_named():
    with pytest.raises(ConfigError) as error:
        resolve("small", lr_scale={"clasifier": 1.0, "blend": 1.0, "head": 1.0})
    assert len(error.value.problems) == 2 and "Did you mean 'classifier'" in error.value.problems[0]


def test_parts_of_another_built_in_network_are_accepted_but_not_offered():
    scale = {"sd": 0.1, "weight_graph": 0.1}
    assert resolve("small", network="pooled", lr_scale=scale).lr_scale.items() >= scale.items()
    with pytest.raises(ConfigError) as error:
        resolve("small", network="pooled", lr_scale={"clasifier": 1.0})
    assert str(error.value) == (
        "unknown part in [lr] 'clasifier'. Did you mean 'classifier'? Available: backbone, blend, classifier"
    )


def test_an_unknown_network_is_the_only_problem():
    with pytest.raises(ConfigError) as error:
        resolve("small", network="sgrl", lr_scale={"sd": 0.1})
    assert len(error.value.problems) == 1
