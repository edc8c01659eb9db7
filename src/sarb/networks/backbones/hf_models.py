"""hf:NAME, a model of the package transformers, from a folder or the Hugging Face hub (extra ``transformers``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sarb.errors import ConfigError, unknown_name
from sarb.networks.backbones.concepts import Concepts, imagenet
from sarb.networks.backbones.extras import package
from sarb.networks.backbones.foreign import Foreign, whole_patches
from sarb.networks.backbones.hf_cut import CUTS, PATCHED, cut
from sarb.networks.backbones.hf_files import ModelFiles
from sarb.networks.backbones.weight_files import one_line, read_weights
from sarb.wordnet.table import wordnet

#: mean and standard deviation of the input where no file says them, as shares of 255; others are ImageNet's
HALF = ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])
INPUTS: Mapping[str, tuple[list[float], list[float]]] = {
    "clip_vision_model": ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
    "siglip_vision_model": HALF,
    "vit": HALF,
}
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
#: entries of a configuration that say nothing about the architecture; code from elsewhere is never run
LEFT_OUT = (
    *("auto_map", "_name_or_path", "name_or_path", "id2label", "label2id", "torch_dtype", "dtype"),
    *("architectures", "transformers_version", "quantization_config"),
)
#: names of concepts that must agree with ImageNet's before a classifier counts as ImageNet's
MOST = 0.95


class HuggingFaceBackbone(Foreign):
    """An image model of transformers, or the image tower of CLIP or SigLIP, cut into stages.

    Args:
        name: a folder, or ``owner/name[@revision]`` on the Hugging Face hub.
        weights: "default" for the weights beside the configuration, a file, or None for random ones.
        architecture: the configuration; None reads it from the files of ``name``.
        mean: of the input per channel, 0 to 255; None takes the model's.
        std: the same.
    """

    def __init__(
        self,
        name: str,
        *,
        weights: str | Path | None = "default",
        architecture: dict[str, Any] | None = None,
        mean: list[float] | None = None,
        std: list[float] | None = None,
    ) -> None:
        super().__init__(f"hf:{name}")
        library = package("transformers", f"backbone '{self.title}'")
        files = ModelFiles(name)
        given = architecture is None
        stored = files.config() if architecture is None else architecture
        self.architecture = image_part(stored, self.title)
        usual = _normalisation(self.architecture, files if given and (mean is None or std is None) else None)
        self.normalise(usual[0] if mean is None else mean, usual[1] if std is None else std)
        model, classifier = _made(library, self.title, self.architecture, stored, files, weights)
        kind = self.architecture["model_type"]
        self.step = _side(model.config.patch_size) if kind in PATCHED else 1
        self.take(cut(model))
        if weights is not None:
            self.offer(_concepts(classifier, stored))

    @staticmethod
    def own_size(name: str, options: Mapping[str, Any]) -> int:
        """The image size that a model was made for."""
        library = package("transformers", f"backbone 'hf:{name}'")  # its absence is the first thing to say
        files = ModelFiles(name)
        stored = options.get("architecture") or files.config()
        part = image_part(stored, f"hf:{name}")
        processor = {} if options.get("architecture") else files.processor()
        crop = processor.get("crop_size") if processor.get("do_center_crop") else None
        sizes: list[int] = []
        for size in (crop, processor.get("size")):
            if isinstance(size, dict):
                size = size.get("height", size.get("shortest_edge"))
            if isinstance(size, int):
                sizes.append(size)
        own = sizes[0] if sizes else _side(part.get("image_size", 224))
        return whole_patches(own, _patch(library, part))

    def described(self) -> dict[str, Any]:
        """The input, and the architecture's configuration."""
        return {**super().described(), "architecture": self.architecture}


def image_part(stored: Mapping[str, Any], title: str) -> dict[str, Any]:
    """The configuration of the image tower, checked: of a type that we can cut, without code from elsewhere."""
    part = stored.get("vision_config", stored)
    if not isinstance(part, Mapping):
        raise ConfigError([f"{title}: vision_config must be a table, got {type(part).__name__}"])
    kind = str(part.get("model_type") or f"{stored.get('model_type')}_vision_model")
    if kind not in CUTS:
        raise ConfigError([f"{title}: {unknown_name('type of model', kind, CUTS)}"])
    return {"model_type": kind, **{key: value for key, value in part.items() if key not in LEFT_OUT}}


