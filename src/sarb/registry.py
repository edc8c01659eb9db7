"""Names -> import strings. A visible dict maps each name to its class; nothing is imported until it is
used.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from sarb.errors import ConfigError, unknown_name


def find(kind: str, registry: Mapping[str, str], name: str) -> Any:
    """Import what ``registry[name]`` (``"module:attribute"``) points at; a wrong name lists the right
    ones.
    """
    if name not in registry:
        raise ConfigError([unknown_name(kind, name, registry)])
    module, _, attribute = registry[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


NETWORKS: dict[str, str] = {
    "ssgrl": "sarb.networks.ssgrl:SSGRL",
    "pooled": "sarb.networks.pooled:Pooled",
    "gcn_ml": "sarb.networks.gcn_ml:GCNML",
    "kggr": "sarb.networks.kggr:KGGR",
}

METHODS: dict[str, str] = {
    "sarb": "sarb.methods.sarb:SARB",
    "partial_bce": "sarb.methods.partial_bce:PartialBCE",
    "curriculum": "sarb.methods.curriculum:Curriculum",
    "ip_mixup": "sarb.methods.mixup:PixelMixup",
    "fm_mixup": "sarb.methods.mixup:FeatureMapMixup",
    "asl": "sarb.methods.asl:ASL",
}

BACKBONES: dict[str, str] = {
    "efficientnet_lite0": "sarb.networks.backbones.efficientnet:EfficientNetLite0",
    "resnet18": "sarb.networks.backbones.resnet:resnet18",
    "resnet34": "sarb.networks.backbones.resnet:resnet34",
    "resnet50": "sarb.networks.backbones.resnet:resnet50",
    "resnet101": "sarb.networks.backbones.resnet:resnet101",
    "tiny": "sarb.networks.backbones.tiny:Tiny",
}


def summary(target: str) -> str:
    """First sentence of the module's docstring behind an import string, read without importing it."""
    import ast
    from pathlib import Path

    file = Path(__file__).parents[1].joinpath(*target.partition(":")[0].split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0]
