"""Two processes train the model of one: losses, weights and metrics, also when the run changes hands in between."""

import csv
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.multiprocessing

import sarb
from sarb.batches.loader import Batch
from sarb.errors import ConfigError, SarbError
from sarb.runs.tensors import read_tensors
from sarb.settings import Settings
from sarb.training.spread import PlainPass, Spread, grouped
from tests.waiting import PATIENCE

COMMON = {
    "recipe": "small",
    "backbone": "tiny",
    "image_size": 64,
    "batch_size": 7,
    "lr": 2e-3,
    "precision": "fp64",
    "progress": False,
    "cache": False,
    "augment": True,
    "valid": 0.3,
    "epochs": 2,
}
SEMANTIC = {
    "network": "ssgrl",
    "network_options": {"csrl": "sd", "dim": 8, "hidden": 4},
    "across_ranks": True,
}
CASES = {
    "sarb": {**SEMANTIC, "method": "sarb", "method_options": {"start": 1}},
    "dsrb": {**SEMANTIC, "method": "dsrb", "method_options": {"start": 1}},
    "partial_bce": {"method": "partial_bce", "network": "pooled", "accumulate": 2},
    "image": {"method": "partial_bce", "network": "pooled", "method_options": {"form": "image"}},
    "an": {"method": "an", "network": "pooled"},
    "hill": {"method": "hill", "network": "pooled"},
    "asl": {"method": "asl", "network": "pooled"},
    "curriculum": {
        "method": "curriculum",
        "network": "pooled",
        "epochs": 1,
        "method_options": {"rounds": 2, "threshold": 0.1},
    },
    # 25 images: the last batch has one, and the second process must not count with it
    "left": {**SEMANTIC, "method": "sarb", "method_options": {"start": 1}, "batch_size": 8},
    "left_sum": {"method": "hill", "network": "pooled", "batch_size": 8},
    "left_rounds": {
        "method": "curriculum",
        "network": "pooled",
        "epochs": 1,
        "batch_size": 8,
        "accumulate": 2,
        "method_options": {"rounds": 2, "threshold": 0.1},
    },
    "left_norms": {
        "method": "partial_bce",
        "network": "pooled",
        "batch_size": 8,
        "backbone_options": {"train_stages": 1, "frozen_norms": False},
    },
}


def train(source, folder, case, **more):
    data = sarb.load(source, encoding="binary").train.hide(0.5, 0)
    return sarb.fit(data, out=Path(folder) / case, **{**COMMON, **CASES[case], **more})


def process(rank, port, source, folder):
    os.environ |= {
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
    }
    torch.set_num_threads(1)
    for case in CASES:
        train(source, folder, case)
    own = train(source, f"{folder}/own", "left_norms", sync_batch_norm=False).network
    np.save(f"{folder}/norms-{rank}.npy", torch.cat([each.flatten().double() for each in own.buffers()]))
    with pytest.raises(ConfigError, match="a batch of 1 images cannot be split over 2 processes"):
        train(source, f"{folder}/small", "an", batch_size=1)
    for name in ("back", "inside"):  # begun by a single process
        train(source, f"{folder}/{name}", "sarb", resume=True, checkpoint_every=2)
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as open_socket:
        open_socket.bind(("localhost", 0))
        return open_socket.getsockname()[1]


