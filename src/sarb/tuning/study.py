"""Optuna's study in a folder: which values come next, and what is kept of a search that was killed.

The study is Optuna's journal, ``study.jsonl``: lines of JSON, nothing pickled. It is also what Optuna's own tools read.
A trial is in it from the moment its values are chosen, so a search that was killed begins the same trials again.

**The same command makes the same trials**, whatever finishes first: trial n is chosen from the seed, n, and the results
of trials 0 to n − jobs only. The ones in between count as running, for which TPE assumes that they turn out badly.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sarb.errors import SarbError
from sarb.tuning.space import Dimension, grid_of

STUDY = "study.jsonl"
#: name of the study in the journal
NAME = "sarb"
SAMPLERS = ("tpe", "random", "grid")
#: our state -> Optuna's; a trial that was lost stays "running", so that the next command tries it again
STATES = {"finished": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL", "running": "RUNNING"}


class _NoLock:
    """Optuna's lock would outlive a kill by 30 seconds; the folder has one that does not."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class Study:
    """The trials of a folder.

    Args:
        folder: where the journal lies.
        space: what is searched.
        sampler: ``tpe``, ``random`` or ``grid``.
        seed: of the choices.
        setup: everything that makes the trials comparable; a journal with another one is refused.
    """

    def __init__(
        self, folder: Path, space: Sequence[Dimension], sampler: str, seed: int, setup: Mapping[str, Any]
    ) -> None:
        self.space = space
        self.sampler = sampler
        self.seed = seed
        self._optuna: Any = importlib.import_module("optuna")
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        file = folder / STUDY
        folder.mkdir(parents=True, exist_ok=True)
        _cut_torn_line(file)
        journal: Any = importlib.import_module("optuna.storages.journal")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # marked as experimental
            storage = self._optuna.storages.JournalStorage(
                journal.JournalFileBackend(str(file), lock_obj=_NoLock())
            )
        self._study = self._optuna.create_study(
            storage=storage, study_name=NAME, direction="maximize", load_if_exists=True
        )
        self._check(file, dict(setup))

    def _check(self, file: Path, setup: dict[str, Any]) -> None:
        before = self._study.user_attrs.get("setup")
        if before is None or not self._study.get_trials(deepcopy=False):  # nothing to mix with
            self._study.set_user_attr("setup", setup)
            return
        differences = [
            f"{key}: was {before.get(key)!r}, now {setup.get(key)!r}"
            for key in dict.fromkeys([*before, *setup])
            if before.get(key) != setup.get(key)
        ]
        if differences:
            raise SarbError(
                f"{file}: holds a search with other settings; choose another --out:\n  "
                + "\n  ".join(differences)
            )

    def trials(self) -> list[dict[str, Any]]:
        """Every trial begun: number, state, values, value, curve (of a validation metric) and notes."""
        ours = {self._optuna.trial.TrialState[theirs]: state for state, theirs in STATES.items()}
        return [
            {
                "number": trial.number,
                "state": ours[trial.state],
                "values": dict(trial.params),
                "value": trial.value,
                "curve": [trial.intermediate_values[step] for step in sorted(trial.intermediate_values)],
                "notes": dict(trial.user_attrs),
            }
            for trial in self._study.get_trials(deepcopy=False)
        ]

    def values_of(self, number: int, jobs: int) -> dict[str, Any]:
        """The values of a trial: those it was begun with, or else chosen now, and written down."""
        begun = self._study.get_trials(deepcopy=False)
        if number < len(begun):
            return dict(begun[number].params)
        chosen = self._choose(number, jobs)
        self._study.add_trial(self._made("RUNNING", chosen))
        return chosen

    def _choose(self, number: int, jobs: int) -> dict[str, Any]:
        if self.sampler == "grid":
            return grid_of(self.space)[number]
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        samplers = self._optuna.samplers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some options are marked as experimental
            chosen = (
                samplers.RandomSampler(seed=seed)
                if self.sampler == "random"
                else samplers.TPESampler(seed=seed, constant_liar=True)
            )
        seen = self._optuna.create_study(sampler=chosen, direction="maximize")
        for trial in self._study.get_trials(deepcopy=False)[:number]:
            hidden = trial.number > number - jobs
            seen.add_trial(self._made("RUNNING", trial.params) if hidden else trial)
        return dict(seen.ask(self._distributions()).params)

    def _made(self, state: str, values: Mapping[str, Any]) -> Any:
        return self._optuna.trial.create_trial(
            state=self._optuna.trial.TrialState[state],
            params=dict(values),
            distributions=self._distributions(),
        )

    def _distributions(self) -> dict[str, Any]:
        made = self._optuna.distributions
        found: dict[str, Any] = {}
        for entry in self.space:
            if entry.choices:
                found[entry.name] = made.CategoricalDistribution(entry.choices)
            elif isinstance(entry.low, int):
                found[entry.name] = made.IntDistribution(entry.low, int(entry.high), log=entry.log)
            else:
                found[entry.name] = made.FloatDistribution(entry.low, entry.high, log=entry.log)
        return found

    def tell(
        self,
        number: int,
        state: str,
        value: float | None,
        curve: Sequence[float] = (),
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down how a trial ended; nothing if that is known already."""
        frozen = self._study.get_trials(deepcopy=False)[number]
        if frozen.state.is_finished():
            return
        trial = self._optuna.trial.Trial(self._study, frozen._trial_id)
        for step, reached in enumerate(curve):
            trial.report(reached, step)
        for key, note in (notes or {}).items():
            trial.set_user_attr(key, note)
        self._study.tell(
            number, value if state == "finished" else None, self._optuna.trial.TrialState[STATES[state]]
        )


def _cut_torn_line(file: Path) -> None:
    """A power cut may leave half a line at the end; what it was about had not happened yet."""
    if not file.is_file():
        return
    content = file.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(file, whole)
