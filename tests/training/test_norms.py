"""Synchronised batch norms: in one process, they are plain ones."""

import pytest
import torch
from torch import nn

from sarb.progress import Progress
from sarb.training.norms import CPUSyncNorm, SyncNorms


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5), (6, 3, 4, 5)])
def test_of_one_process_it_is_batch_norm(shape, momentum):
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)]
    plain = kind(3, momentum=momentum).double()
    nn.init.normal_(plain.weight)
    synchronised = CPUSyncNorm(3, momentum=momentum).double()
    synchronised.load_state_dict(plain.state_dict())
    found = []
    for norm in (plain, synchronised):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        x.requires_grad_()
        for _ in range(2):
            out = norm(x)
        (out**3).sum().backward()
        found.append([out, x.grad, norm.weight.grad, norm.bias.grad, *norm.buffers(), norm.eval()(x)])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one.double(), other.double(), rtol=0, atol=1e-10)


class Own(nn.BatchNorm2d):
    """A batch norm of another package."""


def test_only_trained_and_plain_batch_norms_are_replaced(capsys):
    module = nn.Sequential(nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)), Own(2))
    module[1].eval()
    before = list(module.modules())
    names = module.state_dict().keys()
    norms = SyncNorms(module, Progress())
    assert [type(each) for each in (module[0], module[1][0], module[2])] == [CPUSyncNorm, nn.BatchNorm2d, Own]
    assert module.state_dict().keys() == names and module[0].weight is before[1].weight
    assert "type Own cannot be synchronised" in capsys.readouterr().err
    module(torch.randn(4, 2, 3, 3))
    mean = module[0].running_mean.clone()
    assert mean.any()
    norms.restore()
    assert list(module.modules()) == before and torch.equal(module[0].running_mean, mean)
