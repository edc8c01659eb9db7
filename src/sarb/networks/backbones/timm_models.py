"""timm:NAME, any model of the package timm, with its own weights, input size and normalisation (extra ``timm``)."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError, part_option, unknown_name
from sarb.networks.backbones.concepts import Concepts, imagenet
from sarb.networks.backbones.extras import package
from sarb.networks.backbones.foreign import Foreign, whole_patches
from sarb.networks.backbones.hub_files import hub_file, weight_names
from sarb.networks.backbones.timm_cut import cut
from sarb.networks.backbones.weight_files import one_line, read_weights
from sarb.wordnet.table import wordnet

#: arguments that let a model take other image sizes; the first that it knows is used
FLEXIBLE: tuple[dict[str, Any], ...] = ({"dynamic_img_size": True}, {"strict_img_size": False}, {})


class TimmBackbone(Foreign):
    """A model of timm, cut into stages.

    Args:
        name: one of ``timm.list_models()``, with or without the tag of its weights: ``resnet50.a1_in1k``.
        weights: "default" for its pretrained weights, a file, or None for random ones.
        arguments: further arguments of ``timm.create_model``, such as ``drop_path_rate``.
        mean: of the input per channel, 0 to 255; None takes the model's.
        std: the same.
    """

    def __init__(
        self,
        name: str,
        *,
        weights: str | Path | None = "default",
        arguments: dict[str, Any] | None = None,
        mean: list[float] | None = None,
        std: list[float] | None = None,
    ) -> None:
        super().__init__(f"timm:{name}")
        config = _config(name)
        self.normalise(
            [255 * value for value in config.mean] if mean is None else mean,
            [255 * value for value in config.std] if std is None else std,
        )
        model = _made(name, config, weights, arguments or {}).eval()
        self._sizes(model, self.own_size(name, {"arguments": arguments}))
        self.take(cut(model, self.sample()))
        if weights is not None:
            self.offer(_classifier(model))

    @staticmethod
    def own_size(name: str, options: Mapping[str, Any]) -> int:
        """The image size that a model was made for."""
        given = (options.get("arguments") or {}).get("img_size")
        if given:
            return int(given[-1] if isinstance(given, list | tuple) else given)
        patch = re.search(r"_patch(\d+)", name)
        return whole_patches(int(_config(name).input_size[-1]), int(patch[1]) if patch else 1)

    def _sizes(self, model: nn.Module, own: int) -> None:
        """Which image sizes fit."""
        stem: Any = getattr(model, "patch_embed", None)
        patches = hasattr(stem, "grid_size")  # a grid without overlap; others pad
        self.step = int(stem.patch_size[0]) if patches else 1
        like = next(model.parameters())
        try:
            with torch.no_grad():
                model.forward_features(torch.zeros(1, 3, self.small, self.small).to(like))  # type: ignore[operator]
        except Exception:  # a model may refuse in any way; then it gets the size it was made for
            self.only_size = own


def timm(name: str) -> Any:
    """The package, or a line that says how to get it."""
    return package("timm", f"backbone 'timm:{name}'")


def _config(name: str) -> Any:
    """What timm knows about the pretrained weights of a name."""
    library = timm(name)
    known = library.list_models()
    base, _, tag = name.partition(".")
    if base not in known:
        near = unknown_name("model of timm:", base, known).partition(" Available:")[0]
        raise ConfigError([f"{near} timm.list_models() lists all {len(known):,}"])
    tags = [each.partition(".")[2] for each in library.list_pretrained(f"{base}.*")]
    if tag and tag not in tags:
        raise ConfigError([unknown_name(f"weights of timm:{base}:", tag, tags)])
    return library.get_pretrained_cfg(name)


def _made(name: str, config: Any, weights: str | Path | None, arguments: dict[str, Any]) -> nn.Module:
    """The model with its weights; a wrong argument or file is one line."""
    options = dict(arguments)
    if weights is not None:
        state = read_weights(_file(name, config, weights))
        rows = state.get(f"{config.classifier}.weight") if isinstance(config.classifier, str) else None
        classes = config.num_classes if rows is None and weights == "default" else _rows(rows)
        overlay = {"state_dict": state, "num_classes": classes}
        options |= {"pretrained": True, "pretrained_cfg_overlay": overlay, "num_classes": classes}
    wrong: Exception | None = None
    for flexible in FLEXIBLE:
        try:
            made: nn.Module = timm(name).create_model(name, **flexible, **options)
            return made
        except TypeError as error:
            wrong = error
        except Exception as error:
            what = f"{weights}: not the weights of" if weights else "backbone.arguments do not fit"
            raise ConfigError([f"{what} timm:{name}: {one_line(error)}"]) from error
    raise ConfigError([f"backbone.arguments do not fit timm:{name}: {one_line(wrong)}"]) from wrong


def _rows(weight: Tensor | None) -> int:
    """Classes of a stored classifier; 0 without one."""
    return 0 if weight is None else len(weight)


def _file(name: str, config: Any, weights: str | Path) -> Path:
    """The given weight file, or the one of the name, from the hub's cache or the hub."""
    if str(weights) != "default":
        return Path(weights).expanduser()
    instead = (
        f"give a file with {part_option('backbone', 'weights', 'PATH')}, or start from random weights with "
        f"{part_option('backbone', 'weights', None)}"
    )
    found = None
    if config.hf_hub_id:
        files = [config.hf_hub_filename] if config.hf_hub_filename else weight_names()
        found = hub_file(config.hf_hub_id, files, instead=instead)
    if found is None:
        where = f" (they are at {config.url})" if config.url else ""
        raise ConfigError(
            [f"timm:{name} has no pretrained weights on the Hugging Face hub{where}: {instead}"]
        )
    return found


def _classifier(model: nn.Module) -> Concepts | None:
    """Its classifier, if that tells ImageNet's thousand classes apart in the usual order."""
    classifier = model.get_classifier()  # type: ignore[operator]
    if not isinstance(classifier, nn.Linear) or classifier.out_features != len(wordnet().ids):
        return None
    data: Any = importlib.import_module("timm.data")
    subset = data.infer_imagenet_subset(model)
    if subset is None or tuple(data.ImageNetInfo(subset).label_names()) != wordnet().ids:
        return None
    bias = classifier.bias if classifier.bias is not None else torch.zeros(classifier.out_features)
    return imagenet(classifier.weight, bias)