@pytest.fixture(scope="module")
def folders(squares, tmp_path_factory):
    """Runs of one process and of two, and runs that a single process began and two go on with.

    It stopped after the first epoch, or inside the second one, after a checkpoint.
    """
    source = str(squares / "labels.csv")
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    for case in CASES:
        train(source, one, case)
    with pytest.MonkeyPatch.context() as patch:
        from sarb.training.loop import Training

        real = Training._epoch
        patch.setattr(Training, "_epoch", lambda self, epoch: real(self, epoch) if not epoch else _stop())
        with pytest.raises(KeyboardInterrupt):
            train(source, two / "back", "sarb")
    with pytest.MonkeyPatch.context() as patch:
        step, steps = Training._step, []

        def third_of_the_second_epoch(self, *given):
            steps.append(given)
            return _stop() if len(steps) == 7 else step(self, *given)

        patch.setattr(Training, "_step", third_of_the_second_epoch)
        with pytest.raises(KeyboardInterrupt):
            train(source, two / "inside", "sarb", checkpoint_every=2)
        state = two / "inside" / "sarb" / "checkpoint" / "state.safetensors"
        assert json.loads(read_tensors(state)[1]["state"])["step"] == 2
    context = torch.multiprocessing.get_context("spawn")
    port = free_port()
    workers = [context.Process(target=process, args=(rank, port, source, str(two))) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(2 * PATIENCE)
        assert worker.exitcode == 0
    return one, two


def _stop():
    raise KeyboardInterrupt


def tensors(run):
    from safetensors.torch import load_file

    stored = load_file(run / "checkpoint" / "state.safetensors")
    return {key: value for key, value in stored.items() if key.startswith("method.")}


def table(run, name):
    return list(csv.DictReader((run / name).open()))


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, "back/sarb", "inside/sarb"])
def test_two_processes_train_the_model_of_one(folders, case):
    one, two = folders[0] / case.split("/")[-1], folders[1] / case
    losses = [[float(row["loss"]) for row in table(run, "steps.csv")] for run in (one, two)]
    assert len(losses[0]) == len(losses[1]) > 3
    assert np.abs(np.subtract(*losses)).max() <= 1e-5
    first, second = tensors(one), tensors(two)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert torch.allclose(value.double(), second[key].double(), rtol=0, atol=1e-5), key
    logs = [table(run, "log.csv") for run in (one, two)]
    for row, other in zip(*logs, strict=True):
        for key in row.keys() - {"seconds"}:
            assert (row[key] or "0") == (other[key] or "0") or float(row[key]) == pytest.approx(
                float(other[key]), abs=1e-5
            ), key
    completed = [key for key in logs[0][-1] if key.startswith("completed_")]
    assert all(logs[0][-1][key] == logs[1][-1][key] for key in completed)


@pytest.mark.slow
def test_batch_norms_that_are_not_synchronised_end_alike(folders):
    """Both processes validate and test, and only the model of the first one is saved."""
    first, second = (np.load(folders[1] / f"norms-{rank}.npy") for rank in range(2))
    assert np.array_equal(first, second)


@pytest.mark.slow
def test_the_comparison_would_notice_partners_of_one_process_only(folders, squares, tmp_path):
    """Another draw of partners is far outside the tolerance."""
    train(str(squares / "labels.csv"), tmp_path, "sarb", seed=1)
    other, right = tensors(tmp_path / "sarb"), tensors(folders[0] / "sarb")
    assert max(float((other[key].double() - right[key].double()).abs().max()) for key in right) > 1e-3


class Alone:
    process_index = 0
    num_processes = 1
    device = torch.device("cpu")


def batch(labels):
    labels = torch.tensor(labels, dtype=torch.int8)
    return Batch(torch.zeros(len(labels), 1, 1, 1), labels, torch.arange(len(labels)))


def test_accumulated_parts_are_weighed_by_their_known_labels():
    steps = Spread(Alone(), Settings()).steps([batch([[1, -1], [0, 1]]), batch([[0, 0]]), batch([[0, 1]])])
    assert [step.ratios["known"] for step in steps] == [4 / 3, 1.0, 4.0]
    assert [step.ratios["images"] for step in steps] == [2.0, 4.0, 4.0]
    assert {step.parts for step in steps} == {3}


def test_a_part_that_nobody_could_read_is_left_out():
    nothing = Batch(torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    steps = Spread(Alone(), Settings()).steps([batch([[1, -1]]), nothing])
    assert steps[1] is None and steps[0].parts == 1


def test_an_image_that_stands_in_counts_nothing():
    (step,) = Spread(Alone(), Settings(batch_size=2)).steps([batch([[1, -1]])], [False])
    assert not step.stands_in
    spread = Spread(Alone(), Settings())
    spread.world = 2
    spread._gathered = lambda own: torch.stack([torch.tensor([[1, 2, 1]]), own])
    (step,) = spread.steps([batch([[1, -1]])], [True])
    assert step.sizes == (1, 0) and step.parts == 2


def test_batches_are_grouped():
    assert [list(group) for group in grouped("abcde", 2)] == [["a", "b"], ["c", "d"], ["e"]]


def test_a_pass_gives_everything_or_a_share():
    asked = PlainPass(lambda rank, world: [(rank, world)], Spread(Alone(), Settings()))
    assert asked() == asked.share() == [(0, 1)]


def test_all_must_see_the_same_folder(monkeypatch):
    spread = Spread(Alone(), Settings())
    assert spread.agree("runs/a", True) is True
    monkeypatch.setattr("sarb.training.spread.objects_of_all", lambda seen: [seen, False])
    spread.world = 2
    with pytest.raises(SarbError, match="process 0 of 2 sees it, process 1 does not"):
        spread.agree("runs/a", True)
    assert spread.agree("runs/a", False) is False
