"""KGGR against loops over its equations; and SARB on it."""

import inspect
import math

import pytest
import torch
from torch.autograd import gradcheck

from sarb.labels import LabelMatrix
from sarb.methods.sarb import SARB
from sarb.model import Model, load_model
from sarb.networks import KGGR, SSGRL, create_backbone
from sarb.networks.branches import classify_branches
from sarb.networks.informed import prior_logits
from tests.contract.test_contract import make_batch
from tests.networks.test_branches import branch

C, D = 3, 2
GRAPH = torch.tensor([[1, 0.6, 0.1], [0.3, 1, 0.0], [0.2, 0.9, 1]])
LABELS = LabelMatrix([[1, 0, -1], [1, -1, -1], [-1, -1, 0], [0, 0, -1]], ["a", "b", "c"])


def network(dtype=torch.float64, **options):
    torch.manual_seed(0)
    built = KGGR(create_backbone("tiny"), C, GRAPH, **{"dim": D, "hidden": 4, "word_dim": 5, **options})
    for parameter in (*built.weight_graph.parameters(), *built.classifier.parameters()):
        torch.nn.init.normal_(parameter)
    return built.to(dtype).train()


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def times(matrix, vector):
    return [sum(weight * x for weight, x in zip(row, vector, strict=True)) for row in matrix.tolist()]


def gated(graph, states, edges):
    """The gated graph, one category and one number at a time."""
    dim, count = len(states[0]), len(states)
    for _ in range(graph.steps):
        new = []
        for i in range(count):
            message = [sum(edges[i][j] * states[j][d] for j in range(count)) for d in range(dim)]
            message += [sum(edges[j][i] * states[j][d] for j in range(count)) for d in range(dim)]

            def gate(kind, state, message=message):
                layer, own = getattr(graph, f"message_{kind}"), getattr(graph, f"state_{kind}")
                parts = zip(
                    times(layer.weight, message), layer.bias.tolist(), times(own.weight, state), strict=True
                )
                return [sum(part) for part in parts]

            update, reset = (list(map(sigmoid, gate(kind, states[i]))) for kind in ("update", "reset"))
            content = map(
                math.tanh, gate("candidate", [r * h for r, h in zip(reset, states[i], strict=True)])
            )
            new.append([(1 - z) * h + z * n for z, h, n in zip(update, states[i], content, strict=True)])
        states = new
    return states


@pytest.mark.parametrize(("steps", "weight_steps"), [(3, 3), (1, 2)])
@torch.no_grad()
def test_logit_is_propagated_weight_times_contextual_feature(steps, weight_steps):
    built = network(steps=steps, weight_steps=weight_steps)
    edges, reps = GRAPH.double().tolist(), torch.randn(2, C, D, dtype=torch.float64)
    weights = gated(built.weight_graph, built.classifier.category.weight.tolist(), edges)
    for b in range(2):
        states = gated(built.graph, reps[b].tolist(), edges)
        for c in range(C):
            joined = times(built.classifier.join.weight, states[c] + reps[b, c].tolist())
            context = [
                math.tanh(x + y) for x, y in zip(joined, built.classifier.join.bias.tolist(), strict=True)
            ]
            expected = sum(w * o for w, o in zip(weights[c], context, strict=True))
            expected += float(built.classifier.category.bias[c])
            assert float(built.classify(reps)[b, c]) == pytest.approx(expected, abs=1e-9)


def test_a_category_without_examples_learns_from_its_company():
    """The point of the second graph: the loss of category 1 moves the weights that categories 0 and 2 start
    from.
    """
    built = network()
    reps = torch.randn(4, C, D, dtype=torch.float64)
    built.classify(reps)[:, 1].sum().backward()
    assert (built.classifier.category.weight.grad.abs().sum(1) > 0).all()


def test_closed_second_graph_is_ssgrl():
    built = network()
    built.weight_graph.message_update.weight.data.zero_()
    built.weight_graph.state_update.weight.data.zero_()
    built.weight_graph.message_update.bias.data.fill_(-1e3)
    reps = torch.randn(2, C, D, dtype=torch.float64)
    assert torch.allclose(built.classify(reps), SSGRL.classify(built, reps), atol=1e-12)


def test_dropout_takes_the_contextual_feature_away():
    built, reps = network(dropout=1.0), torch.randn(2, C, D, dtype=torch.float64)
    assert torch.equal(built.classify(reps), built.classifier.category.bias.expand(2, C))
    assert not torch.equal(built.eval().classify(reps), built.classifier.category.bias.expand(2, C))


