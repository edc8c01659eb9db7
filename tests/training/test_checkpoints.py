"""Checkpoints inside an epoch: when they are written, and that a training continues exactly from them."""

import csv
import hashlib
import json
from collections import deque

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import sarb
from sarb.labelling.folds import out_of_fold
from sarb.methods.partial_bce import PartialBCE
from sarb.progress import Progress
from sarb.runs.checkpoint import State
from sarb.runs.folder import RunFolder
from sarb.training import loop
from sarb.training.checkpoints import Checkpoints

SMALL = {"backbone": "tiny", "image_size": 64, "batch_size": 8, "epochs": 2, "progress": False}
SARB = {"method": "sarb", "network_options": {"dim": 8, "hidden": 4}, "method_options": {"start": 1}}
PLAIN = {"method": "partial_bce", "network": "pooled"}
AUTO = {"method": "auto", "method_options": {"folds": 2, "residual": "partial_bce", "finetune": True}}


@pytest.fixture
def train(squares_data):
    return squares_data.train.hide(0.6, 0)


def stop_at(monkeypatch, name, number):
    """Let the call of this number of a method of the training fail."""
    calls = 0
    real = getattr(loop.Training, name)

    def stopping(self, *given):
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(self, *given)

    monkeypatch.setattr(loop.Training, name, stopping)


def killed(monkeypatch, number, run, name="_step"):
    with monkeypatch.context() as patch:
        stop_at(patch, name, number)
        with pytest.raises(KeyboardInterrupt):
            run()


def outcome(folder):
    log = [{**row, "seconds": ""} for row in csv.DictReader((folder / "log.csv").open())]
    weights = hashlib.sha256((folder / "model" / "model.safetensors").read_bytes()).hexdigest()
    return weights, log, (folder / "steps.csv").read_text()


def state_of(folder):
    with safe_open(folder / "checkpoint" / "state.safetensors", "pt") as stored:
        return json.loads(stored.metadata()["state"])


@pytest.mark.parametrize(
    "reading",
    [
        {},
        {"augment": True, "cache": False},
        {"augment": True, "cache": False, "workers": 2},
        {"cache_views": 2, "backbone_options": {"train_stages": 1}},
    ],
    ids=["cached", "files", "workers", "views"],
)
def test_however_images_are_read(train, tmp_path, monkeypatch, reading):
    def run(out, **more):
        sarb.fit(train, out=tmp_path / out, **SMALL, **SARB, **reading, **more)

    run("whole")
    killed(monkeypatch, 8, lambda: run("cut", checkpoint_every=1))
    assert (state_of(tmp_path / "cut")["epoch"], state_of(tmp_path / "cut")["step"]) == divmod(7, 5)
    run("cut", resume=True)
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


def test_images_of_steps_that_are_done_are_not_read_again(train, tmp_path, monkeypatch):
    from sarb.batches.loader import Pictures

    read = []
    views = Pictures.views
    monkeypatch.setattr(Pictures, "views", lambda self, key: read.append(key) or views(self, key))
    options = {**SMALL, **PLAIN, "epochs": 1, "augment": True, "cache": False, "out": tmp_path / "run"}
    killed(monkeypatch, 4, lambda: sarb.fit(train, checkpoint_every=1, **options))
    read.clear()
    sarb.fit(train, resume=True, **options)
    assert len(read) == len(train) - 3 * 8


def test_killed_after_the_last_step_of_an_epoch(train, tmp_path, monkeypatch):
    def run(out, **more):
        sarb.fit(train, out=tmp_path / out, valid=0.2, **SMALL, **PLAIN, **more)

    run("whole")
    killed(monkeypatch, 1, lambda: run("cut", checkpoint_every=1), "_validate")
    assert state_of(tmp_path / "cut")["step"] == 4
    run("cut", resume=True)
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("number", [3, 14])
def test_what_auto_trains_continues(train, tmp_path, monkeypatch, number):
    def run(out, **more):
        return sarb.fit(train, out=tmp_path / out, **{**SMALL, **AUTO}, **more)

    whole = run("whole")
    killed(monkeypatch, number, lambda: run("cut", checkpoint_every=1))
    assert len(list((tmp_path / "cut" / "checkpoint").glob("*.safetensors"))) == 1 + (number - 1) // 10
    steps = []
    real = loop.Training._step
    monkeypatch.setattr(loop.Training, "_step", lambda self, *given: steps.append(1) or real(self, *given))
    resumed = run("cut", resume=True)
    total = len(steps) + number - 1
    steps.clear()
    run("again")
    assert total == len(steps)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name
    assert not (tmp_path / "cut" / "checkpoint").exists()


def test_auto_without_resume_starts_again(train, tmp_path, monkeypatch):
    options = {**SMALL, **AUTO, "out": tmp_path / "run"}
    killed(monkeypatch, 14, lambda: sarb.fit(train, checkpoint_every=1, **options))
    before = {
        file.name: file.stat().st_mtime_ns
        for file in RunFolder(tmp_path / "run").checkpoints.glob("*.safetensors")
    }
    killed(monkeypatch, 2, lambda: sarb.fit(train, checkpoint_every=1, **options))
    after = {
        file.name: file.stat().st_mtime_ns
        for file in RunFolder(tmp_path / "run").checkpoints.glob("*.safetensors")
    }
    assert len(before) == 2 and len(after) == 1 and not before.items() & after.items()


