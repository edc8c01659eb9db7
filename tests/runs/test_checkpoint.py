"""The run folder: checkpoints that continue exactly, and the tables beside them."""

import copy
import csv
import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from sarb.errors import SarbError
from sarb.files import read_json
from sarb.runs.checkpoint import (
    CHECKPOINT,
    State,
    check_same_run,
    has_checkpoint,
    load_checkpoint,
    read_errors,
    save_checkpoint,
    versions,
    write_config,
    write_rows,
    write_tables,
)
from sarb.training.optim import OPTIMIZERS


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
    save_checkpoint(tmp_path, module, optimizer, {"epoch": 3})
    other, other_optimizer = make(name, seed=9, **options)
    assert load_checkpoint(tmp_path, other, other_optimizer) == {"epoch": 3}
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
        "x": None,
    }
    save_checkpoint(tmp_path, module, optimizer, state)
    found = load_checkpoint(tmp_path, *make("adam"))
    assert found["epoch"] == 2 and found["best"] == -math.inf and found["x"] is None
    assert found["log"][0]["loss"] == 0.1 + 0.2 and math.isnan(found["log"][0]["valid_mAP"])
    assert set(found) == set(state) and set(state) == {"epoch", "best", "log", "x"}


def test_a_checkpoint_is_replaced_whole(tmp_path):
    module, optimizer = make("adam")
    assert not has_checkpoint(tmp_path)
    for epoch in (1, 2):
        save_checkpoint(tmp_path, module, optimizer, {"epoch": epoch})
    assert has_checkpoint(tmp_path) and list((tmp_path / "checkpoint").iterdir()) == [tmp_path / CHECKPOINT]
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path, module, optimizer, {"epoch": object()})
    assert load_checkpoint(tmp_path, module, optimizer) == {"epoch": 2}


# broken checkpoints


@pytest.fixture
def saved(tmp_path):
    module, optimizer = make("adam")
    step(module, optimizer, 0)
    save_checkpoint(tmp_path, module, optimizer, {"epoch": 1})
    return tmp_path


def refused(folder, module, optimizer):
    with pytest.raises(SarbError) as error:
        load_checkpoint(folder, module, optimizer)
    assert str(folder / CHECKPOINT) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("length", [0, 5, 100, -10])
def test_a_truncated_checkpoint_is_named(saved, length):
    content = (saved / CHECKPOINT).read_bytes()
    (saved / CHECKPOINT).write_bytes(content[:length])
    assert "remove it to start over" in refused(saved, *make("adam"))


def test_a_checkpoint_that_is_no_such_file_is_named(saved):
    (saved / CHECKPOINT).write_text("something else entirely")
    refused(saved, *make("adam"))


@pytest.mark.parametrize(
    "metadata", [None, {"other": "1"}, {"state": "{not json"}, {"state": '{"epoch": 1}'}]
)
def test_a_checkpoint_without_its_bookkeeping_is_named(saved, metadata):
    module, optimizer = make("adam")
    tensors = {f"method.{key}": value for key, value in module.state_dict().items()}
    save_file(tensors, saved / CHECKPOINT, metadata)
    refused(saved, module, optimizer)


def test_a_checkpoint_of_another_module_is_named(saved):
    other = nn.Linear(2, 2)
    refused(saved, other, torch.optim.Adam(other.parameters()))


# the same run


def config(**changes):
    settings = {"lr": 0.1, "epochs": 3, "method": "sarb", **changes}
    return {"settings": settings, "data": {"images": 5, "labels": "abc"}, "versions": {"torch": "1"}}


def test_the_same_run_may_resume(tmp_path):
    write_config(tmp_path, config())
    assert read_json(tmp_path / "config.json") == config()
    check_same_run(tmp_path, {**config(), "versions": {"torch": "2"}, "threads": 4})


def test_each_difference_is_listed(tmp_path):
    write_config(tmp_path, config(gone=1))
    now = config(lr=0.2, method="partial_bce", new=True)
    now["data"]["labels"] = "xyz"
    with pytest.raises(SarbError) as error:
        check_same_run(tmp_path, now)
    head, *lines = str(error.value).splitlines()
    assert str(tmp_path) in head and "cannot resume" in head
    assert [line.strip() for line in lines] == [
        "gone: was 1, now None",
        "lr: was 0.1, now 0.2",
        "method: was 'sarb', now 'partial_bce'",
        "new: was None, now True",
        "labels: was 'abc', now 'xyz'",
    ]


def test_values_that_json_changes_are_no_difference(tmp_path):
    write_config(tmp_path, config(method_options={"sizes": (1, 2)}))
    check_same_run(tmp_path, config(method_options={"sizes": (1, 2)}))


@pytest.mark.parametrize("content", [None, "{half"])
def test_a_missing_or_broken_config_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(SarbError, match=r"config\.json"):
        check_same_run(tmp_path, config())


# tables


def test_the_header_is_the_union_of_the_keys_in_order(tmp_path):
    write_rows(tmp_path / "log.csv", [{"epoch": 0, "loss": 0.5}, {"epoch": 1, "alpha": 0.4, "loss": 0.25}])
    assert (tmp_path / "log.csv").read_bytes() == b"epoch,loss,alpha\r\n0,0.5,\r\n1,0.25,0.4\r\n"
    with (tmp_path / "log.csv").open(newline="") as file:
        assert next(csv.DictReader(file)) == {"epoch": "0", "loss": "0.5", "alpha": ""}


def test_no_rows_make_no_trouble(tmp_path):
    write_rows(tmp_path / "log.csv", [])
    assert (tmp_path / "log.csv").read_text().strip() == ""


def test_tables_of_a_run_that_skipped_something(tmp_path):
    rows = [{"file_name": 'a "b".jpg', "reason": "a.jpg: broken, sadly", "split": "train"}]
    state = State(2, log=[{"epoch": 0}, {"epoch": 1}], steps=[0.5, None, 0.25, 0.125], skipped=rows)
    write_tables(tmp_path, state)
    assert read_errors(tmp_path) == rows
    assert (tmp_path / "steps.csv").read_text().split() == [
        "step,epoch,loss",
        "0,0,0.5",
        "1,0,",
        "2,1,0.25",
        "3,1,0.125",
    ]
    state.skipped = []
    write_tables(tmp_path, state)
    assert read_errors(tmp_path) == [] and not (tmp_path / "errors.csv").exists()


def test_versions_name_what_decides_the_numbers():
    found = versions()
    assert found["torch"] == torch.__version__.split("+")[0] or found["torch"] == torch.__version__
    assert {"sarb", "python", "numpy", "pillow", "accelerate", "scikit-learn"} <= set(found)
