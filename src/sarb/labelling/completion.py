"""``complete``: fill in unknown labels, as a pure function of (Scores, LabelMatrix). Needs no torch."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sarb.errors import ConfigError, check_share, named
from sarb.handover.cleanlab import BinaryProblem, binary_problems
from sarb.handover.datasets import to_dataset
from sarb.handover.fiftyone import to_samples
from sarb.labelling.backing import Backing, backing, caution
from sarb.labelling.calibration import Calibration, check_fit
from sarb.labelling.conflicts import Conflict, find_conflicts
from sarb.labelling.formats import long_csv, save_filled
from sarb.labelling.thresholds import HALF, expected_for_precision, for_precision
from sarb.labels import ABSENT, PRESENT, UNKNOWN, LabelMatrix
from sarb.scores import Scores

Floats = NDArray[np.float64]

#: a given label is strongly contradicted when the belief in it is below this share of the average
STRONG = 0.1


@dataclass(frozen=True, eq=False)
class Filled:
    """Labels with their gaps filled.

    Attributes:
        labels: (N, C); given labels unchanged, unknown ones filled in as present or absent.
        given: (N, C) the labels before.
        confidence: (N, C) calibrated probability of a filled label, 1 for a given one, and for one left
            unknown the probability of the more likely answer.
        conflicts: given labels that the scores contradict, the most doubtful first.
        scores: the scores it was made from.
        calibrated: (N, C) probabilities.
        thresholds: (C,) lowest probability at which a label was filled as present; ``inf``: never.
        backing: per category and kind, the held-out labels behind the expected precision; empty without any.
    """

    labels: LabelMatrix
    given: LabelMatrix
    confidence: Floats
    conflicts: list[Conflict]
    scores: Scores
    calibrated: Floats
    thresholds: Floats
    backing: tuple[Backing, ...] = ()

    @property
    def caution(self) -> str:
        """A sentence that says which expected precision is rough; "" if none is."""
        return caution(self.backing)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(N, C) entries filled as present."""
        return np.asarray((self.labels.values == PRESENT) & ~self.given.known)

    @property
    def absent(self) -> NDArray[np.bool_]:
        """(N, C) entries filled as absent."""
        return np.asarray((self.labels.values == ABSENT) & ~self.given.known)

    def summary(self) -> dict[str, float]:
        """Counts of labels, and the expected precision of the filled ones: their mean probability."""
        precision = {
            kind: float(self.confidence[chosen].mean()) if chosen.any() else float("nan")
            for kind, chosen in (("present", self.present), ("absent", self.absent))
        }
        return {
            "given": int(self.given.known.sum()),
            "filled_present": int(self.present.sum()),
            "expected_precision_present": precision["present"],
            "filled_absent": int(self.absent.sum()),
            "expected_precision_absent": precision["absent"],
            "left_unknown": int((self.labels.values == UNKNOWN).sum()),
            "conflicts": len(self.conflicts),
            "strong_conflicts": sum(conflict.belief < STRONG for conflict in self.conflicts),
        }

    def __str__(self) -> str:
        found = self.summary()
        parts = [f"{found['given']:,} labels given and kept"]
        for kind in ("present", "absent"):
            count = int(found[f"filled_{kind}"])
            precision = found[f"expected_precision_{kind}"]
            parts.append(
                f"{count:,} filled as {kind}" + (f" (expected precision {precision:.3f})" if count else "")
            )
        parts.append(f"{int(found['left_unknown']):,} left unknown")
        doubtful = len(self.conflicts)
        strong = int(found["strong_conflicts"])
        mild = f", another {doubtful - strong:,} only slightly" if doubtful > strong else ""
        return (
            ", ".join(parts)
            + f"; {strong:,} given {'label looks' if strong == 1 else 'labels look'} doubtful{mild}"
        )

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return CSV text with one row per image and category, and write it to ``path`` if given."""
        return long_csv(self, path)

    def to_cleanlab(self) -> dict[str, BinaryProblem]:
        """Return category -> a binary problem for cleanlab: the given labels and the calibrated probabilities.

        Filled labels are left out: the model would agree with itself.
        """
        return binary_problems(self.given.values, self.calibrated, self.labels.categories)

    def to_datasets(self, root: str | Path | None = None) -> Any:
        """Return a Hugging Face ``datasets.Dataset``.

        Columns: ``file_name``, ``present`` and ``absent`` (given labels), ``filled_present`` and
        ``filled_absent`` (machine labels), and ``confidence`` per category, by name. A category that is in none
        of the lists is unknown. With ``root``, the folder of the images, there is a column ``image`` as well.
        """
        return to_dataset(
            self.labels.paths,
            self.labels.categories,
            lists=self._lists(),
            numbers={"confidence": self.confidence},
            root=root,
        )

    def to_fiftyone(self, root: str | Path | None = None) -> list[Any]:
        """Return a ``fiftyone.Sample`` per image, with the lists of :meth:`to_datasets` as fields."""
        return to_samples(self.labels.paths, self.labels.categories, self._lists(), self.confidence, root)

    def _lists(self) -> dict[str, NDArray[np.bool_]]:
        return {
            "present": self.given.values == PRESENT,
            "absent": self.given.values == ABSENT,
            "filled_present": self.present,
            "filled_absent": self.absent,
        }

    def save(self, path: str | Path, to: str = "long") -> Path:
        """Write a file: ``long``, ``open_images`` or ``label_studio``, see :mod:`sarb.labelling.formats`."""
        return save_filled(self, path, to)


def complete(
    scores: Scores,
    labels: LabelMatrix,
    calibration: Calibration | None = None,
    min_confidence: float | None = None,
    min_precision: float | None = None,
    *,
    out_of_fold: Scores | None = None,
    each: bool = False,
) -> Filled:
    """Fill in unknown labels; a known label is never changed.

    By default every gap is filled: present at or above the category's threshold, absent below it.

    Args:
        scores: of the same images and categories as ``labels``.
        labels: in {-1, 0, +1}.
        calibration: from :func:`sarb.calibrate` or :func:`sarb.load_calibration`. Without one, the
            network's own probabilities are used, with threshold 0.5.
        min_confidence: fill a label only if it is at least this probable: present where p ≥ x, absent where
            1 − p ≥ x.
        min_precision: fill as present so that at least this share of each category's filled labels is right,
            as counted on held-out labels and as their mean probability says. An entry is filled as absent
            where its own 1 − p reaches this share: as a group, absent labels nearly always do.
        out_of_fold: scores of the same images by models that have not seen the labels they score. They
            are used to find conflicts, because a model believes the labels it was trained on.
        each: with ``min_precision``, fill as present only where the probability itself reaches the share, not the
            mean of all. So no label depends on the other images, and a data set may be filled in parts.
    """
    check_fit(scores, labels)
    if min_confidence is not None and min_precision is not None:
        raise ConfigError([f"choose one of {named('min_confidence')} and {named('min_precision')}"])
    calibration = calibration or Calibration.identity(scores.categories)
    calibrated = calibration(scores)
    usual = calibration.ordered(scores.categories).thresholds
    # present from ``upper`` on, absent below ``lower``
    upper = usual
    lower = usual
    if min_confidence is not None:
        check_share("min_confidence", min_confidence)
        upper = np.full_like(usual, max(min_confidence, HALF))
        lower = 1 - upper
    elif min_precision is not None:
        upper = _precise(calibrated, labels, calibration, min_precision, each)
        lower = np.minimum(upper, 1 - min_precision)
    values = labels.values.copy()
    values[(calibrated >= upper) & ~labels.known] = PRESENT
    # if both hold (p = 0.5 at confidence 0.5), present wins
    sure = (calibrated <= lower) if lower is not usual else (calibrated < lower)
    values[sure & (calibrated < upper) & ~labels.known] = ABSENT
    confidence = np.maximum(calibrated, 1 - calibrated)
    filled = ~labels.known & (values != UNKNOWN)
    confidence[filled] = np.where(values == PRESENT, calibrated, 1 - calibrated)[filled]
    confidence[labels.known] = 1
    judged = calibrated
    if out_of_fold is not None:
        check_fit(out_of_fold, labels)
        judged = calibration(out_of_fold)
    return Filled(
        LabelMatrix(values, labels.categories, labels.paths),
        labels,
        confidence,
        find_conflicts(judged, labels, usual),
        scores,
        calibrated,
        upper,
        _backing(values, labels, confidence, calibration, upper, lower),
    )


def _backing(
    values: NDArray[np.int8],
    labels: LabelMatrix,
    confidence: Floats,
    calibration: Calibration,
    upper: Floats,
    lower: Floats,
) -> tuple[Backing, ...]:
    """What held-out labels say about each filled group; nothing if the calibration has none."""
    counts = calibration.ordered(labels.categories).counts
    if not counts.sum():
        return ()
    groups = []
    for kind, code in (("present", PRESENT), ("absent", ABSENT)):
        chosen = ~labels.known & (values == code)
        for column, name in enumerate(labels.categories):
            own = confidence[chosen[:, column], column]
            groups.append((name, kind, len(own), float(own.mean()) if len(own) else float("nan")))
    return backing(counts, upper, lower, groups)


def _precise(
    calibrated: Floats, labels: LabelMatrix, calibration: Calibration, target: float, each: bool
) -> Floats:
    """Thresholds (C,) for a precision, which held-out labels and the mean probability of the filled both reach.

    Without held-out labels only the probabilities count. ``each``: every probability reaches it, so their mean does.
    """
    unknown = np.where(labels.known, np.nan, calibrated)
    if calibration.counts.sum():
        counted = for_precision(calibration.ordered(labels.categories).counts, target)
        return np.maximum(counted, target if each else expected_for_precision(unknown, target))
    check_share("min_precision", target)
    warnings.warn(
        "there are no held-out labels to measure precision on, so the network's own probabilities are used "
        "as they are; run 'sarb calibrate RUN' first",
        stacklevel=3,
    )
    return expected_for_precision(unknown, target)
