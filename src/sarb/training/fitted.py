"""A run of a fitted method: compute features once, fit the ladder, try a residual, fill the network."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from numpy.typing import NDArray
from torch import Tensor

from sarb.auto.evidence import ConceptScores
from sarb.auto.frame import framed
from sarb.auto.judge import Judge
from sarb.auto.ladder import RUNGS, Ladder
from sarb.auto.parts import Floats, Mask, Parts
from sarb.auto.told import not_tried, table, verdict
from sarb.batches.features import cached_features, check_elsewhere
from sarb.batches.loader import Batches, CachedMaps, Pictures, Source, make_loader
from sarb.batches.sources import Skipped, Sources, Split
from sarb.data.dataset import Dataset
from sarb.errors import SarbError, either, part_option
from sarb.files import cache_dir
from sarb.labelling.scale import on_scale
from sarb.labels import LabelMatrix
from sarb.methods.auto import Auto
from sarb.methods.base import check_stages
from sarb.methods.together import LONGEST_WAIT, objects_of_all
from sarb.model import Model, build_network, load_model, take_backbone
from sarb.networks.backbones.base import Backbone
from sarb.networks.probe import Probe
from sarb.progress import Progress, about
from sarb.registry import METHODS, NETWORKS, find
from sarb.report.card import model_card
from sarb.runs.checkpoint import State
from sarb.runs.folder import RunFolder
from sarb.scores import Scores
from sarb.settings import Settings, resolve
from sarb.training.finetune import Tuning, compared, is_poor, tuning_settings
from sarb.training.residual import Residual, Task, fit_residual, residual_settings

#: settings that only the residual uses
RESIDUAL_ONLY = ("patience", "graph_smoothing", "graph_counts")
#: settings that the residual and fine-tuning use, and the rungs that are fitted do not
STEPWISE = (
    "epochs",
    "min_steps",
    "lr",
    "optimizer",
    "weight_decay",
    "schedule",
    "warmup",
    "clip",
    "cache_views",
    "augment",
    "flip",
    "precision",
)


@dataclass(frozen=True)
class Pooled:
    """What the ladder is fitted to.

    Attributes:
        vectors: (n, D) averaged maps of the readable images.
        concepts: what the backbone's own classifier says about them; None if it has none.
        rows: (n,) their rows in the data set.
        failures: (row, reason) of the others.
    """

    vectors: NDArray[np.float32]
    concepts: ConceptScores | None
    rows: NDArray[np.int64]
    failures: list[tuple[int, str]]


@dataclass(frozen=True)
class Fitted:
    """What a fit has found.

    Attributes:
        ladder: with all its rungs.
        residual: None if it is not kept.
        backbone: whose maps the ladder was fitted to.
        honest: (n,) images whose out-of-fold scores are made by nothing that has seen their labels.
        final: (n, C) logits of the finished model for the training images.
    """

    ladder: Ladder
    residual: Residual | None
    backbone: Backbone
    honest: Mask
    final: Floats


class Fitting:
    """One run of a method that is fitted; the counterpart of :class:`sarb.training.loop.Training`."""

    def __init__(
        self,
        train: Dataset,
        settings: Settings,
        valid: float | Dataset | None,
        init: str | Path | Model | None,
        talk: Progress,
    ) -> None:
        self.state = State()
        on_cpu = settings.device == "cpu" or not torch.accelerator.is_available()
        self.writes = bool(PartialState(cpu=on_cpu, timeout=LONGEST_WAIT).is_main_process)
        self.reports = talk.enabled  # the same in all processes
        self.talk = talk if self.writes else Progress(enabled=False)
        self.finished = False
        self.checkpoints: Path | None = None
        self.valid = valid
        self._say_what_is_not_used(settings)
        self.asked = settings
        # the ladder stands on features that never change
        self.settings = replace(settings, backbone_options={**settings.backbone_options, "train_stages": 0})
        check_stages(find("method", METHODS, settings.method), find("network", NETWORKS, settings.network))
        self.split = Split.of(train, valid, settings.seed)
        self.skipped = Skipped(self.split, talk)
        self.device = torch.device("cpu")
        if not on_cpu:
            self.device = torch.device(str(torch.accelerator.current_accelerator()))
        self.cached = settings.cache is not False
        check_elsewhere(self.cached, "it is turned off")
        torch.manual_seed(settings.seed)  # for a backbone without pretrained weights
        network = self._network({}).to(self.device)
        self.method = Auto(network, **settings.method_options)
        self.method.prepare(self.split.train.labels)
        if self.method.residual != "none":
            self._residual_settings()  # before the first long computation
        self.model = Model(network, self.split.train.categories, self.settings.network_config())
        if init is not None:
            self.talk.say(take_backbone(self.model, init if isinstance(init, Model) else load_model(init)))
        if self.method.finetune:
            self._tuning().check()  # before the first long computation
        plain = Pictures(self.split.train.paths, self.split.train.labels.values, [self.model.transform])
        self.sources = Sources(plain, plain, plain, cached=self.cached)

    def _say_what_is_not_used(self, settings: Settings) -> None:
        """Say which options have no effect on any rung rather than ignore them silently."""
        ignored = [f"network.{name}" for name in settings.network_options]
        if settings.backbone_options.get("train_stages") and not settings.method_options.get("finetune"):
            ignored.append("backbone.train_stages")
        if not settings.method_options.get("finetune"):
            usual = resolve("auto").lr_scale
            ignored += [f"lr.{part}" for part, scale in settings.lr_scale.items() if scale != usual.get(part)]
        if settings.words is not None:
            ignored.append("words")
        if settings.method_options.get("claims", "names") != "names" and settings.method_options.get("ties"):
            ignored.append("method.ties (needs claims=names)")
        if ignored:
            self.talk.say(f"not used by method {settings.method}: {', '.join(ignored)}")

    def _say_what_the_residual_would_use(self) -> None:
        """Without a residual, say which settings that differ from the recipe ``auto`` have no effect."""
        usual = resolve("auto")
        names = RESIDUAL_ONLY if self.method.finetune else (*STEPWISE, *RESIDUAL_ONLY)
        ignored = [name for name in names if getattr(self.settings, name) != getattr(usual, name)]
        if "epochs" in ignored and "min_steps" in ignored:
            ignored.remove("min_steps")  # follows from epochs
        if ignored:
            self.talk.say(f"not used without the residual: {', '.join(ignored)}")

    def _network(self, options: dict[str, Any]) -> Probe:
        """A network of the sizes in ``options``."""
        config = {**self.settings.network_config(), "network_options": options}
        weights = self.settings.backbone_options.get("weights", "default")
        network = build_network(len(self.split.train.categories), **config, weights=weights)
        assert isinstance(network, Probe)
        return network

    def open(self, folder: RunFolder, config: dict[str, Any], resume: bool) -> None:
        """Start the run folder, or find the finished model in it; what is trained for it has checkpoints."""
        if resume and folder.model.exists():
            folder.check_same(config)
            self.skipped.merge(folder.errors())
            self.finished = True
            return
        self.checkpoints = folder.checkpoints
        if self.writes:
            if not resume:
                folder.remove_checkpoints()
            folder.write_config(config)
            folder.write_train(self.split.train.labels)

    def run(self, folder: RunFolder | None, told: Callable[[list[dict[str, Any]]], None]) -> None:
        """Fit everything, and write the run folder; ``told`` gets the rungs."""
        started = time.perf_counter()
        pooled = self.pool(self.model.network.backbone)
        self.skipped.add("train", pooled.failures)
        seconds = time.perf_counter() - started
        labels = self.split.train.labels.take(pooled.rows)
        found = self.fit(pooled)
        ladder = found.ladder
        self.model = self.filled(ladder, found.residual, found.backbone)
        parts = Parts.of(labels, self.method.folds, self.settings.seed)
        rows = framed(ladder, pooled.vectors, parts, found.honest).rows
        self.state.log = [{"rung": "features", "kept": True, "seconds": round(seconds, 2)}, *rows]
        for line in (*table(self.state.log), verdict(self.state.log)):
            self.talk.say(line)
        if folder is not None and self.writes:
            folder.write_tables(self.state.log, [], self.skipped.rows())
            folder.write_train(labels)
            folder.write_out_of_fold(_held_out(found, labels))
            told(self.state.log)
            self.model.save(folder.model.path, model_card(self.model, self.settings.as_dict(), labels))
            folder.remove_checkpoints()
        objects_of_all(None)  # it is saved now
        if folder is not None and not self.writes:
            # each process has fitted its own: all test that of the first
            self.model = Model.load(folder.model.path)
            self.model.network.to(self.device)
        if not self.method.finetune:
            self._offer_finetuning(ladder, labels, pooled.rows)

    def fit(self, pooled: Pooled) -> Fitted:
        """Fit all rungs to the features of the training images; a residual only if it is kept."""
        labels = self.split.train.labels.take(pooled.rows)
        known = int(labels.known.sum())
        self.talk.say(f"fit: simple models on the features, judged on {known:,} known labels, out of fold")
        with self.talk.bar("fit", len(RUNGS) + 1) as advance:
            ladder = self.method.fit(
                pooled.vectors, labels, pooled.concepts, self.settings.seed, advance=advance
            )
            advance(1 + len(RUNGS) - len(ladder.rungs))  # those that were not tried
        self._say_what_was_not_tried(ladder, pooled, labels)
        residual = None
        if self.method.residual != "none":
            self.talk.say(
                f"residual: training ssgrl with {self.method.residual} on what the ladder leaves over; epochs, lr, "
                f"schedule and patience apply to {'it' if self.method.finetune else 'this rung only'}"
            )
            ladder, residual = self._residual(ladder, labels, pooled)
        else:
            self._say_what_the_residual_would_use()
        final = ladder(pooled.vectors, pooled.concepts)
        if residual is not None:
            final = final + residual.weight * residual.scores
        found = Fitted(ladder, residual, self.model.network.backbone, np.ones(len(labels), bool), final)
        return self._finetuned(found, labels, pooled.rows) if self.method.finetune else found

    def _say_what_was_not_tried(self, ladder: Ladder, pooled: Pooled, labels: LabelMatrix) -> None:
        """Say which rungs are missing from the table, and why."""
        line = not_tried(
            {rung.name for rung in ladder.rungs},
            self.method.claims,
            concepts=pooled.concepts is not None,
            tied=self.method.is_tied(labels.categories),
        )
        if line:
            self.talk.say(line)

    def _tuning(self) -> Tuning:
        """The last stage of the backbone, which may be trained."""
        backbone = self.model.network.backbone
        settings = tuning_settings(self.asked)
        return Tuning(self.split.whole, self.valid, backbone, settings, self.talk, self.checkpoints)

    def _offer_finetuning(self, ladder: Ladder, labels: LabelMatrix, rows: NDArray[np.int64]) -> None:
        """Where frozen features are poor, say that the last stage can be trained, and how long that takes."""
        loss = Judge.of(Parts.of(labels, self.method.folds, self.settings.seed)).loss(ladder.out_of_fold)
        # all processes must go on, or none
        if not (self.reports and objects_of_all(is_poor(loss, labels))[0]):
            return
        tuning = self._tuning()
        if not tuning.possible:
            return
        self.talk.say(
            f"frozen features explain little here (loss {loss:.2f}; 1 is knowing only the rates): "
            f"{either('--finetune', part_option('method', 'finetune', True))} trains the last stage of the backbone "
            "too, "
            f"{about(tuning.seconds(self.split.rows[rows]))} on this machine"
        )

    def _finetuned(self, frozen: Fitted, labels: LabelMatrix, rows: NDArray[np.int64]) -> Fitted:
        """Train the last stage, and return the ladder on it if it gains, else the given one; both with a rung."""
        tuning = self._tuning()
        held = np.isin(self.split.rows[rows], tuning.split.held)
        parts = Parts.of(labels, self.method.folds, self.settings.seed).only(held)
        if not Judge.of(parts).weights.any() or not labels.known[~held].any():
            self.talk.say("finetune: not tried, too few labels are known to judge it on held-out images")
            return frozen
        expected = about(tuning.seconds(self.split.rows[rows])) if self.reports else ""
        self.talk.say(
            f"finetune: training the last stage of the backbone on {np.sum(~held):,} images, judged on "
            f"{np.sum(held):,} others; epochs and lr apply, names and concepts are not used with it; "
            f"{expected} on this machine"
        )
        started = time.perf_counter()
        backbone = tuning.train()
        pooled = self.pool(backbone)
        ladder = self.method.fit(pooled.vectors, labels, pooled.concepts, self.settings.seed, held)
        rung = compared(frozen.ladder, ladder, parts, tuning.stages, started)
        if not rung.kept:
            return replace(frozen, ladder=replace(frozen.ladder, rungs=(*frozen.ladder.rungs, rung)))
        self.talk.say(
            f"finetune: kept; {'the residual is left out, and ' if frozen.residual else ''}only the "
            f"{np.sum(held):,} held-out images have out-of-fold scores"
        )
        final = ladder(pooled.vectors, pooled.concepts)
        return Fitted(replace(ladder, rungs=(*ladder.rungs, rung)), None, backbone, held, final)

    def _residual_settings(self) -> Settings:
        return residual_settings(self.settings, self.method.residual, self.method.residual_options)

    def _residual(
        self, ladder: Ladder, labels: LabelMatrix, pooled: Pooled
    ) -> tuple[Ladder, Residual | None]:
        """The ladder with one more rung, and the residual if it is kept."""
        task = Task(
            whole=self.split.whole,
            valid=self.valid,
            rows=pooled.rows,
            labels=labels,
            scores=ladder.out_of_fold,
            refit=lambda fewer: (
                self.method.fit(pooled.vectors, fewer, pooled.concepts, self.settings.seed).out_of_fold
            ),
            parts=Parts.of(labels, self.method.folds, self.settings.seed),
            backbone=self.model.network.backbone,
            settings=self._residual_settings(),
            talk=self.talk,
            checkpoints=self.checkpoints,
        )
        rung, residual, out_of_fold = fit_residual(task)
        return replace(ladder, rungs=(*ladder.rungs, rung), out_of_fold=out_of_fold), residual

    def filled(self, ladder: Ladder, residual: Residual | None, backbone: Backbone | None = None) -> Model:
        """The network of the right size, with the ladder in it; None takes the frozen backbone."""
        backbone = backbone or self.model.network.backbone
        concepts = backbone.concepts()
        sizes = Probe.sizes(ladder, 0 if concepts is None else len(concepts.names))
        if residual is not None:
            sizes |= {"residual": "ssgrl", "residual_options": residual.options}
        network = self._network(sizes)
        if residual is not None:
            network.load_residual(residual.network, residual.weight)
        network.backbone.load_state_dict(backbone.state_dict())
        if concepts is None:
            network.load_ladder(ladder, None, None)
        else:
            network.load_ladder(ladder, concepts.weight, concepts.bias)
        config = {**self.settings.network_config(), "network_options": sizes}
        return Model(network.eval().to(self.device), self.split.train.categories, config)

    def pool(self, backbone: Backbone) -> Pooled:
        """Average the maps of the training images, and ask the backbone's own classifier about them."""
        classifier = backbone.concepts()
        vectors: list[NDArray[np.float32]] = []
        answers: list[tuple[Tensor, Tensor, Tensor]] = []
        rows: list[NDArray[np.int64]] = []
        failures: list[tuple[int, str]] = []
        with torch.inference_mode():
            for batch in make_loader(
                self._source(backbone),
                Batches(len(self.split.train), self.settings.batch_size),
                self.settings.workers,
            ):
                failures += batch.failures
                if not len(batch.index):
                    continue
                images = batch.images.to(self.device)
                maps = backbone.trained(images if batch.frozen else backbone.frozen(images)).float().cpu()
                average = maps.mean((2, 3))
                self._check_finite(average, batch.index)
                vectors.append(average.numpy())
                rows.append(batch.index.numpy())
                if classifier is not None:
                    cells = classifier.probabilities(maps).flatten(2)
                    answers.append((classifier.probabilities(average), cells.mean(2), cells.amax(2)))
        concepts = None
        if classifier is not None:
            concepts = ConceptScores(*(torch.cat(kind).numpy() for kind in zip(*answers, strict=True)))
        return Pooled(np.concatenate(vectors), concepts, np.concatenate(rows), failures)

    def _check_finite(self, vectors: Tensor, index: Tensor) -> None:
        """Refuse features (B, D) that are not finite: a fit would spread them over all categories."""
        wrong = index[~torch.isfinite(vectors).all(1)].tolist()
        if wrong:
            names = ", ".join(self.split.train.labels.paths[row] for row in wrong[:3])
            raise SarbError(
                f"features of {len(wrong):,} images are not finite: {names}; cached features are computed again once "
                f"their file in {cache_dir() / 'features'} is removed"
            )

    def _source(self, backbone: Backbone) -> Source:
        """The training images, from the feature cache or from the files."""
        train = self.split.train
        if not self.cached:
            return Pictures(train.paths, train.labels.values, [self.model.transform])
        stored = cached_features(
            backbone,
            self.split.whole,
            self.model.transform,
            device=self.device,
            workers=self.settings.workers,
            progress=self.talk,
        )
        return CachedMaps(
            stored.activations, train.labels.values, self.split.rows, unreadable=stored.unreadable
        )


def _held_out(found: Fitted, labels: LabelMatrix) -> Scores:
    """Out-of-fold scores of the honest images on the scale of the final model, as ``sarb calibrate`` needs them."""
    rows = np.flatnonzero(found.honest)
    held, final = (
        Scores(logits, labels.categories, labels.paths).take(rows)
        for logits in (found.ladder.out_of_fold, found.final)
    )
    return on_scale(held, final, labels.take(rows))
