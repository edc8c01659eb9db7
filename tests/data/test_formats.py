"""Every format: the exact label matrix, damaged files, required options, and files left unchanged.

``pytest -s tests/data/test_formats.py`` prints how many damaged files were loaded and refused.
"""

from __future__ import annotations

import hashlib
import random
import re
import signal
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import sarb
from sarb.data.check.problems import DataWarning, Finding, gather
from sarb.data.loading import find
from sarb.errors import DataError, DataNote, SarbError
from tests.data.formats import FORMATS, Example, write_example
from tests.data.mutations import KINDS, Mutation, mutations

#: damaged files of each format (every kind of damage once or twice)
COUNT = 60
#: time to load one
SECONDS = 20
#: format -> what became of its damaged files, for the table at the end
COUNTS: dict[str, Counter[str]] = {}


@pytest.fixture(params=FORMATS)
def name(request):
    return request.param


@pytest.fixture
def example(name, tmp_path):
    return write_example(name, tmp_path)


def test_exact_matrix(example):
    data = load(example)
    assert data.categories == tuple(example.categories)
    assert {split: list(dataset.labels.paths) for split, dataset in data.splits.items()} == {
        split: list(rows) for split, rows in example.splits.items()
    }
    assert labels(data) == example.splits
    assert all(path.is_file() for dataset in data.splits.values() for path in dataset.paths)


def test_damaged_files_load_or_are_refused_with_their_name(name, example):
    counts = COUNTS[name] = Counter()
    reader, place = find(example.source)
    example.source = f"{reader}:{place}"  # a file damaged beyond recognition is still meant to be this
    for damaged, change in damages(example, seed=FORMATS.index(name)):
        content = damaged.read_bytes()
        change.apply(damaged)
        try:
            outcome = attempt(example, damaged, change)
        except BaseException as error:
            error.add_note(f"{name}: {damaged.name} with {change.kind}")
            raise
        finally:
            change.undo(damaged, content)
        counts.update(outcome)
    print(f"\n{name}: {dict(counts)}")
    assert counts["damaged"] == COUNT
    assert load(example).categories == tuple(example.categories)


def test_what_must_be_said(example):
    for option, words in example.ambiguous.items():
        with pytest.raises(DataError) as error:
            load(example, without=option)
        for word in words:
            assert word in str(error.value)
        readings = re.findall(rf"^ *-o '?{option}=.*", str(error.value), re.MULTILINE)
        assert all(re.search(r": .*\d", line) for line in readings), "a reading without a count"
        found, late, _ = gathered(example, without=option)
        assert [finding for finding in [*found.of("error"), *late] if words[0] in str(finding)]


def test_files_stay_as_they_are(example, tmp_path):
    before = fingerprint(tmp_path)
    load(example)
    with gather():
        load(example)
    for option in example.ambiguous:
        with pytest.raises(DataError):
            load(example, without=option)
    assert fingerprint(tmp_path) == before


def test_counts_of_damaged_files():
    import tests.data.mutation_kinds  # noqa: F401 - adds its kinds

    columns = ("damaged", "loaded", "refused", "with a line", "gathered")
    print("\n" + "".join(f"{title:>16}" for title in ("format", *columns)))
    for format_name, counts in COUNTS.items():
        print(f"{format_name:>16}" + "".join(f"{counts[column]:>16}" for column in columns))
    assert len(KINDS) >= 30 and all(
        counts["loaded"] + counts["refused"] == COUNT for counts in COUNTS.values()
    )


def damages(example: Example, seed: int):
    """Yield (file, damage), spread over the label files."""
    made = Counter(random.Random(seed).choices(example.files, k=COUNT))
    for number, file in enumerate(example.files):
        for change in mutations(file.read_bytes(), file.suffix, 100 * seed + number, made[file]):
            yield file, change


