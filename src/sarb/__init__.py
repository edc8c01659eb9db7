"""sarb: multi-label image recognition with partial labels. Learn every label from a few.

>>> import sarb
>>> data = sarb.load("demo")                                    # doctest: +SKIP
>>> model = sarb.fit(data.train.hide(known=0.1, seed=0))        # doctest: +SKIP
>>> print(sarb.evaluate(model, data.test))                      # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sarb.data import DATASETS, Data, Dataset, load
    from sarb.errors import ConfigError, DataError, ImageError, SarbError, StageError
    from sarb.labels import LabelMatrix, Targets
    from sarb.model import Model, load_model
    from sarb.predict import evaluate, predict
    from sarb.registry import BACKBONES, METHODS, NETWORKS
    from sarb.report import Report
    from sarb.rows import ROWS
    from sarb.scores import Scores
    from sarb.train import fit

# Nothing below is imported before it is used, so that `import sarb` and `sarb --help` load no torch.
_HOME = {
    "sarb.data": ("DATASETS", "Data", "Dataset", "load"),
    "sarb.errors": ("ConfigError", "DataError", "ImageError", "SarbError", "StageError"),
    "sarb.labels": ("LabelMatrix", "Targets"),
    "sarb.model": ("Model", "load_model"),
    "sarb.predict": ("evaluate", "predict"),
    "sarb.registry": ("BACKBONES", "METHODS", "NETWORKS"),
    "sarb.report": ("Report",),
    "sarb.rows": ("ROWS",),
    "sarb.scores": ("Scores",),
    "sarb.train": ("fit",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "BACKBONES",
    "DATASETS",
    "METHODS",
    "NETWORKS",
    "ROWS",
    "ConfigError",
    "Data",
    "DataError",
    "Dataset",
    "ImageError",
    "LabelMatrix",
    "Model",
    "Report",
    "SarbError",
    "Scores",
    "StageError",
    "Targets",
    "__version__",
    "evaluate",
    "fit",
    "load",
    "load_model",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'sarb' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Importing the file ``sarb/predict.py`` must not replace the verb ``sarb.predict`` by a module."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
