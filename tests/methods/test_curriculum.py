"""Curriculum labeling: what it learns from, when it labels, and that a resumed run is the same run."""

import csv
import math

import pytest
import torch
from safetensors.torch import load_file

import sarb
import sarb.training.loop as loop
from sarb.batches.loader import Batch
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.methods.curriculum import Curriculum
from sarb.methods.strategies import STRATEGIES
from sarb.networks import create_backbone
from sarb.networks.base import Network
from sarb.networks.pooled import Pooled

LABELS = torch.tensor([[1, 0, 0], [0, -1, 0]], dtype=torch.int8)
LOGITS = torch.tensor([[0.5, 3.0, -1.0], [-4.0, 9.0, 0.0]])


class Echo(Network):
    """The image (B, C, 1, 1) is the score."""

    stages = frozenset({"maps", "classify"})

    def __init__(self):
        super().__init__(create_backbone("tiny"), 3)

    def maps(self, images):
        return images

    def classify(self, features):
        return features[:, :, 0, 0]


def batch(logits=LOGITS, labels=LABELS):
    return Batch(logits[:, :, None, None], labels, torch.arange(len(labels)))


def echo(**options):
    method = Curriculum(Echo(), **options)
    method.prepare(LabelMatrix(LABELS.numpy(), ["a", "b", "c"]))
    method.epochs = 1
    return method


def softplus(x):
    return math.log(1 + math.exp(x))


def test_the_loss_of_known_and_of_pseudo_labels_by_hand():
    method = echo(threshold=2.0, weight=0.5)
    terms = method(batch())
    plain = (softplus(-0.5) + softplus(9.0)) / 2  # known: present at 0.5, absent at 9
    assert terms["cls"].item() == pytest.approx(plain, rel=1e-6) and terms["curriculum"].item() == 0
    method.end_round(lambda: [batch()])
    method.begin_epoch(1, list)
    terms = method(batch())
    # 3 is beyond 2, -4 beyond -2; 9 is too, but known to be absent
    assert terms["cls"].item() == pytest.approx(plain, rel=1e-6)
    assert terms["curriculum"].item() == pytest.approx(0.5 * (softplus(-3.0) + softplus(-4.0)) / 2, rel=1e-5)
    assert method.figures() == {"completed_curriculum": 2}


def test_each_round_labels_anew_and_by_index():
    method = echo(threshold=2.0)
    method.end_round(lambda: [batch()])
    assert method.pseudo_value.int().tolist() == [[0, 1, 0], [0, 0, 0]]
    assert method.pseudo_weight.int().tolist() == [[0, 1, 0], [1, 0, 0]]
    # the second image comes first, and the first cannot be read any more
    method.end_round(lambda: [Batch(torch.full((1, 3, 1, 1), 8.0), LABELS[1:], torch.tensor([1]))])
    assert method.pseudo_value.int().tolist() == [[0, 0, 0], [1, 0, 1]]
    assert method.pseudo_weight.int().tolist() == [[0, 0, 0], [1, 0, 1]]


def test_ensemble_asks_the_networks_of_the_last_epochs_of_all_rounds_but_the_last():
    method = echo(strategy="ensemble", members=3, rounds=2, threshold=2.0)
    method.epochs, scores, asked = 4, iter((2.5, 8.0, 3.0)), []

    def loader():
        asked.append(method.epoch)
        return [batch(torch.full((2, 3), next(scores)))]

    for epoch in range(8):
        if epoch == 4:
            method.end_round(loader)
            assert method.agreed.isnan().all()
        method.begin_epoch(epoch, loader)
        if epoch == 3:
            assert method.agreed.tolist() == [[2.5] * 3] * 2  # the less sure of two
    assert asked == [2, 3, 3]
    assert method.pseudo_weight.int().tolist() == [[0, 1, 1], [1, 0, 1]]


def test_ensemble_of_members_that_disagree_labels_nothing():
    method = echo(strategy="ensemble", members=2, threshold=2.0)
    method.epochs = 2
    method.begin_epoch(1, lambda: [batch(torch.full((2, 3), 5.0))])
    method.end_round(lambda: [batch(torch.full((2, 3), -5.0))])
    assert method.pseudo_weight.sum() == 0


