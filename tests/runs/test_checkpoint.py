"""Checkpoints that continue exactly, and broken ones."""

import copy
import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from sarb.errors import SarbError
from sarb.runs.checkpoint import load_checkpoint, save_checkpoint
from sarb.training.optim import OPTIMIZERS

FILE = "state.safetensors"


class Small(nn.Module):
    """Weights, a scalar, a batch norm, a buffer that is no parameter, and a frozen weight."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)
        self.alpha = nn.Parameter(torch.tensor(0.5))
        self.register_buffer("prototypes", torch.zeros(2, 3))
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        return self.alpha * self.last(torch.relu(self.norm(self.first(x))))


def make(name, seed=0, **options):
    torch.manual_seed(seed)
    module = Small()
    groups = [
        {"params": [p for n, p in module.named_parameters() if p.requires_grad and n != "alpha"], "lr": 0.05},
        {"params": [module.alpha], "lr": 0.01, "weight_decay": 0.0},
    ]
    return module, OPTIMIZERS[name](groups, weight_decay=0.1, **options)


def step(module, optimizer, number):
    inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(number))
    loss = module(inputs).square().mean() + module.alpha
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}])
def test_the_step_after_a_checkpoint_is_identical(tmp_path, name, options):
    module, optimizer = make(name, **options)
    for number in range(3):
        step(module, optimizer, number)
    module.prototypes.fill_(0.25)
    save_checkpoint(tmp_path / FILE, module, optimizer, {"epoch": 3})
    other, other_optimizer = make(name, seed=9, **options)
    assert load_checkpoint(tmp_path / FILE, other, other_optimizer) == {"epoch": 3}
    for number in (3, 4):
        step(module, optimizer, number)
        step(other, other_optimizer, number)
    for key, value in module.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key
    for key, values in optimizer.state_dict()["state"].items():
        for entry, value in values.items():
            assert torch.equal(torch.as_tensor(value), other_optimizer.state_dict()["state"][key][entry])


def test_without_the_optimiser_state_the_step_would_differ(tmp_path):
    """The test above can fail: Adam's memory matters."""
    module, optimizer = make("adam")
    for number in range(3):
        step(module, optimizer, number)
    fresh = copy.deepcopy(module)
    fresh_optimizer = torch.optim.Adam(
        [p for p in fresh.parameters() if p.requires_grad], lr=0.05, weight_decay=0.1
    )
    step(module, optimizer, 3)
    step(fresh, fresh_optimizer, 3)
    assert not torch.equal(module.last.weight, fresh.last.weight)


def test_the_bookkeeping_comes_back_as_it_was(tmp_path):
    module, optimizer = make("adam")
    state = {
        "epoch": 2,
        "best": -math.inf,
        "log": [{"epoch": 0, "loss": 0.1 + 0.2, "valid_mAP": math.nan}],
        "steps": [0.5, None],
    }
    save_checkpoint(tmp_path / FILE, module, optimizer, state)
    found = load_checkpoint(tmp_path / FILE, *make("adam"))
    assert found["epoch"] == 2 and found["best"] == -math.inf and found["steps"] == [0.5, None]
    assert found["log"][0]["loss"] == 0.1 + 0.2 and math.isnan(found["log"][0]["valid_mAP"])
    assert set(found) == set(state) and set(state) == {"epoch", "best", "log", "steps"}


def test_a_checkpoint_is_replaced_whole(tmp_path):
    module, optimizer = make("adam")
    for epoch in (1, 2):
        save_checkpoint(tmp_path / FILE, module, optimizer, {"epoch": epoch})
    assert sorted(tmp_path.iterdir()) == [tmp_path / "manifest.json", tmp_path / FILE]
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path / FILE, module, optimizer, {"epoch": object()})
    assert load_checkpoint(tmp_path / FILE, module, optimizer) == {"epoch": 2}


# broken checkpoints


@pytest.fixture
def saved(tmp_path):
    module, optimizer = make("adam")
    step(module, optimizer, 0)
    save_checkpoint(tmp_path / FILE, module, optimizer, {"epoch": 1})
    return tmp_path


def refused(folder, module, optimizer):
    with pytest.raises(SarbError) as error:
        load_checkpoint(folder / FILE, module, optimizer)
    assert str(folder / FILE) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("length", [0, 5, 100, -10])
def test_a_truncated_checkpoint_is_named(saved, length):
    content = (saved / FILE).read_bytes()
    (saved / FILE).write_bytes(content[:length])
    assert "remove it to start over" in refused(saved, *make("adam"))


def test_a_checkpoint_that_is_no_such_file_is_named(saved):
    (saved / FILE).write_text("something else entirely")
    refused(saved, *make("adam"))


@pytest.mark.parametrize(
    "metadata", [None, {"other": "1"}, {"state": "{not json"}, {"state": '{"epoch": 1}'}]
)
def test_a_checkpoint_without_its_bookkeeping_is_named(saved, metadata):
    module, optimizer = make("adam")
    tensors = {f"method.{key}": value for key, value in module.state_dict().items()}
    save_file(tensors, saved / FILE, metadata)
    refused(saved, module, optimizer)


def test_a_checkpoint_of_another_module_is_named(saved):
    other = nn.Linear(2, 2)
    refused(saved, other, torch.optim.Adam(other.parameters()))


@pytest.mark.parametrize(("entry", "shape"), [("exp_avg", []), ("step", [3])])
def test_an_optimiser_entry_of_another_shape_is_refused(tmp_path, entry, shape):
    """A scalar would broadcast when it is loaded and fail in the first step."""
    module, optimizer = make("adam")
    step(module, optimizer, 0)
    first = next(iter(optimizer.state.values()))
    first[entry] = torch.zeros(shape)
    save_checkpoint(tmp_path / FILE, module, optimizer, {"epoch": 0})
    with pytest.raises(SarbError, match=rf"{entry}, has the shape .*; remove it to start over"):
        load_checkpoint(tmp_path / FILE, *make("adam"))
