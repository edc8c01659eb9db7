"""Sums over parts, and ``_manifest.json``, which lists every part when all of them are there.

Sums are whole numbers (probabilities in millionths), so they do not depend on the order in which parts arrive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sarb.bulk.parts import SHOWN, Part, file_of
from sarb.bulk.plan import FORMAT, Plan
from sarb.labelling.backing import Backing, caution
from sarb.labelling.calibration import Calibration
from sarb.labelling.completion import Filled, complete
from sarb.labels import UNKNOWN, LabelMatrix
from sarb.scores import Scores

FILE = "_manifest.json"
KINDS = ("present", "absent")
MILLION = 1_000_000


def counted(filled: Filled) -> dict[str, Any]:
    """Counts of one chunk: given, left unknown, and per kind and category the filled labels and their probability."""
    found: dict[str, Any] = {
        "given": int(filled.given.known.sum()),
        "left_unknown": int((filled.labels.values == UNKNOWN).sum()),
    }
    for kind in KINDS:
        chosen = getattr(filled, kind)
        found[kind] = chosen.sum(0).tolist()
        sums = np.where(chosen, filled.confidence, 0).sum(0)
        found[f"{kind}_millionths"] = np.rint(sums * MILLION).astype(np.int64).tolist()
    return found


@dataclass(frozen=True)
class Done:
    """What a finished folder holds.

    Attributes:
        out: the folder.
        images: in the sources.
        rows: in all parts together.
        unreadable: images without a row; ``_errors-*.parquet`` lists them.
        parts: files.
        computed: parts that this call computed; the others were there.
        reasons: the first few unreadable images.
        filled: for completed labels, the counts of ``sarb complete --json``.
        backing: the held-out labels behind the expected precision.
    """

    out: str
    images: int
    rows: int
    unreadable: int
    parts: int
    computed: int
    reasons: tuple[str, ...] = ()
    filled: dict[str, Any] = field(default_factory=dict)
    backing: tuple[Backing, ...] = ()

    @property
    def caution(self) -> str:
        """A sentence that says which expected precision is rough; "" if none is."""
        return caution(self.backing)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {**asdict(self), "backing": [clean(one._asdict()) for one in self.backing]}


class Totals:
    """Adds up parts as they arrive; a part's file and checksum is all that is kept of it."""

    def __init__(self) -> None:
        self.parts: dict[int, dict[str, Any]] = {}
        self.computed = 0
        self.reasons: dict[int, tuple[str, ...]] = {}
        self.filled: dict[str, Any] = {}

    def add(self, part: Part) -> None:
        """Add a part; one that comes twice counts once."""
        if part.number in self.parts:
            return
        kept = ("rows", "images", "unreadable", "sha256", "size")
        self.parts[part.number] = {
            "file": file_of(part.number),
            **{name: getattr(part, name) for name in kept},
        }
        self.computed += part.fresh
        if part.reasons and len(self.reasons) < SHOWN:
            self.reasons[part.number] = part.reasons
        for name, value in part.filled.items():
            before = self.filled.get(name, 0)
            self.filled[name] = (np.asarray(before, np.int64) + np.asarray(value, np.int64)).tolist()

    def sum(self, name: str) -> int:
        """Return the sum of a number over all parts."""
        return sum(part[name] for part in self.parts.values())

    def done(self, out: str, asked: Filled | None) -> Done:
        """Return what there is; ``asked`` is a completion of no image, which knows the held-out labels."""
        reasons = [reason for _, some in sorted(self.reasons.items()) for reason in some][:SHOWN]
        return Done(
            out,
            self.sum("images"),
            self.sum("rows"),
            self.sum("unreadable"),
            len(self.parts),
            self.computed,
            tuple(reasons),
            {} if asked is None else summary(self.filled),
            () if asked is None else backed(self.filled, asked.backing),
        )


def summary(filled: Mapping[str, Any]) -> dict[str, Any]:
    """The counts, with the expected precision of each kind: the mean probability of the filled labels."""
    found: dict[str, Any] = {"given": filled.get("given", 0)}
    for kind in KINDS:
        number = sum(filled.get(kind, []))
        found[f"filled_{kind}"] = number
        millionths = sum(filled.get(f"{kind}_millionths", []))
        found[f"expected_precision_{kind}"] = millionths / MILLION / number if number else None
    return {**found, "left_unknown": filled.get("left_unknown", 0)}


def no_images(calibration: Calibration, options: Mapping[str, Any]) -> Filled:
    """Complete no image: it checks the options and looks up the held-out labels behind each category."""
    names = calibration.categories
    nothing = np.zeros((0, len(names)), np.float32)
    labels = LabelMatrix(nothing.astype(np.int8), names, [])
    return complete(Scores(nothing, names, []), labels, calibration, **options)


def backed(filled: Mapping[str, Any], groups: Sequence[Backing]) -> tuple[Backing, ...]:
    """The held-out labels behind each group, with the counts of all parts."""
    found = []
    for place, group in enumerate(groups):
        column = place % (len(groups) // len(KINDS))
        number = filled[group.kind][column] if filled else 0
        mean = filled[f"{group.kind}_millionths"][column] / MILLION / number if number else float("nan")
        found.append(group._replace(filled=number, expected=mean))
    return tuple(found)


def manifest(plan: Plan, totals: Totals, done: Done) -> str:
    """The manifest as text, one line per part; it is the same for every engine."""
    head = {"format": FORMAT, "identity": plan.identity, **asdict(plan)}
    head |= {name: getattr(done, name) for name in ("rows", "unreadable")}
    if done.filled:
        head |= {"filled": done.filled, "backing": [clean(one._asdict()) for one in done.backing]}
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}," for name, value in head.items()]
    parts = [json.dumps(part) for _, part in sorted(totals.parts.items())]
    return "\n".join(["{", *lines, '"parts": [', ",\n".join(parts), "]", "}", ""])


def clean(row: dict[str, Any]) -> dict[str, Any]:
    """Replace nan, which JSON does not have."""
    return {name: None if value != value else value for name, value in row.items()}
