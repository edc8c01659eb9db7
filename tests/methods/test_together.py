"""Memories that several processes share."""

import json
import os
from pathlib import Path

import pytest
import torch
import torch.multiprocessing

from sarb.errors import SarbError
from sarb.labels import Targets
from sarb.methods.together import (
    Step,
    connected,
    counted,
    during,
    from_all,
    mean_share,
    over_all,
    pool,
    sum_share,
)
from tests.methods.toy import LABELS, LOGITS, batch, made
from tests.waiting import PATIENCE


def test_alone_nothing_changes():
    parts = (torch.arange(3), torch.rand(3, 2))
    assert all(one is other for one, other in zip(from_all(*parts), parts, strict=True))


def test_alone_a_pool_and_a_count_are_those_of_the_batch():
    reps, targets = torch.rand(2, 3, 4), Targets.of(torch.tensor([[1, -1, 0], [0, 0, 1]]))
    found = pool(reps, targets)
    assert found.reps is reps and found.targets is targets and found.rows == slice(0, 2)
    count = torch.tensor(3.0)
    assert mean_share(count) is count and sum_share(count) is count


def test_shares_of_accumulated_parts_add_up_to_the_mean_of_all():
    sums, counts = torch.tensor([2.0, 9.0]), torch.tensor([1.0, 3.0])
    means = []
    totals = []
    for value, count in zip(sums, counts, strict=True):
        with during(Step((1,), 0, 2, {"known": float(counts.sum() / count), "images": 2.0}, False)):
            means.append(value / mean_share(count))
            totals.append(sum_share(value))
    assert sum(means) / 2 == sums.sum() / counts.sum() and sum(totals) / 2 == sums.sum()


def test_an_image_that_stands_in_has_no_share():
    with during(Step((1, 0), 1, 2, {"known": 1.0, "images": 1.0}, False)):
        assert torch.tensor(3.0) / mean_share(torch.tensor(2.0)) == 0 == sum_share(torch.tensor(3.0))
        assert counted(torch.ones(2, 3)) == 0
    assert counted(torch.ones(2, 3)) == 6


def test_a_plain_function_gives_all_images():
    (found,) = over_all(lambda: [torch.tensor([1, 2]), torch.tensor([3])], lambda part: (part + 1,))
    assert found.tolist() == [2, 3, 4]


def test_a_lost_process_says_what_to_do(monkeypatch):
    monkeypatch.setattr("sarb.methods.together.place", lambda: (0, 2))
    with (
        pytest.raises(SarbError, match="lost another process"),
        connected(),
    ):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")
    with pytest.raises(RuntimeError, match="a mistake of ours"), connected():
        raise RuntimeError("a mistake of ours")


def process(rank, folder):
    os.environ.update({"MASTER_ADDR": "localhost", "OMP_NUM_THREADS": "1"})
    torch.distributed.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=2)
    (joined,) = from_all(torch.full((rank + 1,), rank))
    method = made("ll_cp", epoch=1)
    own = batch(LABELS[rank : rank + 1])
    method.network.logits = LOGITS[rank : rank + 1]
    own.index.fill_(rank)
    method(own)
    Path(folder, f"{rank}.json").write_text(json.dumps([joined.tolist(), method.relabelled.tolist()]))
    torch.distributed.destroy_process_group()


def test_two_processes_remember_the_same(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    workers = [context.Process(target=process, args=(rank, str(tmp_path))) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
        assert worker.exitcode == 0
    for rank in range(2):
        joined, relabelled = json.loads((tmp_path / f"{rank}.json").read_text())
        assert joined == [0, 1, 1]
        # (1,2) was found by the first process, (2,1) by the second
        assert relabelled == [[False, True, False], [True, False, False]]