def test_a_part_of_a_calibration_continues(train, tmp_path, monkeypatch):
    options = {**SMALL, **PLAIN, "folds": 2}
    whole = out_of_fold(train, **options)
    cut = {**options, "out": tmp_path, "checkpoint_every": 1}
    killed(monkeypatch, 14, lambda: out_of_fold(train, **cut))
    killed(monkeypatch, 3, lambda: out_of_fold(train, **cut))
    steps = []
    real = loop.Training._step
    monkeypatch.setattr(loop.Training, "_step", lambda self, *given: steps.append(1) or real(self, *given))
    assert out_of_fold(train, **cut) == whole
    assert len(steps) == 20 - 13 - 2
    assert sorted(file.name for file in tmp_path.glob("[!m]*")) == ["fold-0-of-2.npz", "fold-1-of-2.npz"]


def test_the_pace_may_change_and_a_time_is_a_pace(train, tmp_path, monkeypatch):
    options = {**SMALL, **PLAIN, "out": tmp_path / "run"}
    now = [0.0]
    monkeypatch.setattr("sarb.training.checkpoints.time.monotonic", lambda: now[0])
    method = PartialBCE(sarb.fit(train, **SMALL, **PLAIN).network)
    checkpoints = Checkpoints(method, "5m", 1, Progress(enabled=False))
    assert not checkpoints.is_due()
    now[0] = 300.0
    assert not checkpoints.is_due()  # there is no file
    checkpoints.file = tmp_path / "state.safetensors"
    assert checkpoints.is_due()
    killed(monkeypatch, 3, lambda: sarb.fit(train, checkpoint_every=1, **options))
    sarb.fit(train, checkpoint_every="1h", resume=True, **options)


def test_the_gradient_scaler_of_fp16_goes_on_where_it_was(tmp_path):
    def made(scale):
        method = PartialBCE(sarb.model.build_network(2, network="pooled", backbone="tiny", weights=None))
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        checkpoints = Checkpoints(method, "epoch", 1, Progress(enabled=False), scaler)
        checkpoints.file = tmp_path / "state.safetensors"
        return checkpoints, scaler, torch.optim.Adam(method.parameters())

    checkpoints, scaler, optimizer = made(256.0)
    loss = sum(value.sum() for group in optimizer.param_groups for value in group["params"])
    scaler.scale(loss * torch.inf).backward()  # an overflow halves the scale
    scaler.step(optimizer)
    scaler.update()
    checkpoints.save(optimizer, State())
    other, fresh, another = made(65536.0)
    other.load(another)
    assert fresh.state_dict() == scaler.state_dict()
    assert fresh.get_scale() == 128.0


def test_several_processes_save_whole_epochs_and_say_so(capsys):
    method = PartialBCE(sarb.model.build_network(2, network="pooled", backbone="tiny", weights=None))
    checkpoints = Checkpoints(method, 1, 2, Progress())
    checkpoints.file = "somewhere"
    assert not checkpoints.is_due()
    assert "at the end of each epoch only, because 2 processes train together" in capsys.readouterr().err


class Remembers(PartialBCE):
    """A method that keeps something no checkpoint can hold."""

    def begin_epoch(self, epoch, loader):
        super().begin_epoch(epoch, loader)
        self.recent = deque([epoch])


def test_a_method_that_cannot_be_stored_is_saved_at_the_end_of_epochs(train, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sarb.METHODS, "remembers", Remembers)
    options = {**SMALL, "network": "pooled", "method": "remembers", "progress": True}

    def run(out, **more):
        sarb.fit(train, out=tmp_path / out, checkpoint_every=1, **options, **more)

    run("whole")
    assert capsys.readouterr().err.count("the method keeps 'recent', which no checkpoint can hold") == 1
    killed(monkeypatch, 8, lambda: run("cut"))
    assert state_of(tmp_path / "cut")["step"] == 0
    run("cut", resume=True)
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


def test_a_checkpoint_from_before_these_fields(train, tmp_path, monkeypatch):
    def run(out, **more):
        sarb.fit(train, out=tmp_path / out, **SMALL, **SARB, **more)

    run("whole")
    killed(monkeypatch, 8, lambda: run("cut", checkpoint_every="epoch"))
    file = tmp_path / "cut" / "checkpoint" / "state.safetensors"
    with safe_open(file, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        state = json.loads(stored.metadata()["state"])
    for name in ("step", "lr", "sums", "seconds", "attributes", "scaler", "shared"):
        del state[name]
    assert set(state) == {
        *("epoch", "best", "best_epoch", "log", "steps", "skipped", "optimizer_scalars"),
    }
    save_file(tensors, file, {"state": json.dumps(state)})
    file.with_name("manifest.json").unlink()  # there was none, either
    run("cut", resume=True)
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")
