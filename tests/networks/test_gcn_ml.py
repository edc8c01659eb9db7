"""GCN-ML against numbers worked out by hand, and against loops over its equations."""

import pytest
import torch
from torch.autograd import gradcheck

from sarb.errors import ConfigError, StageError
from sarb.labels import LabelMatrix
from sarb.methods.sarb import SARB
from sarb.model import Model, load_model
from sarb.networks import GCNML, create_backbone
from sarb.networks.gcn_ml import GraphConvolutions, NodeClassifier, correlation
from sarb.networks.informed import prior_logits

LABELS = LabelMatrix([[1, 0, -1], [1, -1, -1], [-1, -1, 0], [0, 0, -1]], ["a", "b", "c"])


def network(**options):
    torch.manual_seed(0)
    options = {"hidden": 5, "word_dim": 4, **options}
    return GCNML(
        create_backbone("tiny"), 3, torch.tensor([[1, 0.5, 0], [0.1, 1, 0], [0.8, 0.9, 1]]), **options
    )


def test_the_matrix_of_four_categories_by_hand():
    # P(j | i): 0 implies 1 and 2, 1 implies nobody, 2 implies 0 just at the threshold, 3 implies all others
    rates = [[1, 0.4, 0.9, 0.39], [0.1, 1, 0.3, 0], [0.4, 0, 1, 0.2], [0.5, 0.6, 0.7, 1]]
    counted = torch.tensor(rates, dtype=torch.float64)
    # A' = I + 1/4 in equal parts; its rows sum to 5/4, or to 1 without neighbours
    weights = [[1, 1 / 8, 1 / 8, 0], [0, 1, 0, 0], [1 / 4, 0, 1, 0], [1 / 12, 1 / 12, 1 / 12, 1]]
    degree = [5 / 4, 1, 5 / 4, 5 / 4]
    expected = [[weights[i][j] / (degree[i] * degree[j]) ** 0.5 for j in range(4)] for i in range(4)]
    found = correlation(counted)
    for i in range(4):
        assert found[i].tolist() == pytest.approx(expected[i], abs=1e-12)
    assert expected[0][2] == pytest.approx(0.1)  # 1/8 divided by 5/4
    assert expected[0][1] == pytest.approx(0.111803, abs=1e-6)  # 1/8 divided by the root of 5/4


def test_threshold_and_weight_of_the_neighbours_are_options():
    counted = torch.tensor([[1, 0.3], [0.2, 1]])
    assert torch.equal(correlation(counted), torch.eye(2))
    assert correlation(counted, 0.25, 1.0).tolist() == [pytest.approx([0.5, 0.5**0.5]), pytest.approx([0, 1])]
    assert torch.equal(correlation(counted, 0.25, 0.0), torch.eye(2))
    assert torch.allclose(network(threshold=0.95).adjacency, torch.eye(3))


def test_convolutions_and_score_of_three_categories_by_hand():
    # W = 2, hidden 2, D = 2; Â: category 0 listens to category 1 with weight 0.5
    graph = GraphConvolutions(2, 2, 2)
    adjacency = torch.tensor([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])
    words = torch.tensor([[1.0, 0], [0, 2], [-1, 1]])
    graph.first.weight.data = torch.tensor([[1.0, 1], [0, -1]])
    graph.second.weight.data = torch.tensor([[1.0, 0], [2, 1]])
    # E W1: (1, 0), (2, -2), (0, -1); with the graph: (2, -1), (2, -2), (0, -1)
    # LeakyReLU: (2, -0.2), (2, -0.4), (0, -0.2); times W2: (2, 3.8), (2, 3.6), (0, -0.2)
    # with the graph again: category 0 is (2, 3.8) + (1, 1.8)
    nodes = graph(words, adjacency)
    assert torch.allclose(nodes, torch.tensor([[3, 5.6], [2, 3.6], [0, -0.2]]))
    x = torch.tensor([[10.0, -1]])
    assert torch.allclose(NodeClassifier(3, bias=False)(x, nodes), torch.tensor([[24.4, 16.4, 0.2]]))
    with_bias = NodeClassifier(3, bias=True)
    with_bias.bias.data = torch.tensor([1.0, 0, -1])
    assert torch.allclose(with_bias(x, nodes), torch.tensor([[25.4, 16.4, -0.8]]))


