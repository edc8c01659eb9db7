"""The only training loop. It knows no method: it sums named terms, steps, logs, saves."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sarb.batches.loader import Batch, Batches, make_loader
from sarb.batches.sources import Skipped, Sources, Split
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.inference.prediction import infer
from sarb.methods.base import Method
from sarb.metrics import evaluate as measure
from sarb.model import Model, load_model, new_model, start_from
from sarb.progress import Advance, Progress
from sarb.registry import METHODS, find
from sarb.report.card import model_card
from sarb.runs.checkpoint import State
from sarb.runs.folder import RunFolder
from sarb.settings import Settings
from sarb.training.checkpoints import Checkpoints
from sarb.training.diverged import check_gradients, check_loss, check_state
from sarb.training.epochs import EpochTable, summary
from sarb.training.optim import OPTIMIZERS, parameter_groups, schedule_factor


class Training:
    """One run: data, method, optimiser and state."""

    advance: Advance

    def __init__(
        self,
        train: Dataset,
        settings: Settings,
        valid: float | Dataset | None,
        init: str | Path | Model | None,
        talk: Progress,
    ) -> None:
        from accelerate import Accelerator, DistributedDataParallelKwargs

        self.accelerator = Accelerator(
            cpu=settings.device == "cpu" or not torch.accelerator.is_available(),
            mixed_precision=settings.precision,
            # A method need not use all its parameters in every step: α and β rest until blending starts.
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
        )
        self.device = self.accelerator.device
        talk = talk if self.accelerator.is_main_process else Progress(enabled=False)
        self.talk = talk
        self.state = State()
        torch.manual_seed(settings.seed)
        self.split = Split.of(train, valid, settings.seed)
        self.skipped = Skipped(self.split, talk)
        steps = -(-len(self.split.train) // (settings.batch_size * self.accelerator.num_processes))
        asked = settings.epochs
        settings = settings.grown(steps)
        self.settings = settings
        if settings.epochs > asked:
            reason = f"so few images need more epochs to reach about {settings.min_steps} steps (min_steps)"
            talk.say(f"{settings.epochs} epochs instead of {asked}: {reason}")
        self.model = self._new_model()
        if init is not None:
            talk.say(start_from(self.model, init if isinstance(init, Model) else load_model(init)))
        try:
            self.method: Method = find("method", METHODS, settings.method)(
                self.model.network, **settings.method_options
            )
        except TypeError as error:
            raise ConfigError([f"method '{settings.method}': {error}"]) from error
        self.method.to(self.device)
        self.method.epochs = settings.epochs
        self.method.prepare(self.split.train.labels)
        with self.accelerator.main_process_first():  # one process computes the cache, the others find it
            self.sources = Sources.of(self.split, self.model, self.method, settings, self.device, talk)
        self.method.eval()  # a start from the data must not move the batch norms
        if init is None:
            self.model.network.initialise(self.split.train.labels, self._activations)
        # Only a method that trains several times from the start needs to remember the start.
        self.initial = {} if self.method.rounds == 1 else copy.deepcopy(self.method.state_dict())
        self._optimise()
        processes = self.accelerator.num_processes
        self.checkpoints = Checkpoints(self.method, settings.checkpoint_every, processes, talk)

    def _new_model(self) -> Model:
        return new_model(self.split.train.labels, self.settings, self.talk)

    @property
    def writes(self) -> bool:
        """Whether this process writes the run folder: the first one of ``torchrun``."""
        return bool(self.accelerator.is_main_process)

    def _optimise(self) -> None:
        settings = self.settings
        groups = parameter_groups(self.method, settings.lr, settings.lr_scale, settings.weight_decay)
        optimizer = OPTIMIZERS[settings.optimizer](groups, betas=(0.9, 0.999))  # type: ignore[call-arg]
        self.wrapped, self.optimizer = self.accelerator.prepare(self.method, optimizer)

    def open(self, folder: RunFolder, config: dict[str, Any], resume: bool) -> None:
        """Start the run folder, or take up the run that is in it."""
        if resume and folder.checkpoint.is_file():
            folder.check_same(config)
            self.take_up(folder.checkpoint, f"{folder.path}")
            return
        if resume and folder.path.exists() and any(folder.path.iterdir()):
            self.talk.say(f"{folder.path}: no checkpoint to resume from, starting at the first epoch")
        self.accelerator.wait_for_everyone()  # all have looked before one writes
        self.checkpoints.file = folder.checkpoint
        if self.accelerator.is_main_process:
            folder.write_config(config)
            folder.write_train(self.split.train.labels)

    def take_up(self, file: Path, name: str) -> None:
        """Save checkpoints in this file, and continue from the one that is there."""
        self.checkpoints.file = file
        if file.is_file():
            self.state = self.checkpoints.load(self.optimizer)
            self.skipped.merge(self.state.skipped)
            inside = f"in epoch {self.state.epoch} after step {self.state.step - 1}"
            after = inside if self.state.step else f"after epoch {self.state.epoch - 1}"
            self.talk.say(f"resuming {name} {after}")

    def run_part(self, file: Path | None, name: str) -> None:
        """Run as a part of another run, which has the folder: with a checkpoint, if there is a file for it."""
        if file is not None:
            self.take_up(file, name)
        self.run(None, lambda log: None)

    def run(self, folder: RunFolder | None, told: Callable[[list[dict[str, Any]]], None]) -> None:
        """All epochs of all rounds, then the final model; ``told`` gets the log after every epoch."""
        settings = self.settings
        state = self.state
        total = settings.epochs * self.method.rounds
        steps = len(self._batches(0))
        table = EpochTable(total)
        self.talk.say(
            f"train: method {settings.method}, network {settings.network}, {total} epochs of {steps} steps"
        )
        with self.talk.bar("train", total * steps, state.epoch * steps + state.step) as self.advance:
            while state.epoch < total and not self._patience_over():
                self._started = time.perf_counter() - state.seconds
                row = self._epoch(state.epoch)
                row |= self._validate(folder) | self.skipped.figures()
                row["seconds"] = round(time.perf_counter() - self._started, 2)
                state.end_epoch(row)
                for line in table.lines(state.log):
                    self.talk.detail(line)
                if folder is not None and self.accelerator.is_main_process:
                    # before the checkpoint: a run that is killed in between repeats the epoch
                    folder.write_tables(state.log, state.step_rows(), self.skipped.rows())
                    told(state.log)
                self._save()
        self.model.network.eval()
        if folder is not None and self.accelerator.is_main_process:
            used = self.skipped.used()
            folder.write_train(used)
            self.model.save(folder.model.path, model_card(self.model, settings.as_dict(), used))
        self.accelerator.wait_for_everyone()

    def _save(self) -> None:
        """Write a checkpoint of this moment, if the training has a file for it."""
        if self.checkpoints.file is not None and self.accelerator.is_main_process:
            self.state.skipped = self.skipped.rows()
            self.checkpoints.save(self.optimizer, self.state)

    @property
    def finished(self) -> bool:
        """Whether no epoch is left to train."""
        return self.state.epoch >= self.settings.epochs * self.method.rounds or self._patience_over()

    def _patience_over(self) -> bool:
        patience = self.settings.patience
        state = self.state
        return patience is not None and state.best_epoch >= 0 and state.epoch - state.best_epoch > patience

    def _new_round(self) -> None:
        """Train again from re-initialised weights; what the method remembers outside the network stays."""
        self.method.end_round(self._plain_batches)
        network = {key: value for key, value in self.initial.items() if key.startswith("network.")}
        self.method.load_state_dict({**self.method.state_dict(), **network})
        self._optimise()

    def _batches(self, epoch: int, start: int = 0) -> Batches:
        rank = self.accelerator.process_index
        world = self.accelerator.num_processes
        settings = self.settings
        return Batches(len(self.sources.train), settings.batch_size, epoch, settings.seed, rank, world, start)

    def _begin_epoch(self, epoch: int) -> None:
        rank = self.accelerator.process_index
        # All randomness of an epoch follows from (seed, epoch), so a resumed run repeats it exactly.
        torch.manual_seed(int(np.random.SeedSequence([self.settings.seed, epoch, rank]).generate_state(1)[0]))
        if epoch and epoch % self.settings.epochs == 0:
            self._new_round()
        self.method.train()
        self.method.begin_epoch(epoch, self._plain_batches)
        if note := self.method.note(epoch):
            self.talk.detail(f"epoch {epoch}: {note}")

    def _epoch(self, epoch: int) -> dict[str, Any]:
        state = self.state
        method = self.method
        if state.step:
            method.train()
            self.checkpoints.continue_epoch()
        else:
            self._begin_epoch(epoch)
        count = len(self._batches(epoch))
        about = summary(epoch, state.log)
        loader = make_loader(self.sources.train, self._batches(epoch, state.step), self.settings.workers)
        for number, batch in enumerate(loader, state.step):
            self.skipped.add("train", batch.failures)
            for term, value in self._step(batch, epoch, number, count).items():
                state.sums[term] = state.sums.get(term, 0.0) + value
            state.step = number + 1
            self.advance(1, about)
            if self.checkpoints.is_due():
                check_state(method, self.optimizer, f"epoch {epoch}, step {number}")
                state.seconds = time.perf_counter() - self._started
                self._save()
        check_state(method, self.optimizer, f"epoch {epoch}, step {count - 1}")
        steps = sum(loss is not None for loss in state.steps[-count:])
        row: dict[str, Any] = {"epoch": epoch, **{name: value / steps for name, value in state.sums.items()}}
        return {**row, "lr": state.lr, **method.figures()}

    def _step(self, batch: Batch, epoch: int, number: int, count: int) -> dict[str, float]:
        # A process that could read none of its images would leave the others waiting: all leave out the step.
        if not self.accelerator.gather(torch.tensor([len(batch.index)], device=self.device)).all():
            self.state.steps.append(None)
            return {}
        settings = self.settings
        where = f"epoch {epoch}, step {number}"
        self.method.begin_step(epoch + number / count)
        step = epoch % settings.epochs * count + number
        factor = schedule_factor(
            settings.schedule, step, settings.epochs * count, settings.epochs, settings.warmup
        )
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"] * factor
        self.state.lr = max(group["lr"] for group in self.optimizer.param_groups)
        batch = batch.to(self.device)
        with self.accelerator.autocast():
            terms = self.wrapped(batch)
            loss = sum(terms.values(), torch.zeros((), device=self.device))
        check_loss(loss, terms, batch, self.method, self.split.train.labels.paths, where)
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.backward(loss)
        if self.accelerator.scaler is None:  # which leaves out steps with such gradients itself
            check_gradients(self.method, where)
        if settings.clip > 0:
            self.accelerator.clip_grad_norm_(self.method.parameters(), settings.clip)
        self.optimizer.step()
        self.method.end_step()
        self.state.steps.append(round(loss.item(), 6))
        return {"loss": loss.item(), **{f"loss_{name}": value.item() for name, value in terms.items()}}

    def _plain_batches(self) -> Iterable[Batch]:
        batches = Batches(len(self.sources.plain), self.settings.batch_size)
        loader = make_loader(self.sources.plain, batches, self.settings.workers)
        return (batch.to(self.device) for batch in self.skipped.readable("train", loader))

    def _activations(self) -> Iterable[Tensor]:
        """What the frozen stages make of the training images."""
        frozen = self.model.network.backbone.frozen
        return (batch.images if batch.frozen else frozen(batch.images) for batch in self._plain_batches())

    def _validate(self, folder: RunFolder | None) -> dict[str, Any]:
        """Metrics on the known labels of the validation images; remember the best epoch."""
        if not len(self.split.valid):
            return {}
        network = self.model.network
        batches = Batches(len(self.sources.valid), self.settings.batch_size)
        logits, index, failures = infer(
            network, make_loader(self.sources.valid, batches, self.settings.workers)
        )
        self.skipped.add("valid", failures)
        result = measure(logits, self.split.valid.labels.take(index))
        if result["mAP"] > self.state.best:
            self.state.best = result["mAP"]
            self.state.best_epoch = self.state.epoch
            if folder is not None and self.accelerator.is_main_process:
                self.model.save(folder.best.path)
        return {f"valid_{name}": result[name] for name in ("mAP", "mAP_interpolated", "OF1", "CF1")}