def test_uncertainty_is_the_deviation_of_the_probability_over_passes_with_dropout():
    torch.manual_seed(0)
    network = Pooled(create_backbone("tiny", train_stages=3), 3, dropout=0.5).train()
    method = Curriculum(network, strategy="uncertainty", passes=7)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    images = Batch(torch.rand(2, 3, 64, 64), LABELS, torch.arange(2))
    torch.manual_seed(5)
    opinion, unknown, _ = method._ask(lambda: [images])
    assert all(
        torch.equal(value, before[key]) for key, value in network.state_dict().items()
    )  # batch norms rest
    assert network.training and network.dropout.training
    network.eval()
    with torch.no_grad():
        pooled = network.maps(images.images).mean((2, 3))
        torch.manual_seed(5)
        logits = [network.classifier(torch.dropout(pooled, 0.5, train=True)) for _ in range(7)]
    for n in range(2):
        for c in range(3):
            chances = [1 / (1 + math.exp(-one[n, c].item())) for one in logits]
            mean = sum(chances) / 7
            spread = math.sqrt(sum((chance - mean) ** 2 for chance in chances) / 7)
            assert opinion.uncertainty[n, c].item() == pytest.approx(spread, rel=1e-3)
            assert opinion.score[n, c].item() == pytest.approx(
                sum(one[n, c].item() for one in logits) / 7, abs=1e-5
            )
    assert opinion.uncertainty.min() > 0
    assert unknown.tolist() == (LABELS == 0).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "uncertainty"}, "strategy 'uncertainty' needs dropout, but network Echo has none"),
        ({"strategy": "scores"}, "Did you mean 'score'?"),
        ({"strategy": "top", "threshold": 2.0}, "is a share of at most 1, got 2"),
        ({"threshold": -1.0}, "method.threshold must be at least 0, got -1"),
        ({"rounds": 0}, "method.rounds must be at least 1, got 0"),
        ({"passes": 1}, "method.passes must be at least 2, got 1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ConfigError) as caught:
        Curriculum(Echo(), **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def fit(data, folder, strategy, **more):
    options = {"strategy": strategy, "rounds": 3, "members": 2, "passes": 3, "positive_weight": 2.0}
    if strategy != "top":  # low enough for scores of either sign after so short a training
        options["threshold"] = 0.01
    return sarb.fit(
        data.train.hide(0.5, 0),
        network="pooled",
        method="curriculum",
        recipe="small",
        backbone="tiny",
        epochs=2,
        image_size=64,
        batch_size=12,
        lr=2e-2,
        progress=False,
        out=folder,
        method_options=options,
        network_options={"dropout": 0.3, "initial": "random"},
        backbone_options={"train_stages": 1},
        **more,
    )


def state(folder):
    return load_file(folder / "checkpoint" / "state.safetensors")


def log(folder):
    with (folder / "log.csv").open() as file:
        return [
            {key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rounds_label_the_unknown_and_a_resume_at_any_epoch_changes_nothing(
    squares_data, tmp_path, monkeypatch, strategy
):
    fit(squares_data, tmp_path / "whole", strategy)
    original, stop, known = loop.Training._epoch, -1, squares_data.train.hide(0.5, 0).labels.known

    def cut(self, epoch):
        if epoch == stop:
            raise KeyboardInterrupt
        return original(self, epoch)

    monkeypatch.setattr(loop.Training, "_epoch", cut)
    for stop in range(1, 7):  # 2 and 4 are the first epochs of new rounds
        if stop < 6:
            with pytest.raises(KeyboardInterrupt):
                fit(squares_data, tmp_path / "cut", strategy, resume=stop > 1)
        else:
            fit(squares_data, tmp_path / "cut", strategy, resume=True)
    whole, resumed = state(tmp_path / "whole"), state(tmp_path / "cut")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(value.nan_to_num(), resumed[key].nan_to_num()) for key, value in whole.items())
    rows = log(tmp_path / "whole")
    assert rows == log(tmp_path / "cut")
    counts = [int(row["completed_curriculum"]) for row in rows]
    labelled = whole["method.pseudo_weight"]
    assert counts[0] == counts[1] == 0 < counts[2] == counts[3]
    assert counts[4] == counts[5] == labelled.sum()
    assert not (labelled & torch.from_numpy(known)).any()
    assert [float(row["loss_curriculum"]) > 0 for row in rows] == [False] * 2 + [True] * 4


def test_every_round_starts_from_the_first_weights_also_after_a_resume(squares_data, tmp_path, monkeypatch):
    starts, original = {}, Curriculum.begin_epoch

    def note(self, epoch, loader):
        starts[epoch] = {key: value.clone() for key, value in self.network.state_dict().items()}
        original(self, epoch, loader)

    def cut(self, loader):
        raise KeyboardInterrupt

    monkeypatch.setattr(Curriculum, "begin_epoch", note)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Curriculum, "end_round", cut)
        fit(squares_data, tmp_path / "run", "score")
    fit(squares_data, tmp_path / "run", "score", resume=True)
    assert sorted(starts) == [0, 1, 2, 3, 4, 5]
    for epoch in (2, 4):
        assert all(torch.equal(value, starts[epoch][key]) for key, value in starts[0].items())
    assert not torch.equal(starts[1]["classifier.weight"], starts[0]["classifier.weight"])
