"""What the JSON files of a run must look like: one table per file, field by field.

Fields that are not in a table may hold anything. Files of older versions lack some fields, so few are needed.
"""

from __future__ import annotations

from sarb.runs.checks import (
    Check,
    WrongValueError,
    any_of,
    anything,
    choice,
    flag,
    names,
    nothing,
    number,
    rows,
    table,
    text,
    whole,
)
from sarb.settings import LARGEST_SIDE

#: most categories, images and bytes of a file that are believed
MOST_CATEGORIES = 200_000
MOST_IMAGES = 1_000_000_000
MOST_BYTES = 256 << 20
SHA256 = r"[0-9a-f]{64}"

NAME = text(200, r"\S.*")
LINE = any_of("text or null", text(), nothing)
COUNT = whole(0, 1 << 53)
SHARE = number(0, 1)
METRIC = any_of("a number or null", number(), nothing)
FIGURE = number(finite=False)
CELL = any_of("a number, text, true, false or null", METRIC, text(), flag)


def _none(what: str) -> Check:
    def check(value: object, where: str) -> None:
        raise WrongValueError(where, f"left out: {what}", value)

    return check


OPTIONS = table({})

#: config.json of a model folder
MODEL_CONFIG = table(
    {
        "format": whole(1, 1_000_000),
        "network": NAME,
        "backbone": NAME,
        "network_options": OPTIONS,
        "backbone_options": table({"weights": _none("the weights are beside this file")}),
        "image_size": whole(1, LARGEST_SIDE),
        "categories": names(MOST_CATEGORIES),
    },
    needed=("format", "network", "backbone", "image_size", "categories"),
)

#: config.json of a run folder
RUN_CONFIG = table(
    {
        "settings": table(
            {
                "recipe": _none("the settings are complete"),
                **dict.fromkeys(("method_options", "network_options", "backbone_options"), OPTIONS),
                "lr_scale": table({}, rest=number()),
            }
        ),
        "data": table(
            {
                "name": text(),
                "root": text(),
                "images": whole(0, MOST_IMAGES),
                "known_share": SHARE,
                "labels": text(100),
                "valid_images": whole(0, MOST_IMAGES),
                "source": LINE,
                "options": table({}, rest=CELL),
                "notes": table({}),
                "known": SHARE,
                "mask_seed": whole(-(1 << 63), 1 << 63),
                "command": any_of("text, or a list of texts", LINE, rows(text(), 10_000)),
            }
        ),
        "categories": names(MOST_CATEGORIES),
        "versions": table({}, rest=LINE),
        "threads": whole(0, 1_000_000),
        "device": text(100),
        "words": LINE,
        "cached": flag,
        "out_of_fold": whole(0, 10_000),
    }
)

_LEVEL_COUNTS = table({}, rest=COUNT)
_CURVE = rows(rows(number(), 1_000_000), 2, 2)

#: thresholds.json
CALIBRATION = table(
    {
        "format": whole(1, 1_000_000),
        "method": choice("platt", "temperature", "isotonic"),
        "kind": choice("held-out", "validation", "out-of-fold"),
        "source": text(10_000),
        "levels": whole(1, 1_000),
        "weights": text(64, rf"({SHA256})?"),
        "parts": whole(0, 10_000),
        **dict.fromkeys(("calibration_error", "brier_score", "OF1"), table({}, rest=FIGURE)),
        "extreme": rows(text(10_000), MOST_CATEGORIES),
        "reliability": table({}, rest=rows(rows(FIGURE, 3, 3), 10_000)),
        **dict.fromkeys(("shared", "spread"), rows(FIGURE, 100)),
        "categories": rows(
            table(
                {
                    "category": text(10_000, r"(?s).+"),
                    "threshold": SHARE,
                    "slope": number(),
                    "offset": number(),
                    "positives": COUNT,
                    "negatives": COUNT,
                    "present_at": _LEVEL_COUNTS,
                    "absent_at": _LEVEL_COUNTS,
                    "knots": _CURVE,
                },
                needed=("category", "threshold", "slope", "offset", "present_at", "absent_at"),
            ),
            MOST_CATEGORIES,
        ),
    },
    needed=("format", "method", "source", "levels", "categories"),
)

_MEASURED = any_of("a number, text or null", METRIC, text())

#: metrics.json
METRICS = table(
    {
        "per_category": rows(
            table({"category": text(10_000)}, needed=("category",), rest=_MEASURED), MOST_CATEGORIES
        ),
        "calibrated": table({}, rest=_MEASURED),
        "best": table({}, rest=_MEASURED),
        "skipped": table({}, rest=COUNT),
        **dict.fromkeys(("name", "source", "split", "reading"), LINE),
        **dict.fromkeys(
            (
                "mAP",
                "mAP_low",
                "mAP_high",
                "mAP_interpolated",
                "OP",
                "OR",
                "OF1",
                "CP",
                "CR",
                "CF1",
                "images",
            ),
            METRIC,
        ),
    }
)

#: cell.json
GRID_CELL = table({"data": text(100)}, needed=("data",), rest=CELL)

#: what a checkpoint remembers besides its tensors; NaN and infinity are undefined measurements
CHECKPOINT = table(
    {
        "epoch": whole(0, 10_000_000),
        "best": FIGURE,
        "best_epoch": whole(-1, 10_000_000),
        "log": rows(table({}, rest=any_of("a number, text, true, false or null", FIGURE, CELL)), 10_000_000),
        "steps": rows(any_of("a number or null", FIGURE, nothing), 1_000_000_000),
        "skipped": rows(table({}, rest=text()), MOST_IMAGES),
        "step": whole(0, 1_000_000_000),
        "sums": table({}, rest=FIGURE),
        "seconds": FIGURE,
        "lr": FIGURE,
        "attributes": table({}),
        "scaler": table(
            {
                "scale": number(1e-30, 1e30),
                "growth_factor": number(1, 1e6),
                "backoff_factor": number(1e-6, 1),
                "growth_interval": whole(1, 1_000_000_000),
                "_growth_tracker": whole(0, 1_000_000_000),
            }
        ),
        "shared": table({}, rest=text()),
        "optimizer_scalars": table({}, rest=any_of("a number, true, false or null", FIGURE, flag, nothing)),
    },
    needed=("epoch", "optimizer_scalars"),
)


def _row_and_reason(value: object, where: str) -> None:
    rows(anything, 2, 2)(value, where)
    assert isinstance(value, list)
    whole(0, MOST_IMAGES)(value[0], f"{where}[0]")
    text()(value[1], f"{where}[1]")


#: the record beside a file of the feature cache
FEATURES = table(
    {
        "crc32": whole(0, (1 << 32) - 1),
        "unreadable": rows(_row_and_reason, MOST_IMAGES),
        "engine": text(1_000),
    },
    needed=("crc32", "unreadable"),
)

#: manifest.json: the states of each file that are accepted; null is a file that is not there
MANIFEST = table(
    {"format": whole(1, 1_000_000)},
    needed=("format",),
    rest=rows(
        any_of(
            "a checksum or null",
            nothing,
            table(
                {"sha256": text(64, SHA256), "size": whole(0, 1 << 60)}, ("sha256", "size"), _none("unknown")
            ),
        ),
        1_000,
    ),
)
