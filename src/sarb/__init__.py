"""sarb: multi-label image recognition with partial labels. Learn every label from a few.

>>> import sarb
>>> data = sarb.load("demo")                                    # doctest: +SKIP
>>> model = sarb.fit(data.train.hide(known=0.1, seed=0))        # doctest: +SKIP
>>> print(sarb.evaluate(model, data.test))                      # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sarb.data import DATASETS, Data, Dataset, load
    from sarb.errors import ConfigError, DataError, ImageError, SarbError, StageError
    from sarb.health.findings import Audit, Finding
    from sarb.inference.explanation import Explanation, explain
    from sarb.inference.export import export
    from sarb.inference.prediction import evaluate, predict
    from sarb.labelling.calibration import Calibration, calibrate
    from sarb.labelling.completion import Filled, complete
    from sarb.labelling.suggestion import Suggestions, suggest
    from sarb.labels import LabelMatrix, Targets
    from sarb.model import Model, load_model
    from sarb.registry import BACKBONES, METHODS, NETWORKS
    from sarb.report import Comparison, Report
    from sarb.rows import ROWS
    from sarb.runs.lookup import load_calibration
    from sarb.scores import Scores
    from sarb.sklearn.estimator import SarbClassifier
    from sarb.training.run import fit
    from sarb.workflows.audit import audit
    from sarb.workflows.comparison import compare
    from sarb.workflows.tuning import tune

# Nothing below is imported before it is used, so that `import sarb` and `sarb --help` load no torch.
_HOME = {
    "sarb.labelling.calibration": ("Calibration", "calibrate"),
    "sarb.labelling.completion": ("Filled", "complete"),
    "sarb.data": ("DATASETS", "Data", "Dataset", "load"),
    "sarb.errors": ("ConfigError", "DataError", "ImageError", "SarbError", "StageError"),
    "sarb.sklearn.estimator": ("SarbClassifier",),
    "sarb.inference.explanation": ("Explanation", "explain"),
    "sarb.inference.export": ("export",),
    "sarb.labels": ("LabelMatrix", "Targets"),
    "sarb.model": ("Model", "load_model"),
    "sarb.inference.prediction": ("evaluate", "predict"),
    "sarb.registry": ("BACKBONES", "METHODS", "NETWORKS"),
    "sarb.report": ("Comparison", "Report"),
    "sarb.rows": ("ROWS",),
    "sarb.scores": ("Scores",),
    "sarb.labelling.suggestion": ("Suggestions", "suggest"),
    "sarb.runs.lookup": ("load_calibration",),
    "sarb.training.run": ("fit",),
    "sarb.health.findings": ("Audit", "Finding"),
    "sarb.workflows.audit": ("audit",),
    "sarb.workflows.comparison": ("compare",),
    "sarb.workflows.tuning": ("tune",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "BACKBONES",
    "DATASETS",
    "METHODS",
    "NETWORKS",
    "ROWS",
    "Audit",
    "Calibration",
    "Comparison",
    "ConfigError",
    "Data",
    "DataError",
    "Dataset",
    "Explanation",
    "Filled",
    "Finding",
    "ImageError",
    "LabelMatrix",
    "Model",
    "Report",
    "SarbClassifier",
    "SarbError",
    "Scores",
    "StageError",
    "Suggestions",
    "Targets",
    "__version__",
    "audit",
    "calibrate",
    "compare",
    "complete",
    "evaluate",
    "explain",
    "export",
    "fit",
    "load",
    "load_calibration",
    "load_model",
    "predict",
    "suggest",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'sarb' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