def _patch(library: Any, part: Mapping[str, Any]) -> int:
    """Pixels of a patch whose multiples the image sizes must be; 1 for any size."""
    kind = part["model_type"]
    if kind not in PATCHED:
        return 1
    return _side(part.get("patch_size") or library.AutoConfig.for_model(kind).patch_size)


def _side(size: Any) -> int:
    return int(size[0] if isinstance(size, list | tuple) else size)


def _normalisation(
    architecture: Mapping[str, Any], files: ModelFiles | None
) -> tuple[list[float], list[float]]:
    """Mean and standard deviation per channel, 0 to 255, from the files or the usual ones of the type."""
    processor = files.processor() if files is not None else {}
    mean, std = INPUTS.get(architecture["model_type"], IMAGENET)
    mean = processor.get("image_mean") or mean
    std = processor.get("image_std") or std
    if processor.get("do_normalize") is False:
        mean, std = [0.0] * 3, [1.0] * 3
    return [255 * value for value in mean], [255 * value for value in std]


def _made(
    library: Any,
    title: str,
    architecture: Mapping[str, Any],
    stored: Mapping[str, Any],
    files: ModelFiles,
    weights: str | Path | None,
) -> tuple[Any, nn.Module | None]:
    """The model, and the classifier it came with; whatever the package raises is one line."""
    tensors = None
    if weights is not None:
        given = str(weights) != "default"
        tensors = read_weights(Path(weights).expanduser()) if given else files.weights()
    try:
        options = {key: value for key, value in architecture.items() if key != "model_type"}
        config = library.AutoConfig.for_model(architecture["model_type"], **options)
        if tensors is None:
            return library.AutoModel.from_config(config).eval(), None
        return _loaded(library, config, stored, tensors)
    except Exception as error:
        what = "its configuration does not make a model"
        if tensors is not None:
            what = f"{weights if given else 'its weights'}: not the weights of its configuration"
        raise ConfigError([f"{title}: {what}: {one_line(error)}"]) from error


def _loaded(
    library: Any, config: Any, stored: Mapping[str, Any], tensors: Mapping[str, Any]
) -> tuple[Any, nn.Module | None]:
    """The model with these weights; one that was made to classify keeps its classifier."""
    classes = [key for key in tensors if key.startswith("classifier.") and key.endswith(".weight")]
    kind = library.AutoModel
    if classes and config.model_type in library.AutoModelForImageClassification._model_mapping._model_mapping:
        kind = library.AutoModelForImageClassification
        config.num_labels = len(tensors[classes[0]])
    library.utils.logging.disable_progress_bar()
    library.utils.logging.set_verbosity_error()  # it lists what it does not need, such as the text tower
    made, found = kind._model_mapping[type(config)].from_pretrained(
        None, config=config, state_dict=dict(tensors), output_loading_info=True
    )
    missing = [key for key in found["missing_keys"] if "pooler" not in key]
    if missing:
        raise ConfigError([f"{len(missing)} missing ({', '.join(missing[:5])})"])
    if kind is library.AutoModel:
        return made.float().eval(), None
    return made.base_model.float().eval(), made.classifier


def _concepts(classifier: nn.Module | None, stored: Mapping[str, Any]) -> Concepts | None:
    """The classifier, if its labels are ImageNet's thousand in the usual order."""
    linear = [part for part in classifier.modules() if isinstance(part, nn.Linear)] if classifier else []
    labels = stored.get("id2label")
    table = wordnet()
    if len(linear) != 1 or not isinstance(labels, Mapping) or linear[0].out_features != len(table.ids):
        return None
    agree = 0
    for number, id in enumerate(table.ids):
        said = {word.strip().lower() for word in str(labels.get(str(number), "")).split(",")}
        agree += bool(said & {word.lower() for word in table.nodes[id].words})
    if agree < MOST * len(table.ids):
        return None
    bias = linear[0].bias if linear[0].bias is not None else torch.zeros(linear[0].out_features)
    return imagenet(linear[0].weight, bias)