def test_gradients():
    built = network()
    built.forward = built.classify
    shared = ("graph.", "weight_graph.", "classifier.")
    parts = {name: value for name, value in built.named_parameters() if name.startswith(shared)}
    reps = torch.randn(2, C, D, dtype=torch.float64, requires_grad=True)

    def run(reps, *values):
        return torch.func.functional_call(built, dict(zip(parts, values, strict=True)), (reps,))

    assert gradcheck(run, (reps, *(value.detach().clone().requires_grad_() for value in parts.values())))


@pytest.mark.parametrize("entries", [[], [(1, 0)], [(0, 2), (1, 0), (2, 2)]])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_all_branches_at_once_equal_one_after_the_other(entries, dropout):
    built = network(dropout=dropout)
    reps = torch.randn(3, C, D, dtype=torch.float64)
    branches = [branch(reps, [(2, 0), (2, 1)]), branch(reps, entries, one_each=True)]
    torch.manual_seed(1)
    ours = classify_branches(built, reps, branches)
    torch.manual_seed(1)
    for one, copy in zip(ours, (reps, *(part.reps for part in branches)), strict=True):
        assert torch.allclose(one, built.classify(copy), atol=1e-12)


@pytest.mark.parametrize("csrl", ["sd", "sam"])
def test_sarb_trains_a_step(csrl):
    method = SARB(network(torch.float32, csrl=csrl), prototypes=2, start=0)
    labels = torch.tensor([[1, 0, -1], [0, 1, 0], [1, 1, -1], [0, 0, 0]], dtype=torch.int8)
    batch = make_batch(labels)
    method.epochs = 2
    method.begin_epoch(0, lambda: [batch])
    method.begin_step(0.5)
    before = {name: value.clone() for name, value in method.named_parameters() if value.requires_grad}
    optimizer = torch.optim.Adam(method.parameters(), 1e-2)
    terms = method(batch)
    assert {"cls", "ilrb", "plrb"} <= set(terms)
    sum(terms.values()).backward()
    optimizer.step()
    still = [
        name
        for name, value in method.named_parameters()
        if name in before and torch.equal(value, before[name])
    ]
    assert not [
        name for name in still if ".weight_graph." in name or ".classifier." in name or ".graph." in name
    ]


def test_informed_start_is_that_of_ssgrl_with_the_second_graph_nearly_closed():
    torch.manual_seed(0)
    built = KGGR(
        create_backbone("tiny"), C, GRAPH, csrl="sam", dim=16, initial="informed", normalise=True
    ).train()
    images = torch.rand(12, 3, 64, 64)
    built.initialise(LABELS, lambda: [built.backbone.frozen(images)])
    own = built.classifier.category.weight
    assert (built.weights() - own).abs().max() < 0.1
    assert torch.allclose(built(images).mean(0), prior_logits(LABELS), atol=0.5)


def test_random_start_is_left_alone():
    built = network()
    before = {key: value.clone() for key, value in built.state_dict().items()}
    built.initialise(LABELS, list)
    assert all(torch.equal(value, before[key]) for key, value in built.state_dict().items())


def test_options_are_those_of_ssgrl_and_one_more():
    ours, theirs = (
        {p.name: p.default for p in inspect.signature(made).parameters.values() if p.kind is p.KEYWORD_ONLY}
        for made in (KGGR, SSGRL)
    )
    assert ours == {**theirs, "weight_steps": 3}
    chosen = {
        "csrl": "sam",
        "dim": 6,
        "steps": 1,
        "grid": 3,
        "dropout": 0.25,
        "normalise": True,
        "initial": "informed",
    }
    built = KGGR(create_backbone("tiny"), C, weight_steps=2, neighbours=1, **chosen)
    assert built.sam is not None and built.sam.normalise and built.dim == 6 and built.grid == 3
    assert (built.graph.steps, built.weight_graph.steps, built.classifier.dropout.p) == (1, 2, 0.25)
    assert built.initial == "informed" and built.neighbours == 1 and not built.repeats()
    semantic = KGGR(create_backbone("tiny"), C, dim=6, hidden=7, word_dim=9)
    assert semantic.sd is not None and semantic.sd.word.weight.shape == (7, 9)


def test_save_and_load(tmp_path):
    options = {"dim": D, "hidden": 4, "word_dim": 5}
    config = {
        "network": "kggr",
        "network_options": options,
        "backbone": "tiny",
        "backbone_options": {},
        "image_size": 64,
    }
    built = network(torch.float32).eval()
    Model(built, ["a", "b", "c"], config).save(tmp_path / "model")
    images = torch.rand(2, 3, 64, 64)
    assert torch.equal(load_model(tmp_path / "model").network(images), built(images))
