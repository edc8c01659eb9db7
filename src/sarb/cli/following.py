"""The last line of a command: the next useful one, ready to be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sarb.cli.common import echo
from sarb.serve.journal import journal_of, read_journal

if TYPE_CHECKING:
    from sarb.report.compared import Comparison


def say_next(words: Sequence[str | Path]) -> None:
    """Print a command on stderr; nothing for no words."""
    if words:
        echo(f"next: {shlex.join(['sarb', *map(str, words)])}", err=True)


def source_words(flag: str, source: str, options: Mapping[str, Any]) -> list[str]:
    """``--data SRC -o key=value …`` as it was given."""
    return [flag, source, *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]


def after_checking(source: str, options: Mapping[str, Any]) -> list[str]:
    """Train on the source; if a review has written it, with the settings of the run that asked."""
    from sarb.runs.again import train_again

    return train_again(_asked_by(source), source, options)


def _asked_by(source: str) -> Path | None:
    """The run whose review wrote this table, as the journal beside it says; None without either."""
    journal = journal_of(Path(source.rpartition(":")[2]))
    if not journal.is_file():
        return None
    last = ""
    for record in read_journal(journal):
        last = str(record.get("run", last))
    if not last or not Path(last).is_dir():
        return None
    here = Path.cwd()
    return Path(last).relative_to(here) if Path(last).is_relative_to(here) else Path(last)


def after_measuring(run: Path) -> list[str | Path]:
    """What to do with a run that was measured: calibrate it, then review what is unknown, else use it."""
    words = after_training(run)
    return after_filling(run, None, {}) if words[:1] == ["complete"] else words


def after_comparing(found: Comparison) -> list[str | Path]:
    """Go on with the best run; where no difference can be seen, with that of the most known training labels.

    Of equally many, the newest: its table has the latest answers.
    """
    if found.clear:
        return [] if found.best.run is None else after_measuring(found.best.run)
    runs = [entry.run for entry in found.entries if entry.run is not None]
    return after_measuring(max(runs, key=_known_and_new)) if runs else []


def _known_and_new(run: Path) -> tuple[int, float]:
    from sarb.runs.folder import CONFIG, RunFolder

    labels = RunFolder(run).train
    config = run / CONFIG
    return (
        0 if labels is None else int(labels.known.sum()),
        config.stat().st_mtime if config.exists() else 0.0,
    )


def after_audit(
    run: Path, source: str | None, options: Mapping[str, Any], findings: int
) -> list[str] | list[str | Path]:
    """Train again on the corrected table; if nothing was found, go on with the run."""
    from sarb.runs.again import train_again
    from sarb.runs.folder import RunFolder

    if not findings:
        return after_measuring(run)
    if source is None:
        record = RunFolder(run).data_record
        source, options = str(record["source"]), {**record["options"], **options}
    return train_again(run, source, options)


def after_training(run: Path) -> list[str | Path]:
    """What to do with a run: calibrate it, then fill in what is unknown; without unknown labels, try it."""
    from sarb.runs.folder import RunFolder

    if not run.exists():  # a model of the hub
        return []
    folder = RunFolder(run)
    if folder.train is None or "source" not in folder.data_record:
        return ["serve", run]
    if folder.calibration() is None:
        return ["calibrate", run]
    if not folder.train.known.all():
        return ["complete", run, "--out", unused(Path("filled.csv")), "--min-confidence", "0.9"]
    return ["serve", run]


def after_filling(run: Path, source: str | None, options: Mapping[str, Any]) -> list[str | Path]:
    """Answer what is still unknown; evaluate where labels were only hidden, since nobody has to be asked then."""
    from sarb.runs.folder import RunFolder

    record = RunFolder(run).data_record
    if source is None and record.get("known", 1) < 1:
        return ["evaluate", run]
    if source is None:
        source = str(record["source"])
        options = {**record["options"], **options}
    reviewed = Path(source)
    again = journal_of(reviewed).is_file()  # a review never writes to its own source
    out: list[str | Path] = ["--out", unused(reviewed)] if again else []
    return ["serve", run, *source_words("--labels", source, options), *out]


def unused(path: Path) -> Path:
    """The path, or the first of ``NAME-2``, ``NAME-3`` … that does not exist."""
    number = 2
    free = path
    while free.exists():
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1
    return free