def attempt(example: Example, damaged: Path, change: Mutation) -> list[str]:
    """Load strictly and gathering; return what happened, for the counts."""
    outcome = ["damaged"]
    refused = None
    data = None
    with limits(), suppress(SarbError):
        find(example.source.partition(":")[2])
    with limits():
        try:
            data = load(example)
        except SarbError as error:
            refused = error
    if refused is None:
        check_consistent(data)
        outcome.append("loaded")
        assert not change.harmless or labels(data) == example.splits, f"{change.kind} changed the labels"
    else:
        outcome.append("refused")
        outcome += ["with a line"] * check_message(refused, example, damaged, change)
    with limits():
        found, late, data = gathered(example)
    if data is not None:
        check_consistent(data)
        outcome.append("gathered")
    if refused is not None:
        assert found.count("error") + len(late), f"gathering found nothing, loading said: {refused}"
        missed = keys(getattr(refused, "findings", [])) - keys([*found.shown, *late])
        assert not missed or late, f"gathering missed {missed}"
    return outcome


def gathered(example: Example, without: str = ""):
    """Load like ``sarb data check``; return the findings, the fatal ones, and the data if there are none."""
    with gather() as found:
        try:
            return found, [], load(example, without)
        except SarbError as error:
            return found, getattr(error, "findings", []) or [Finding("error", "data", str(error))], None


def check_message(error: SarbError, example: Example, damaged: Path, change: Mutation) -> bool:
    """Check that an error names the file, and the line if there is one; return whether it names a line."""
    message = str(error)
    findings = getattr(error, "findings", [])
    # damage in one file may show up in another, which is then named; but not bad bytes
    names = [damaged.name] if change.kind == "latin 1 byte" else [file.name for file in example.files]
    assert any(part in message for part in (*names, str(damaged.parent))), message
    lines = {finding.line for finding in findings if finding.line is not None}
    lines |= {int(number) for number in re.findall(r"\blines? (\d+)", message)}
    # a changed name may be a valid name of a missing file, and a changed code may be valid in another
    # encoding: then no single line is wrong
    if any(finding.kind == "missing-file" or finding.kind.startswith("undeclared") for finding in findings):
        return bool(lines)
    here = not findings or any(finding.file == str(damaged) for finding in findings)
    assert change.line is None or not here or change.line in lines, (
        f"line {change.line} is not named: {message}"
    )
    assert not change.located or lines, f"no line: {message}"
    return bool(lines)


def check_consistent(data) -> None:
    names = data.categories
    assert len(set(names)) == len(names) and all(isinstance(name, str) for name in names)
    for dataset in (data.train, data.test, *([data.valid] if data.valid is not None else [])):
        assert dataset.categories == names
        assert (
            dataset.labels.values.shape
            == (len(dataset.labels.paths), len(names))
            == (len(dataset), len(names))
        )
        assert np.isin(dataset.labels.values, (-1, 0, 1)).all()
        assert len(set(dataset.labels.paths)) == len(dataset)
        assert dataset.lines is None or len(dataset.lines) == len(dataset)


def keys(findings) -> set[tuple]:
    """What was found where; missing files are told apart one by one only while gathering."""
    return {(finding.kind, finding.line) for finding in findings if finding.kind != "missing-file"}


def labels(data) -> dict[str, dict[str, list[int]]]:
    return {
        split: dict(zip(dataset.labels.paths, dataset.labels.values.tolist(), strict=True))
        for split, dataset in data.splits.items()
    }


def load(example: Example, without: str = ""):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning of ours is a DataWarning, any other is a fault
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", DataNote)
        return sarb.load(
            example.source, **{key: value for key, value in example.options.items() if key != without}
        )


class TooLong(BaseException):
    """A load that hangs."""


@contextmanager
def limits():
    def stop(*_):
        raise TooLong(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fingerprint(folder: Path) -> str:
    """Hash of all names, contents and times."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.stat()
        digest.update(f"{path}\0{status.st_mtime_ns}\0{status.st_size}\0{status.st_mode}".encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