@pytest.mark.parametrize("bias", [True, False])
def test_logits_are_loops_over_nodes_and_the_maximum_of_the_grid(bias):
    built = network(bias=bias).double()
    if bias:
        torch.nn.init.normal_(built.classifier.bias)
    maps = torch.randn(2, 64, 2, 3).double()
    logits, nodes, heat = (
        part.detach() for part in (built.classify(maps), built.nodes(), built.attention(maps))
    )
    assert nodes.shape == (3, 64) and heat.shape == (2, 3, 2, 3)
    for b in range(2):
        for c in range(3):
            top = [max(maps[b, d].flatten().tolist()) for d in range(64)]
            expected = sum(float(nodes[c, d]) * top[d] for d in range(64))
            expected += float(built.classifier.bias[c].detach()) if bias else 0
            assert float(logits[b, c]) == pytest.approx(expected, abs=1e-9)
            cell = sum(float(nodes[c, d]) * float(maps[b, d, 1, 2]) for d in range(64))
            assert float(heat[b, c, 1, 2]) == pytest.approx(cell, abs=1e-9)


def test_the_network_takes_its_graph_and_its_words():
    words = torch.randn(3, 4)
    built = network(words=(words, torch.tensor([True, True, False])))
    used = built.words()
    assert torch.equal(used[:2], words[:2]) and not torch.equal(used[2], words[2])
    assert built.adjacency[0, 2] == 0 and built.adjacency[2, 0] > 0  # P(0 | 2) is 0.8: 2 listens to 0
    hidden = torch.nn.functional.leaky_relu(built.adjacency @ used @ built.graph.first.weight.T, 0.2)
    assert torch.allclose(built.nodes(), built.adjacency @ hidden @ built.graph.second.weight.T, atol=1e-6)


def test_widths_of_the_paper():
    built = GCNML(create_backbone("tiny"), 3)
    assert built.graph.first.weight.shape == (1024, 300)
    assert built.graph.second.weight.shape == (64, 1024)
    assert [name for name, _ in built.named_parameters() if name.startswith("classifier")] == []
    assert torch.equal(built.adjacency, torch.eye(3))


def test_gradients():
    built = network(bias=True).double()
    built.forward = built.classify
    maps = torch.randn(2, 64, 2, 2, dtype=torch.float64, requires_grad=True)
    parts = {name: value for name, value in built.named_parameters() if not name.startswith("backbone.")}
    assert set(parts) == {"words.learned", "graph.first.weight", "graph.second.weight", "classifier.bias"}

    def run(maps, *values):
        return torch.func.functional_call(built, dict(zip(parts, values, strict=True)), (maps,))

    assert gradcheck(run, (maps, *(value.detach().clone().requires_grad_() for value in parts.values())))


@torch.no_grad()
def test_informed_start_predicts_near_the_known_rates():
    built = network(bias=True, initial="informed").eval()
    images = torch.rand(12, 3, 64, 64)
    built.initialise(LABELS, lambda: [built.backbone.frozen(images)])
    off = built(images) - prior_logits(LABELS)
    assert float(off.std()) == pytest.approx(0.1, rel=0.02)
    assert off.abs().max() < 0.5
    without = network(initial="informed").eval()
    without.initialise(LABELS, lambda: [without.backbone.frozen(images)])
    assert float(without(images).std()) == pytest.approx(0.1, rel=0.02)


def test_random_start_is_left_alone():
    built = network(bias=True)
    before = {key: value.clone() for key, value in built.state_dict().items()}
    built.initialise(LABELS, list)
    assert all(torch.equal(value, before[key]) for key, value in built.state_dict().items())


def test_save_and_load_keep_graph_and_words(tmp_path):
    options = {"hidden": 5, "word_dim": 4, "bias": True}
    config = {
        "network": "gcn_ml",
        "network_options": options,
        "backbone": "tiny",
        "backbone_options": {},
        "image_size": 64,
    }
    built = network(bias=True, words=(torch.randn(3, 4), torch.tensor([True, False, True]))).eval()
    Model(built, ["a", "b", "c"], config).save(tmp_path / "model")
    loaded, images = load_model(tmp_path / "model").network, torch.rand(2, 3, 64, 64)
    assert torch.equal(loaded(images), built(images))
    assert torch.equal(loaded.adjacency, built.adjacency) and not torch.equal(loaded.adjacency, torch.eye(3))


def test_sarb_needs_a_representation_that_it_does_not_have():
    with pytest.raises(StageError, match="'represent'"):
        SARB(network())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 40.0}, r"network\.threshold must be between 0 and 1, got 40; did you mean 0\.4"),
        ({"reweight": -0.1}, r"network\.reweight must be between 0 and 1"),
        ({"initial": "informd"}, "Did you mean 'informed'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ConfigError, match=message):
        network(**options)
