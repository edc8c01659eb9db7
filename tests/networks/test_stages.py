"""Every module of the network against a slow, obvious loop over the equation it implements."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from sarb.errors import ConfigError
from sarb.networks import (
    SSGRL,
    CategoryLinear,
    CategoryWords,
    ContextClassifier,
    GatedGraph,
    Pooled,
    SemanticAttention,
    SemanticDecoupling,
    create_backbone,
)

B, C, D, W, HIDDEN, H = 2, 3, 4, 5, 6, 2


def double(module: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def matvec(matrix: torch.Tensor, vector: list[float]) -> list[float]:
    return [sum(float(weight) * x for weight, x in zip(row, vector, strict=True)) for row in matrix]


def test_semantic_decoupling_equals_the_loop_with_two_linears() -> None:
    module = double(SemanticDecoupling(D, W, HIDDEN))
    maps, words = torch.randn(B, D, H, H).double(), torch.randn(C, W).double()
    reps, attention = module(maps, words)
    for b in range(B):
        for c in range(C):
            logits = []
            for y in range(H):
                for x in range(H):
                    image = matvec(module.image.weight, maps[b, :, y, x].tolist())
                    word = matvec(module.word.weight, words[c].tolist())
                    joint = [math.tanh(i * w) for i, w in zip(image, word, strict=True)]
                    logits.append(matvec(module.score.weight, matvec(module.joint.weight, joint))[0])
            weights = [math.exp(logit) for logit in logits]
            weights = [weight / sum(weights) for weight in weights]
            assert attention[b, c].flatten().tolist() == pytest.approx(weights, abs=1e-10)
            expected = [
                sum(w * float(maps[b, d, p // H, p % H]) for p, w in enumerate(weights)) for d in range(D)
            ]
            assert reps[b, c].tolist() == pytest.approx(expected, abs=1e-10)


def test_semantic_decoupling_keeps_both_linears_as_parameters_with_gradients() -> None:
    module = double(SemanticDecoupling(D, W, HIDDEN))
    module(torch.randn(B, D, H, H).double(), torch.randn(C, W).double())[0].square().sum().backward()
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in module.parameters()
    )
    assert module.joint.weight.shape == (HIDDEN, HIDDEN)
    assert module.score.weight.shape == (1, HIDDEN)


def test_semantic_attention_is_an_unnormalised_sum_under_sigmoid_masks() -> None:
    module = double(SemanticAttention(D, C))
    maps = torch.randn(B, D, H, H).double()
    reps, masks = module(maps)
    for b in range(B):
        for c in range(C):
            expected = [0.0] * D
            for y in range(H):
                for x in range(H):
                    cell = maps[b, :, y, x].tolist()
                    mask = sigmoid(matvec(module.mask.weight[:, :, 0, 0], cell)[c])
                    assert float(masks[b, c, y, x]) == pytest.approx(mask, abs=1e-10)
                    moved = matvec(module.transform.weight[:, :, 0, 0], cell)
                    for d in range(D):
                        expected[d] += mask * (moved[d] + float(module.transform.bias[d]))
            assert reps[b, c].tolist() == pytest.approx(expected, abs=1e-9)


def test_normalised_semantic_attention_is_the_sum_scaled_to_an_average() -> None:
    module = double(SemanticAttention(D, C))
    maps = torch.randn(B, D, H, H).double()
    plain, masks = module(maps)
    module.normalise = True
    scaled, same = module(maps)
    assert torch.allclose(scaled, plain * 2 / (H * H))
    assert torch.equal(masks, same)
    torch.nn.init.zeros_(module.mask.weight)
    assert torch.allclose(module(maps)[0][:, 0], module.transform(maps).mean((2, 3)))


def loop_graph(module: GatedGraph, states: torch.Tensor, graph: torch.Tensor) -> list[list[float]]:
    """One image: T steps written out."""
    h = states.tolist()
    for _ in range(module.steps):
        new = []
        for i in range(C):
            out = [sum(float(graph[i, j]) * h[j][d] for j in range(C)) for d in range(D)]
            back = [sum(float(graph[j, i]) * h[j][d] for j in range(C)) for d in range(D)]
            message = out + back

            def gate(kind: str, state: list[float], message: list[float] = message) -> list[float]:
                layer = getattr(module, f"message_{kind}")
                a = matvec(layer.weight, message)
                u = matvec(getattr(module, f"state_{kind}").weight, state)
                return [a[d] + float(layer.bias[d]) + u[d] for d in range(D)]

            z = [sigmoid(value) for value in gate("update", h[i])]
            r = [sigmoid(value) for value in gate("reset", h[i])]
            candidate = [math.tanh(v) for v in gate("candidate", [r[d] * h[i][d] for d in range(D)])]
            new.append([(1 - z[d]) * h[i][d] + z[d] * candidate[d] for d in range(D)])
        h = new
    return h


@pytest.mark.parametrize("steps", [1, 3])
def test_gated_graph_equals_the_loop(steps: int) -> None:
    module = double(GatedGraph(D, steps))
    states, graph = torch.randn(B, C, D).double(), torch.rand(C, C).double()
    result = module(states, graph)
    for b in range(B):
        expected = loop_graph(module, states[b], graph)
        for i in range(C):
            assert result[b, i].tolist() == pytest.approx(expected[i], abs=1e-9)


def test_gated_graph_has_six_different_matrices() -> None:
    matrices = [p for p in GatedGraph(D).parameters() if p.ndim == 2]
    assert len(matrices) == 6
    assert len({p.data_ptr() for p in matrices}) == 6


def test_classifier_equals_the_loop() -> None:
    module = double(ContextClassifier(C, D)).eval()
    states, reps = torch.randn(B, C, D).double(), torch.randn(B, C, D).double()
    logits = module(states, reps)
    for b in range(B):
        for c in range(C):
            joined = matvec(module.join.weight, states[b, c].tolist() + reps[b, c].tolist())
            hidden = [
                math.tanh(value + float(bias)) for value, bias in zip(joined, module.join.bias, strict=True)
            ]
            weight, bias = module.category.weight[c], float(module.category.bias[c])
            expected = sum(float(w) * value for w, value in zip(weight, hidden, strict=True)) + bias
            assert float(logits[b, c]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("module", "shapes"),
    [
        (SemanticDecoupling(D, W, HIDDEN), [(B, D, H, H), (C, W)]),
        (SemanticAttention(D, C), [(B, D, H, H)]),
        (GatedGraph(D, 2), [(B, C, D), (C, C)]),
        (ContextClassifier(C, D), [(B, C, D), (B, C, D)]),
        (CategoryLinear(C, D), [(B, C, D)]),
    ],
    ids=["sd", "sam", "graph", "classifier", "linear"],
)
def test_gradients(module: torch.nn.Module, shapes: list[tuple[int, ...]]) -> None:
    module = double(module)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]

    def run(*arguments: torch.Tensor) -> torch.Tensor:
        parameters = dict(zip(names, arguments[len(inputs) :], strict=True))
        out = torch.func.functional_call(module, parameters, arguments[: len(inputs)])
        return out[0] if isinstance(out, tuple) else out

    assert gradcheck(run, (*inputs, *values))


def test_words_given_stay_and_missing_are_learned() -> None:
    given = torch.randn(3, 8)
    words = CategoryWords(3, 8, given, torch.tensor([True, False, True]))
    out = words()
    assert torch.equal(out[[0, 2]], given[[0, 2]])
    assert not torch.equal(out[1], given[1])
    out.sum().backward()
    assert words.learned.grad is not None
    assert words.learned.grad[[0, 2]].abs().sum() == 0
    assert words.learned.grad[1].abs().sum() > 0
    assert not CategoryWords(3, 8, given).learned.requires_grad


def test_ssgrl_pools_only_grids_larger_than_seven() -> None:
    network = SSGRL(create_backbone("tiny"), C, dim=8, hidden=4).eval()
    assert network.maps(torch.rand(1, 3, 224, 224)).shape == (1, 8, 7, 7)  # stride 16: 14 → 7
    assert network.maps(torch.rand(1, 3, 112, 112)).shape == (1, 8, 7, 7)  # 7 stays
    assert network.maps(torch.rand(1, 3, 64, 64)).shape == (1, 8, 4, 4)


def test_ssgrl_walk_has_the_documented_shapes() -> None:
    for csrl in ("sd", "sam"):
        network = SSGRL(create_backbone("tiny"), C, csrl=csrl, dim=8, hidden=4).eval()
        maps = network.maps(torch.rand(B, 3, 64, 64))
        reps = network.represent(maps)
        assert maps.shape == (B, 8, 4, 4)
        assert reps.shape == (B, C, 8)
        assert network.classify(reps).shape == (B, C)
        assert network.attention(maps).shape == (B, C, 4, 4)


def test_ssgrl_refuses_an_unknown_csrl() -> None:
    with pytest.raises(ConfigError, match=r"unknown network\.csrl 'sdd'. Did you mean 'sd'"):
        SSGRL(create_backbone("tiny"), C, csrl="sdd")


def test_pooled_is_a_linear_on_the_average_and_its_activation_maps_average_to_the_logit() -> None:
    network = Pooled(create_backbone("tiny"), C).eval()
    maps = torch.randn(B, 64, 3, 3)
    logits = network.classify(maps)
    expected = [
        [
            sum(float(network.classifier.weight[c, d]) * float(maps[b, d].mean()) for d in range(64))
            + float(network.classifier.bias[c])
            for c in range(C)
        ]
        for b in range(B)
    ]
    assert torch.allclose(logits, torch.tensor(expected), atol=1e-5)
    heat = network.attention(maps).mean((2, 3)) + network.classifier.bias
    assert torch.allclose(heat, logits, atol=1e-5)
