"""The only training loop. It knows no method: it sums named terms, steps, logs, saves."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sarb.batches.engines import Run, named_engine
from sarb.batches.loader import Batch, Batches, make_loader
from sarb.batches.sources import Skipped, Sources, Split
from sarb.data.dataset import Dataset
from sarb.errors import ConfigError
from sarb.inference.prediction import infer, joined
from sarb.methods.base import Method
from sarb.methods.together import LONGEST_WAIT, Step, drawing, during
from sarb.metrics import evaluate as measure
from sarb.model import Model, load_model, new_model, start_from
from sarb.networks.informed import log_odds
from sarb.progress import Advance, Progress
from sarb.registry import METHODS, find
from sarb.report.card import model_card
from sarb.runs.checkpoint import State
from sarb.runs.folder import RunFolder
from sarb.settings import Settings
from sarb.training.checkpoints import Checkpoints
from sarb.training.compiling import Compiled
from sarb.training.diverged import check_gradients, check_loss, check_state
from sarb.training.epochs import EpochTable, summary
from sarb.training.norms import SyncNorms
from sarb.training.optim import OPTIMIZERS, parameter_groups, schedule_factor
from sarb.training.spread import PlainPass, Spread, grouped

#: a batch of several processes may be too large for one of them
MOST_WITHOUT_GRADIENT = 64


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
        from accelerate import Accelerator, DistributedDataParallelKwargs, InitProcessGroupKwargs

        self.accelerator = Accelerator(
            cpu=settings.device == "cpu" or not torch.accelerator.is_available(),
            mixed_precision="no" if settings.precision == "fp64" else settings.precision,
            # A method need not use all its parameters in every step: α and β rest until blending starts.
            # The others wait while the first process computes the feature cache. A lost process is noticed at once.
            kwargs_handlers=[
                DistributedDataParallelKwargs(find_unused_parameters=True),
                InitProcessGroupKwargs(timeout=LONGEST_WAIT),
            ],
        )
        self.device = self.accelerator.device
        self.spread = Spread(self.accelerator, settings)
        talk = talk if self.accelerator.is_main_process else Progress(enabled=False)
        self.talk = talk
        self.state = State()
        self.dtype: torch.dtype | None = None
        torch.manual_seed(settings.seed)
        self.split = Split.of(train, valid, settings.seed)
        self.skipped = Skipped(self.split, talk)
        steps = -(-len(self.split.train) // (settings.batch_size * settings.accumulate))
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
        self.model.network.backbone.engine = self._engine()
        self.method.eval()  # a start from the data must not move the batch norms
        if init is None:
            self.model.network.initialise(self.split.train.labels, self._activations)
            if (rates := self.method.mean_targets(self.split.train.labels)) is not None:
                self.model.network.expect(log_odds(rates))
        if settings.precision == "fp64":
            self.dtype = torch.float64
            self.method.double()
        # Only a method that trains several times from the start needs to remember the start.
        self.initial = {} if self.method.rounds == 1 else copy.deepcopy(self.method.state_dict())
        self.method.train()
        synchronised = settings.sync_batch_norm is not False and self.spread.world > 1
        self.norms = SyncNorms(self.method, talk) if synchronised else None
        self.compiled = Compiled(self.model.network, self.device.type) if settings.compile else None
        self._optimise()
        processes = self.accelerator.num_processes
        scaler = self.accelerator.scaler
        self.checkpoints = Checkpoints(self.method, settings.checkpoint_every, processes, talk, scaler)

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
        if self.spread.agree(f"{folder.checkpoint}", resume and folder.checkpoint.is_file()):
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
        steps = self._steps
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
        self._end()
        if folder is not None and self.accelerator.is_main_process:
            used = self.skipped.used()
            folder.write_train(used)
            self.model.save(folder.model.path, model_card(self.model, settings.as_dict(), used))
        self.accelerator.wait_for_everyone()

    def _engine(self) -> Run | None:
        """Return what runs the frozen stages on image files; None for PyTorch."""
        if self.sources.cached or self.settings.precision != "no":
            return None
        return named_engine(
            self.model.network.backbone, lambda: next(iter(self._plain_batches())).images, self.talk.detail
        )

    def _end(self) -> None:
        """Leave a plain network in fp32, ready to predict."""
        self.model.network.backbone.engine = None
        if self.norms is not None:
            self.norms.restore()
        if self.compiled is not None:
            self.compiled.restore()
        if self.dtype is not None:
            self.method.float()
        self.model.network.eval()

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
        with drawing(self.spread.generator):
            self.method.end_round(self._plain)
        network = {key: value for key, value in self.initial.items() if key.startswith("network.")}
        self.method.load_state_dict({**self.method.state_dict(), **network})
        self._optimise()

    @property
    def _steps(self) -> int:
        """Optimiser steps of an epoch."""
        return -(-len(self._batches(0)) // self.settings.accumulate)

    def _batches(self, epoch: int, step: int = 0) -> Batches:
        """The parts of this process in an epoch, without those of the steps that are done."""
        settings = self.settings
        place = (self.spread.rank, self.spread.world, step * settings.accumulate)
        return Batches(len(self.sources.train), settings.batch_size, epoch, settings.seed, *place)

    def _begin_epoch(self, epoch: int) -> None:
        # All randomness of an epoch follows from (seed, epoch), so a resumed run repeats it exactly.
        self.spread.begin_epoch(epoch)
        if epoch and epoch % self.settings.epochs == 0:
            self._new_round()
        self.method.train()
        with drawing(self.spread.generator):
            self.method.begin_epoch(epoch, self._plain)
        if note := self.method.note(epoch):
            self.talk.detail(f"epoch {epoch}: {note}")

    def _epoch(self, epoch: int) -> dict[str, Any]:
        state = self.state
        method = self.method
        if state.step:
            method.train()
            self.checkpoints.continue_epoch()
            self.spread.continue_epoch(method.figures())
        else:
            self._begin_epoch(epoch)
        count = self._steps
        about = summary(epoch, state.log)
        loader = make_loader(self.sources.train, self._batches(epoch, state.step), self.settings.workers)
        for number, parts in enumerate(grouped(loader, self.settings.accumulate), state.step):
            for part in parts:
                self.skipped.add("train", part.failures)
            for term, value in self._step(parts, epoch, number, count).items():
                state.sums[term] = state.sums.get(term, 0.0) + value
            state.step = number + 1
            self.advance(1, about)
            if self.checkpoints.is_due():
                check_state(method, self.optimizer, f"epoch {epoch}, step {number}")
                state.seconds = time.perf_counter() - self._started
                self._save()
        self.spread.align(method)  # all score with the model that the first process saves
        check_state(method, self.optimizer, f"epoch {epoch}, step {count - 1}")
        steps = sum(loss is not None for loss in state.steps[-count:])
        row: dict[str, Any] = {"epoch": epoch, **{name: value / steps for name, value in state.sums.items()}}
        return {**row, "lr": state.lr, **self.spread.figures(method.figures())}

    def _step(self, parts: Sequence[Batch], epoch: int, number: int, count: int) -> dict[str, float]:
        first, batches = number * self.settings.accumulate, self._batches(epoch)
        stand_in = [batches.stands_in(first + each) for each in range(len(parts))]
        known = zip(parts, self.spread.steps(parts, stand_in), strict=True)
        read = [(part.to(self.device, self.dtype), step) for part, step in known if step is not None]
        if not read:
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
        self.optimizer.zero_grad(set_to_none=True)
        sums: dict[str, float] = {}
        for place, (part, shared) in enumerate(read, 1):
            with nullcontext() if place == len(read) else self.accelerator.no_sync(self.wrapped):
                terms = self._backward(part, shared, len(read), where)
            for term, value in self.spread.means(terms).items():
                sums[term] = sums.get(term, 0.0) + value / len(read)
        if self.accelerator.scaler is None:  # which leaves out steps with such gradients itself
            check_gradients(self.method, where)
        if settings.clip > 0:
            self.accelerator.clip_grad_norm_(self.method.parameters(), settings.clip)
        self.optimizer.step()
        self.method.end_step()
        self.state.steps.append(round(sums["loss"], 6))
        return sums

    def _backward(self, part: Batch, shared: Step, parts: int, where: str) -> dict[str, Tensor]:
        """Add the gradient of one part of a step; return its loss and the terms."""
        with self.accelerator.autocast(), during(shared), drawing(self.spread.generator):
            terms = self.wrapped(part)
            loss = sum(terms.values(), torch.zeros((), device=self.device))
        check_loss(loss, terms, part, self.method, self.split.train.labels.paths, where)
        self.accelerator.backward(loss if parts == 1 else loss / parts)
        return {"loss": loss, **{f"loss_{name}": value for name, value in terms.items()}}

    @property
    def _plain(self) -> PlainPass:
        """What a method gets as ``loader``."""
        return PlainPass(self._plain_batches, self.spread)

    @property
    def _without_gradient(self) -> int:
        """Images per batch where nothing learns: the same in one process and in many, so that sums agree."""
        return min(self.settings.batch_size, MOST_WITHOUT_GRADIENT)

    def _plain_batches(self, rank: int = 0, world: int = 1) -> Iterable[Batch]:
        batches = Batches(len(self.sources.plain), self._without_gradient).share(rank, world)
        loader = make_loader(self.sources.plain, batches, self.settings.workers)
        return (batch.to(self.device, self.dtype) for batch in self.skipped.readable("train", loader))

    def _activations(self) -> Iterable[Tensor]:
        """What the frozen stages make of the training images."""
        frozen = self.model.network.backbone.frozen
        return (batch.images if batch.frozen else frozen(batch.images) for batch in self._plain_batches())

    def _single(self) -> Model:
        """The model as it is saved, in fp32."""
        if self.dtype is None:
            return self.model
        return Model(copy.deepcopy(self.model.network).float(), self.model.categories, self.model.config)

    def _validate(self, folder: RunFolder | None) -> dict[str, Any]:
        """Metrics on the known labels of the validation images; remember the best epoch."""
        if not len(self.split.valid):
            return {}
        batches = Batches(len(self.sources.valid), self._without_gradient)
        batches = batches.share(self.spread.rank, self.spread.world)
        loader = make_loader(self.sources.valid, batches, self.settings.workers)
        logits, index, failures = joined(infer(self.model.network, loader))
        self.skipped.add("valid", failures)
        result = measure(logits, self.split.valid.labels.take(index))
        if result["mAP"] > self.state.best:
            self.state.best = result["mAP"]
            self.state.best_epoch = self.state.epoch
            if folder is not None and self.accelerator.is_main_process:
                self._single().save(folder.best.path)
        return {f"valid_{name}": result[name] for name in ("mAP", "mAP_interpolated", "OF1", "CF1")}
