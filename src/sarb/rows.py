"""ROWS: the rows of the paper's tables and ablations, and of the field after it, by their names there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """Network, method and their options; with a data set, a known share and a seed they define a run."""

    network: str
    method: str
    network_options: dict[str, Any] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)


_FIXED = (0.1, 0.3, 0.5, 0.7, 0.9)
_ONLY_ILRB: dict[str, Any] = {"ilrb": True, "plrb": False}
_ONLY_PLRB: dict[str, Any] = {"ilrb": False, "plrb": True}

#: methods that came after the paper, and baselines; the networks are those of their sources, or the nearest here
FIELD: dict[str, Row] = {
    "AN": Row("pooled", "an"),
    "WAN": Row("pooled", "wan"),
    "AN-LS": Row("pooled", "an_ls"),
    "IU": Row("pooled", "iu"),
    "EPR": Row("pooled", "epr"),
    "ROLE": Row("pooled", "role"),
    "LL-R": Row("pooled", "ll_r"),
    "LL-Ct": Row("pooled", "ll_ct"),
    "LL-Cp": Row("pooled", "ll_cp"),
    "BoostLU": Row("pooled", "ll_r", {"boost": 5.0}),
    "Hill": Row("pooled", "hill"),
    "SPLC": Row("pooled", "splc"),
    "CSL": Row("pooled", "csl"),
    "SST": Row("ssgrl", "sst"),
    "HST": Row("ssgrl", "hst"),
    "DSRB": Row("ssgrl", "dsrb"),
    "SR-ST": Row("pooled", "sr_st", {"peak": 0.5, "cells": 5}),
}

ROWS: dict[str, Row] = {
    "SSGRL": Row("ssgrl", "partial_bce"),
    "GCN-ML": Row("gcn_ml", "partial_bce"),
    "KGGR": Row("kggr", "partial_bce"),
    "partial-BCE": Row("pooled", "partial_bce", {}, {"form": "durand"}),
    "Curriculum labeling": Row(
        "pooled", "curriculum", {"dropout": 0.2}, {"strategy": "uncertainty", "form": "durand"}
    ),
    "IP-Mixup": Row("ssgrl", "ip_mixup"),
    "FM-Mixup": Row("ssgrl", "fm_mixup"),
    "Pooled": Row("pooled", "partial_bce"),  # not in the paper: the simplest baseline, see reproduce
    "Ours": Row("ssgrl", "sarb"),
    "Ours w/ SD": Row("ssgrl", "sarb", {"csrl": "sd"}),
    "Ours w/ SAM": Row("ssgrl", "sarb", {"csrl": "sam"}),
    "Ours ILRB": Row("ssgrl", "sarb", {}, _ONLY_ILRB),
    "Ours PLRB": Row("ssgrl", "sarb", {}, _ONLY_PLRB),
    "Ours ILRB fixed alpha": Row("ssgrl", "sarb", {}, {**_ONLY_ILRB, "learnable": False, "alpha": 0.5}),
    "Ours PLRB fixed beta": Row("ssgrl", "sarb", {}, {**_ONLY_PLRB, "learnable": False, "beta": 0.5}),
    **{
        f"Ours ILRB fixed alpha={x}": Row("ssgrl", "sarb", {}, {**_ONLY_ILRB, "learnable": False, "alpha": x})
        for x in _FIXED
    },
    **{
        f"Ours PLRB fixed beta={x}": Row("ssgrl", "sarb", {}, {**_ONLY_PLRB, "learnable": False, "beta": x})
        for x in _FIXED
    },
    **FIELD,
}
