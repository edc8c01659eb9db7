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
from sarb.errors import ConfigError, SarbError
from sarb.inference.prediction import infer
from sarb.methods.base import Method
from sarb.metrics import evaluate as measure
from sarb.model import Model, load_model, new_model, start_from
from sarb.progress import Progress
from sarb.registry import METHODS, find
from sarb.report.card import model_card
from sarb.runs.checkpoint import State, load_checkpoint, save_checkpoint
from sarb.runs.folder import RunFolder
from sarb.settings import Settings
from sarb.training.optim import OPTIMIZERS, parameter_groups, schedule_factor


class Training:
    """One run: data, method, optimiser and state."""

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
            self.state = State(**load_checkpoint(folder.checkpoint, self.method, self.optimizer))
            self.skipped.merge(self.state.skipped)
            self.talk.say(f"resuming {folder.path} after epoch {self.state.epoch - 1}")
            return
        if resume and folder.path.exists() and any(folder.path.iterdir()):
            self.talk.say(f"{folder.path}: no finished epoch to resume from, starting at the first")
        self.accelerator.wait_for_everyone()  # all have looked before one writes
        if self.accelerator.is_main_process:
            folder.write_config(config)
            folder.write_train(self.split.train.labels)

    def run(self, folder: RunFolder | None, told: Callable[[list[dict[str, Any]]], None]) -> None:
        """All epochs of all rounds, then the final model; ``told`` gets the log after every epoch."""
        settings = self.settings
        state = self.state
        total = settings.epochs * self.method.rounds
        while state.epoch < total and not self._patience_over():
            started = time.perf_counter()
            row = self._epoch(state.epoch)
            row |= self._validate(folder) | self.skipped.figures()
            row["seconds"] = round(time.perf_counter() - started, 2)
            state.log.append(row)
            state.epoch += 1
            state.skipped = self.skipped.rows()
            self._tell(row, total)
            if folder is not None and self.accelerator.is_main_process:
                # before the checkpoint: a run that is killed in between repeats the epoch
                folder.write_tables(state.log, state.step_rows(), state.skipped)
                told(state.log)
                save_checkpoint(folder.checkpoint, self.method, self.optimizer, vars(state))
        self.model.network.eval()
        if folder is not None and self.accelerator.is_main_process:
            used = self.skipped.used()
            folder.write_train(used)
            self.model.save(folder.model.path, model_card(self.model, settings.as_dict(), used))
        self.accelerator.wait_for_everyone()

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

    def _epoch(self, epoch: int) -> dict[str, Any]:
        settings = self.settings
        method = self.method
        rank = self.accelerator.process_index
        world = self.accelerator.num_processes
        # All randomness of an epoch follows from (seed, epoch), so a resumed run repeats it exactly.
        torch.manual_seed(int(np.random.SeedSequence([settings.seed, epoch, rank]).generate_state(1)[0]))
        if epoch and epoch % settings.epochs == 0:
            self._new_round()
        method.train()
        method.begin_epoch(epoch, self._plain_batches)
        if note := method.note(epoch):
            self.talk.say(f"epoch {epoch}: {note}")
        batches = Batches(len(self.sources.train), settings.batch_size, epoch, settings.seed, rank, world)
        sums: dict[str, float] = {}
        with self.talk.bar(f"epoch {epoch}", len(batches)) as advance:
            for number, batch in enumerate(make_loader(self.sources.train, batches, settings.workers)):
                self.skipped.add("train", batch.failures)
                for term, value in self._step(batch, epoch, number, len(batches)).items():
                    sums[term] = sums.get(term, 0.0) + value
                advance(1)
        steps = sum(loss is not None for loss in self.state.steps[-len(batches) :])
        row: dict[str, Any] = {"epoch": epoch, **{name: value / steps for name, value in sums.items()}}
        row["lr"] = max(group["lr"] for group in self.optimizer.param_groups)
        return {**row, **method.figures()}

    def _step(self, batch: Batch, epoch: int, number: int, count: int) -> dict[str, float]:
        # A process that could read none of its images would leave the others waiting: all leave out the step.
        if not self.accelerator.gather(torch.tensor([len(batch.index)], device=self.device)).all():
            self.state.steps.append(None)
            return {}
        settings = self.settings
        self.method.begin_step(epoch + number / count)
        step = epoch % settings.epochs * count + number
        factor = schedule_factor(
            settings.schedule, step, settings.epochs * count, settings.epochs, settings.warmup
        )
        for group in self.optimizer.param_groups:
            group["lr"] = group["base_lr"] * factor
        with self.accelerator.autocast():
            terms = self.wrapped(batch.to(self.device))
            loss = sum(terms.values(), torch.zeros((), device=self.device))
        if not torch.isfinite(loss):
            parts = ", ".join(f"{name} {value.item():.3g}" for name, value in terms.items())
            raise SarbError(
                f"the loss is not finite at epoch {epoch}, step {number} ({parts}); try a smaller lr or clip=1"
            )
        self.optimizer.zero_grad(set_to_none=True)
        self.accelerator.backward(loss)
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

    def _tell(self, row: dict[str, Any], total: int) -> None:
        names = (
            "loss",
            "valid_mAP",
            "alpha",
            "beta",
            *(name for name in row if name.startswith("completed_")),
        )
        numbers = "  ".join(f"{name} {row[name]:.4g}" for name in names if name in row)
        left = (total - self.state.epoch) * float(np.mean([entry["seconds"] for entry in self.state.log]))
        self.talk.say(f"epoch {row['epoch']}  {numbers}  {row['seconds']:.1f} s, about {left:.0f} s left")
