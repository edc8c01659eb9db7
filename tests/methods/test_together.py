"""Memories that several processes share."""

import json
import os
from pathlib import Path

import torch
import torch.multiprocessing

from sarb.methods.together import from_all
from tests.methods.toy import LABELS, LOGITS, batch, made
from tests.waiting import PATIENCE


def test_alone_nothing_changes():
    parts = (torch.arange(3), torch.rand(3, 2))
    assert all(one is other for one, other in zip(from_all(*parts), parts, strict=True))


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
