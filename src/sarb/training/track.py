"""Send the rows of ``log.csv`` to TensorBoard or Weights & Biases, which are imported only if asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from sarb.errors import ConfigError, SarbError, setting, unknown_name
from sarb.files import atomic_write

Row = Mapping[str, Any]


class Tracker(Protocol):
    """A destination for numbers, opened with (folder, config, first step)."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log named numbers at a step."""

    def close(self, failed: bool) -> None:
        """Finish; ``failed`` after an error or a signal."""


class TensorBoard:
    """Event files in ``RUN/tensorboard``."""

    mark = "tensorboard"
    extra = "track"

    def __init__(self, folder: Path, config: Mapping[str, Any], start: int) -> None:
        from torch.utils import tensorboard
        from torch.utils.tensorboard import summary

        open_writer: Callable[..., Any] = tensorboard.SummaryWriter
        hparams: Callable[..., Any] = summary.hparams
        # hides what a killed run wrote from this step on, so that a repeated epoch appears once
        self._writer = open_writer(folder / self.mark, purge_step=start)
        config_text = json.dumps(config, indent=2, ensure_ascii=False)
        self._writer.add_text("config", f"```json\n{config_text}\n```", start)
        # add_hparams would open a second event file, and TensorBoard would stop reading the first
        head, first, self._last = hparams(_flat(config["settings"]), {"test_mAP": 0.0, "valid_mAP": 0.0})
        self._writer.file_writer.add_summary(head)
        self._writer.file_writer.add_summary(first)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Write one scalar per name, and flush so that it shows up right away."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self, failed: bool) -> None:
        """Close the event file; only a run without failure is marked as a success."""
        if not failed:
            self._writer.file_writer.add_summary(self._last)
        self._writer.close()


class WeightsAndBiases:
    """A wandb run; its files and its id are in ``RUN/wandb``."""

    mark = "wandb/run_id.txt"
    extra = "wandb"

    def __init__(self, folder: Path, config: Mapping[str, Any], start: int) -> None:
        import wandb

        id_file = folder / self.mark
        options: dict[str, Any] = {"dir": str(folder), "name": folder.name, "config": dict(config)}
        if not os.environ.get("WANDB_PROJECT"):
            options["project"] = "sarb"
        if start:
            options["id"] = id_file.read_text(encoding="utf-8").strip()
            options["resume"] = "allow"
        try:
            self._run = wandb.init(**options)
        except Exception as error:  # wandb raises many unrelated classes
            reason = " ".join(str(error).split())[:200]
            raise SarbError(
                f"wandb cannot start ({reason}); run 'wandb login' or set WANDB_MODE=offline"
            ) from error
        with atomic_write(id_file) as file:
            file.write(self._run.id + "\n")

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Log one step."""
        self._run.log(dict(values), step=step)

    def close(self, failed: bool) -> None:
        """Upload what is left."""
        self._run.finish(exit_code=int(failed))


#: name for ``--track``, which is also the name of the package -> class
TRACKERS: dict[str, type[TensorBoard] | type[WeightsAndBiases]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
}


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings: ``{"method_options": {"alpha": 0.5}}`` -> ``{"method_options.alpha": 0.5}``.

    Values that are neither numbers nor text, such as None, become JSON text.
    """
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, bool | int | float | str) else json.dumps(value)
    return flat


class Trackers:
    """All trackers asked for, possibly none. A context manager: the outermost ``with`` closes them.

    Args:
        names: keys of ``TRACKERS``.
        folder: the run folder.

    Raises:
        ConfigError: an unknown name, a missing package, or no folder; raised before anything else happens.
    """

    def __init__(self, names: str | Sequence[str] | None, folder: Path | None) -> None:
        chosen = [names] if isinstance(names, str) else list(dict.fromkeys(names or []))
        problems = track_problems(chosen)
        if chosen and folder is None:
            problems.append(f"tracking needs a run folder: give {setting('out', 'DIR')}")
        if problems:
            raise ConfigError(problems)
        self._classes = [TRACKERS[name] for name in chosen]
        self._folder = folder
        self._depth = 0
        self._done = 0
        self._open: list[tuple[Tracker, int]] = []  # with the first epoch it has not seen

    @classmethod
    def of(cls, track: str | Sequence[str] | Trackers | None, folder: Path | None) -> Trackers:
        """Return trackers unchanged, or make them from names."""
        return track if isinstance(track, Trackers) else cls(track, folder)

    def open(self, config: Mapping[str, Any], rows: Sequence[Row], writing: bool = True) -> None:
        """Start, or continue after ``rows``; a tracker that is new to this run gets the earlier epochs now.

        Args:
            config: content of ``config.json``.
            rows: rows of the finished epochs.
            writing: whether this is the main process; the others log nothing.
        """
        for tracker in self._classes if writing else ():
            assert self._folder is not None
            start = len(rows) if (self._folder / tracker.mark).exists() else 0
            self._open.append((tracker(self._folder, config, start), start))
        self.log(rows)

    def log(self, rows: Sequence[Row]) -> None:
        """Log the rows of ``log.csv``, each one once."""
        for tracker, start in self._open:
            first = max(start, self._done)
            for number, row in enumerate(rows[first:], first):  # a row without epochs is a rung of a ladder
                tracker.log(_numbers(row), int(row.get("epoch", number)))
        self._done = len(rows)

    def test(self, metrics: Row) -> None:
        """Log the final metrics as ``test_…``, at the step after the last epoch."""
        for tracker, _ in self._open:
            tracker.log({f"test_{name}": value for name, value in _numbers(metrics).items()}, self._done)

    def __enter__(self) -> Trackers:
        self._depth += 1
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._depth -= 1
        while self._depth == 0 and self._open:
            tracker = self._open.pop()[0]
            tracker.close(failed=error is not None)


def _numbers(row: Row) -> dict[str, float]:
    return {name: value for name, value in row.items() if isinstance(value, int | float)}


def track_problems(names: Sequence[str]) -> list[str]:
    """Return what is wrong with the names of trackers, one line each."""
    wrong = [unknown_name("tracker", name, TRACKERS) for name in names if name not in TRACKERS]
    missing = [name for name in names if name in TRACKERS and find_spec(name) is None]
    return wrong + [
        f'track: {name} is not installed: pip install "sarb[{TRACKERS[name].extra}]"' for name in missing
    ]
