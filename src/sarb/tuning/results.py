"""What a search leaves behind: ``trials.csv``, ``best.toml``, a page with its figure, and the result in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.errors import SarbError
from sarb.files import write_csv
from sarb.report.markdown import inline
from sarb.report.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sarb.report.style import Colours

TRIALS = "trials.csv"
BEST_RECIPE = "best.toml"
PAGE = "README.md"
HISTORY = "history.png"
#: rows of the table on the page
SHOWN = 30


@dataclass(frozen=True)
class Trial:
    """One trial of a search.

    Attributes:
        number: from 0.
        state: finished, pruned (ended early), failed, or running (it was stopped or lost; the same command continues).
        values: what was tried.
        value: the metric on the known labels of the validation images; None unless it finished.
        seconds: of training.
        seed: of the training.
        folder: its run folder.
        command: the ``sarb train`` command of the same training.
        error: why it failed.
    """

    number: int
    state: str
    values: Mapping[str, Any]
    value: float | None
    seconds: float | None
    seed: int | None
    folder: Path
    command: str = ""
    error: str = ""


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        trials: in order.
        metric: what they were judged on.
        folder: where everything is.
    """

    trials: Sequence[Trial]
    metric: str
    folder: Path
    lost: Mapping[int, str] = field(default_factory=dict)

    @property
    def best(self) -> Trial:
        """The finished trial with the largest value, the earliest of equals."""
        found = best_of(self.trials)
        if found is None:
            errors = [trial.error for trial in self.trials if trial.error]
            first = f". The first one: {errors[0]}" if errors else ""
            raise SarbError(f"{self.folder}: no trial has finished; {TRIALS} has the reasons{first}")
        return found

    @property
    def recipe(self) -> Path:
        """The recipe of the best trial."""
        return self.folder / BEST_RECIPE

    @property
    def page(self) -> Path:
        """The page about the search."""
        return self.folder / PAGE

    def __str__(self) -> str:
        best = self.best
        tried = ", ".join(f"{name} {text(value)}" for name, value in best.values.items())
        return f"best of {len(self.trials)} trials: {self.metric} {best.value:.2f} in trial {best.number} ({tried})"


def folder_of(out: Path, number: int) -> Path:
    """The run folder of a trial."""
    return out / f"trial-{number:04d}"


def trial_of(out: Path, entry: Mapping[str, Any]) -> Trial:
    """A trial from what the study knows."""
    notes = entry["notes"]
    return Trial(
        number=entry["number"],
        state=entry["state"],
        values=entry["values"],
        value=entry["value"] if entry["state"] == "finished" else None,
        seconds=notes.get("seconds"),
        seed=notes.get("seed"),
        folder=folder_of(out, entry["number"]),
        command=notes.get("command", ""),
        error=notes.get("error", ""),
    )


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The finished trial with the largest value, the earliest of equals; None without one."""
    finished = [trial for trial in trials if trial.value is not None]
    return max(finished, key=lambda trial: (trial.value or 0, -trial.number)) if finished else None


def write_trials(out: Path, trials: Sequence[Trial], metric: str) -> None:
    """One line per trial."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.values))
    header = ("trial", "state", f"valid_{metric}", *names, "seconds", "seed", "folder", "command", "error")
    rows = [
        (
            trial.number,
            trial.state,
            trial.value,
            *(trial.values.get(name) for name in names),
            trial.seconds,
            trial.seed,
            str(trial.folder),
            trial.command,
            trial.error,
        )
        for trial in trials
    ]
    write_csv(out / TRIALS, header, rows)


def page_text(
    trials: Sequence[Trial], metric: str, title: str, command: str, about: str, again: str | None
) -> str:
    """The page: the command, the best trial and how to repeat it, the figure, the table.

    Args:
        trials: all of them.
        metric: what they were judged on.
        title: name of the data.
        command: the command of the search.
        about: what was searched and how, in sentences.
        again: the command that trains the best recipe; None if no trial has finished.
    """
    ended = [trial for trial in trials if trial.state != "running"]
    states = [trial.state for trial in ended]
    count = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    parts = [f"# A search on {inline(title)}"]
    if command:
        parts.append(f"```console\n$ {command}\n```")
    parts.append(f"{len(ended)} trials: {count}. {about}")
    best = best_of(trials)
    if best is not None and again is not None:
        parts.append(
            f"Best: trial {best.number}, {metric} {best.value:.2f} on the known labels of the validation images. "
            "It was chosen by this number, so expect a little less on new images. "
            f"[{BEST_RECIPE}]({BEST_RECIPE}) repeats it and tests it on the test images, which no trial has seen:"
            f"\n\n```console\n$ {again}\n```"
        )
        parts.append(f"![{metric} of each trial, and the best so far]({HISTORY})")
    parts.append(_table(ended, metric))
    return "\n\n".join(parts) + "\n"


def _table(trials: Sequence[Trial], metric: str) -> str:
    names = list(dict.fromkeys(name for trial in trials for name in trial.values))
    ordered = sorted(trials, key=lambda trial: (trial.value is None, -(trial.value or 0), trial.number))
    head = ["trial", *(f"`{name}`" for name in names), f"valid {metric}", "seconds"]
    rows = [head, ["---:"] * len(head)]
    for trial in ordered[:SHOWN]:
        value = trial.state if trial.value is None else f"{trial.value:.2f}"
        tried = [inline(text(trial.values.get(name))) for name in names]
        rows.append([str(trial.number), *tried, value, f"{trial.seconds or 0:.0f}"])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if len(ordered) > SHOWN:
        lines.append(f"\nThe best {SHOWN}; all are in [{TRIALS}]({TRIALS}).")
    return "\n".join(lines)


def text(value: Any) -> str:
    """A value of a setting in four digits."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:.4g}"


def draw_history(trials: Sequence[Trial], metric: str, title: str, colours: Colours) -> Figure:
    """The value of each finished trial, and the best so far; trials that were pruned or failed as marks below."""
    figure = new_figure(3.4, 7.6)
    axes = figure.subplots()
    finished = [trial for trial in trials if trial.value is not None]
    numbers = [trial.number for trial in finished]
    values = [trial.value or 0.0 for trial in finished]
    so_far = [max(values[: end + 1]) for end in range(len(values))]
    axes.step(numbers, so_far, where="post", color=colours.series[0], linewidth=2, label="best so far")
    axes.plot(numbers, values, "o", color=colours.series[1], markersize=5, label="finished")
    for state, sign in (("pruned", "v"), ("failed", "x")):
        others = [trial.number for trial in trials if trial.state == state]
        if others:
            axes.plot(others, [min(values)] * len(others), sign, color=colours.muted, label=state)
    axes.set(xlabel="trial", ylabel=f"validation {metric} (%)", title=title)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure
