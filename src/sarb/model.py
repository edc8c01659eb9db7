"""Model: a network with everything needed to use it, and its folder on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

import sarb
from sarb.data.images import EvalTransform
from sarb.data.words import word_vectors
from sarb.errors import ConfigError, SarbError
from sarb.files import read_json, write_json
from sarb.inference.hub import push_to_hub, save_pretrained
from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import create_backbone
from sarb.networks.base import Network
from sarb.progress import Progress
from sarb.registry import NETWORKS, find
from sarb.runs.folder import ModelFolder
from sarb.runs.lookup import find_model
from sarb.settings import Settings, option_types

if TYPE_CHECKING:
    from sarb.scores import Scores

FORMAT = 1


class Model:
    """A trained (or fresh) network, its categories and its input.

    Args:
        network: the network.
        categories: C names, in the order of the logits.
        config: network, backbone and their options, image size: what :func:`build_network` needs to make it
            again.
    """

    def __init__(self, network: Network, categories: Sequence[str], config: Mapping[str, Any]) -> None:
        self.network = network
        self.categories = tuple(categories)
        self.config = dict(config)
        self.folder: Path | None = None  # where it is on disk, with its card and thresholds

    def __repr__(self) -> str:
        return (
            f"Model({self.config['network']} on {self.config['backbone']}, {len(self.categories)} categories, "
            f"{self.config['image_size']} px)"
        )

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device

    @property
    def transform(self) -> EvalTransform:
        """Image -> input array, as in evaluation."""
        backbone = self.network.backbone
        return EvalTransform(self.config["image_size"], backbone.mean, backbone.std)

    def calibration(self) -> Calibration:
        """How to read its logits: the calibration in its folder, or one that changes nothing."""
        stored = None if self.folder is None else ModelFolder(self.folder).calibration()
        return stored or Calibration.identity(self.categories)

    def predict(self, images: Any, **options: Any) -> Scores:
        """See :func:`sarb.predict`."""
        return sarb.predict(self, images, **options)

    def save(self, folder: str | Path, card: str = "") -> Path:
        """Write weights, configuration and model card; the folder appears whole or not at all."""
        folder = Path(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = ModelFolder(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            tensors = {
                key: value.detach().cpu().contiguous() for key, value in self.network.state_dict().items()
            }
            save_file(tensors, partial.weights, metadata={"format": "pt"})
            config = {"format": FORMAT, **self.config, "categories": list(self.categories)}
            write_json(partial.config_file, config)
            partial.card.write_text(card or f"# {self!r}\n", encoding="utf-8")
            _replace_folder(partial.path, folder)
        finally:
            shutil.rmtree(partial.path, ignore_errors=True)
        self.folder = folder
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """Read what :meth:`save` wrote."""
        files = ModelFolder(folder)
        config = read_json(files.config_file)
        categories = config.pop("categories")
        if config.pop("format") > FORMAT:
            raise SarbError(f"{folder}: written by a newer sarb; please upgrade")
        network = build_network(len(categories), **{**config, "weights": None})
        try:
            network.load_state_dict(load_file(files.weights))
        except (RuntimeError, SafetensorError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise SarbError(
                f"{files.weights}: does not fit its {files.config_file.name}: {reason}"
            ) from error
        model = cls(network.eval(), categories, config)
        model.folder = files.path
        return model

    def save_pretrained(self, folder: str | Path, **options: Any) -> Path:
        """See :func:`sarb.inference.hub.save_pretrained`."""
        return save_pretrained(self, folder, **options)

    @classmethod
    def from_pretrained(cls, name: str | Path) -> Model:
        """See :func:`load_model`."""
        return load_model(name)

    def push_to_hub(self, repo: str, **options: Any) -> str:
        """See :func:`sarb.inference.hub.push_to_hub`."""
        return push_to_hub(self, repo, **options)


def _replace_folder(source: Path, target: Path) -> None:
    """Move a finished folder into place; an older one steps aside first."""
    source.chmod(0o755)
    if target.exists():
        old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        target.replace(old / "old")
        source.replace(target)
        shutil.rmtree(old)
    else:
        source.replace(target)


def build_network(
    categories: int,
    *,
    network: str,
    backbone: str,
    network_options: Mapping[str, Any] | None = None,
    backbone_options: Mapping[str, Any] | None = None,
    weights: str | Path | None = "default",
    graph: Tensor | None = None,
    words: tuple[Tensor, Tensor] | None = None,
    **_: Any,
) -> Network:
    """Make a network from names and flat options."""
    body = create_backbone(backbone, weights, **(backbone_options or {}))
    kind = find("network", NETWORKS, network)
    try:
        made: Network = kind(body, categories, graph, words, **(network_options or {}))
    except TypeError as error:
        raise ConfigError([f"network '{network}': {error}"]) from error
    return made


def new_model(labels: LabelMatrix, settings: Settings, talk: Progress) -> Model:
    """A fresh model for these categories, its graph counted on the known training labels."""
    config = settings.network_config()
    graph = torch.from_numpy(labels.cooccurrence(settings.graph_smoothing, settings.graph_counts)).float()
    words = None
    if settings.words is not None and "word_dim" not in option_types("network", settings.network):
        talk.say(f"network {settings.network} uses no word vectors: {settings.words} is not read")
    elif settings.words is not None:
        vectors, found = word_vectors(settings.words, labels.categories)
        if not found.all():
            missing = [name for name, known in zip(labels.categories, found, strict=True) if not known]
            talk.say(
                f"{settings.words}: no vector for {', '.join(missing[:10])}: {len(missing)} learned instead"
            )
        words = (torch.from_numpy(vectors), torch.from_numpy(found))
        config["network_options"] = {**config["network_options"], "word_dim": vectors.shape[1]}
    network = build_network(
        len(labels.categories),
        **config,
        weights=settings.backbone_options.get("weights", "default"),
        graph=graph,
        words=words,
    )
    if words is None and network.uses_words:
        talk.say(f"no word vectors (--words): network {settings.network} learns an embedding per category")
    return Model(network, labels.categories, config)


def load_model(path: str | Path) -> Model:
    """Load a run folder (its last model), a model folder, or a model of the Hugging Face hub.

    Args:
        path: a folder, or ``owner/name`` (``owner/name@revision``; ``hf:owner/name`` leaves no doubt). A
            name is looked up on the hub only if there is no such folder here, and no folder ``owner`` either.

    >>> load_model("no/such/run")  # doctest: +SKIP
    """
    return Model.load(find_model(path).model.path)


def start_from(model: Model, other: Model) -> str:
    """Take over every learned tensor of ``other`` that fits, category rows by name; say in words what was done."""
    own = model.network.state_dict()
    theirs = other.network.state_dict()
    shared = [name for name in model.categories if name in other.categories]
    rows = [model.categories.index(name) for name in shared]
    their_rows = [other.categories.index(name) for name in shared]
    taken = set()
    for key, value in own.items():
        stored = theirs.get(key)
        if stored is None or key.startswith(model.network.from_data):
            continue
        if key.startswith(model.network.per_category):
            if stored.shape[1:] == value.shape[1:] and shared:
                value[rows] = stored[their_rows].to(value)
                taken.add(key)
        elif stored.shape == value.shape:
            value.copy_(stored)
            taken.add(key)
    if not taken:
        raise SarbError(
            f"init: none of the weights of {other!r} fit {model!r}; use the same network and backbone"
        )
    fresh = sorted(
        {key.split(".")[0] for key in own if key not in taken and not key.startswith(model.network.from_data)}
    )
    text = f"started from {other!r}: {len(taken)} of {len(own)} tensors"
    text += f", {len(shared)} of {len(model.categories)} categories"
    return text + (f"; fresh: {', '.join(fresh)}" if fresh else "")


def take_backbone(model: Model, other: Model) -> str:
    """Take over the weights of the backbone of ``other``, and nothing else; say in words what was done."""
    own = model.network.backbone
    theirs = other.network.backbone.state_dict()
    shapes = {key: value.shape for key, value in own.state_dict().items()}
    if model.config["backbone"] != other.config["backbone"]:
        raise ConfigError(
            [
                f"init: {other!r} has another backbone than {model!r}, and only the backbone is taken over; "
                f"add --backbone {other.config['backbone']}, or leave out --init"
            ]
        )
    if shapes != {key: value.shape for key, value in theirs.items()}:
        raise ConfigError(
            [
                f"init: the backbone of {other!r} has other options ({other.config['backbone_options']}) than "
                f"{model.config['backbone_options']}"
            ]
        )
    before = own.concepts()
    own.load_state_dict(theirs)
    text = f"started from {other!r}: its backbone, {len(shapes)} tensors; everything else is fitted"
    if before is not None and own.concepts() is None:
        text += "; it was trained, so its own classifier no longer applies: no rungs names and bayes"
    return text
