"""Model: a network with everything needed to use it, and its folder on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save as as_bytes
from torch import Tensor

import sarb
from sarb.data.images import EvalTransform
from sarb.data.words import word_vectors
from sarb.errors import ConfigError, SarbError, check_type, named, setting
from sarb.inference.hub import push_to_hub, save_pretrained
from sarb.labelling.calibration import Calibration
from sarb.labels import LabelMatrix
from sarb.networks.backbones.base import create_backbone
from sarb.networks.backbones.given import GivenMaps
from sarb.networks.base import Network
from sarb.networks.text import PREFIX, text_source, text_vectors
from sarb.progress import Progress
from sarb.registry import BACKBONES, NETWORKS, find
from sarb.runs.finite import check_finite
from sarb.runs.folder import ModelFolder
from sarb.runs.lookup import find_model
from sarb.runs.swap import atomic_folder
from sarb.runs.tensors import read_tensors
from sarb.settings import Settings, check_options, option_types

if TYPE_CHECKING:
    from sarb.scores import Scores

FORMAT = 1
#: value of ``words`` for learned embeddings, where the backbone would bring its own
LEARNED = "none"


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
        """Write weights, configuration, model card and manifest; the folder appears whole or not at all.

        Weights that are not finite are refused.
        """
        folder = Path(folder)
        tensors = {key: value.detach().cpu().contiguous() for key, value in self.network.state_dict().items()}
        check_finite(tensors, f"{folder}")
        config = {"format": FORMAT, **self.config, "categories": list(self.categories)}
        described = self.network.backbone.described()
        if described:
            config["backbone_options"] = {**config.get("backbone_options", {}), **described}
        with atomic_folder(folder) as path:
            ModelFolder(path).write(as_bytes(tensors, {"format": "pt"}), config, card or f"# {self!r}\n")
        self.folder = folder
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Model:
        """Read what :meth:`save` wrote."""
        files = ModelFolder(folder)
        config = files.read_config()
        categories = config.pop("categories")
        if config.pop("format") > FORMAT:
            raise SarbError(f"{folder}: written by a newer sarb; please upgrade")
        files.check_weights()
        network = _filled(files, len(categories), config)
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
    image_size: int | None = None,
    **_: Any,
) -> Network:
    """Make a network from names and flat options; an image size that the backbone cannot process is an error."""
    body = create_backbone(backbone, weights, **(backbone_options or {}))
    if image_size is not None:
        body.check_size(image_size)
    kind = find("network", NETWORKS, network)
    try:
        made: Network = kind(body, categories, graph, words, **(network_options or {}))
    except TypeError as error:
        raise ConfigError([f"network '{network}': {error}"]) from error
    return made


def _filled(files: ModelFolder, categories: int, config: Mapping[str, Any]) -> Network:
    """The network of a folder with its weights.

    It is made without memory first and compared with the header of the weights, so that a hostile configuration
    cannot ask for more than the weights have.
    """
    parts = {key: config.get(f"{key}_options") or {} for key in ("network", "backbone")}
    names = {key: config[key] for key in parts}
    described: dict[str, Any] = {**names, **{f"{key}_options": options for key, options in parts.items()}}
    if names["backbone"].startswith("hf:") and not parts["backbone"].get("architecture"):
        # it would be read from the folder or repository of that name, which is not part of this model
        raise SarbError(
            f"{files.config_file}: 'backbone_options.architecture' must be the backbone's config.json"
        )
    find("network", NETWORKS, names["network"])
    find("backbone", BACKBONES, names["backbone"])
    problems = [
        problem for key, options in parts.items() for problem in check_options(key, names[key], options)
    ]
    inner = parts["network"].get("residual")
    if not problems and inner:
        problems += check_options("network", inner, parts["network"].get("residual_options") or {})
    if problems:
        raise SarbError(f"{files.config_file}: {'; '.join(problems)}")
    try:
        planned = None
        if names["network"] in NETWORKS.built_in and names["backbone"] in BACKBONES.built_in:
            with torch.device("meta"):  # a plug-in may not know this device
                planned = build_network(categories, **described, weights=None).state_dict()
        tensors, _ = read_tensors(files.weights, planned)
        network = build_network(categories, **described, weights=None)
        network.load_state_dict(tensors)
    except SarbError:
        raise
    except Exception as error:  # with strange options a constructor may raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise SarbError(f"{files.weights}: does not fit its {files.config_file.name}: {reason}") from error
    return network


def new_model(labels: LabelMatrix, settings: Settings, talk: Progress) -> Model:
    """A fresh model for these categories, its graph counted on the known training labels."""
    config = settings.network_config()
    graph = torch.from_numpy(labels.cooccurrence(settings.graph_smoothing, settings.graph_counts)).float()
    source = words_of(settings, talk)
    words = None
    if source is not None:
        words = _vectors(source, labels.categories, talk)
        config["network_options"] = {**config["network_options"], "word_dim": words[0].shape[1]}
    network = build_network(
        len(labels.categories),
        **config,
        weights=settings.backbone_options.get("weights", "default"),
        graph=graph,
        words=words,
    )
    if words is not None and not network.uses_words:
        talk.say(f"{source}: not used, because network {settings.network} with these options needs no words")
    elif source is not None and source.startswith(PREFIX):
        config["word_source"] = source
        talk.say(f"category names: vectors of the text encoder of {source}")
    if words is None and network.uses_words:
        talk.detail(
            f"no word vectors ({named('words')}): network {settings.network} learns an embedding per category"
        )
    return Model(network, labels.categories, config)


def words_of(settings: Settings, talk: Progress) -> str | None:
    """Where the vectors of category names come from: a file, a text encoder, or None for learned ones.

    A CLIP or SigLIP backbone brings its text encoder along, so that is the default for it.
    """
    used = "word_dim" in option_types("network", settings.network)
    if settings.words == LEARNED:
        return None
    if settings.words is not None and not used:
        talk.say(f"network {settings.network} uses no word vectors: {settings.words} is not read")
    if not used:
        return None
    if settings.words is not None:
        return settings.words
    source = text_source(settings.backbone, settings.backbone_options)
    return source if source is not None and _holds_words(settings) else None


def _holds_words(settings: Settings) -> bool:
    """Whether the network with these options holds vectors of names; SSGRL does with SD and not with SAM."""
    with torch.random.fork_rng(devices=[]):
        kind = find("network", NETWORKS, settings.network)
        small: Network = kind(GivenMaps(8), 2, None, None, **settings.network_options)
    return small.uses_words


def _vectors(source: str, categories: Sequence[str], talk: Progress) -> tuple[Tensor, Tensor]:
    """Vectors (C, W) of category names, and which of them were found (C,)."""
    if source.startswith(PREFIX):
        made = torch.from_numpy(text_vectors(source, categories))
        return made, torch.ones(len(made), dtype=torch.bool)
    vectors, found = word_vectors(source, categories)
    if not found.all():
        missing = [name for name, known in zip(categories, found, strict=True) if not known]
        talk.say(f"{source}: no vector for {', '.join(missing[:10])}: {len(missing)} learned instead")
    return torch.from_numpy(vectors), torch.from_numpy(found)


def load_model(path: str | Path) -> Model:
    """Load a run folder (its last model), a model folder, or a model of the Hugging Face hub.

    Args:
        path: a folder, or ``owner/name`` (``owner/name@revision``; ``hf:owner/name`` leaves no doubt). A
            name is looked up on the hub only if there is no such folder here, and no folder ``owner`` either.

    >>> load_model("no/such/run")  # doctest: +SKIP
    """
    return Model.load(find_model(path).model.path)


def as_model(model: Model | str | Path) -> Model:
    """Return the model itself, or load it as :func:`load_model` does."""
    check_type("model", model, (Model, str, Path), "a Model, a run or model folder, or a hub id")
    return load_model(model) if isinstance(model, str | Path) else model


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
                f"add {setting('backbone', other.config['backbone'])}, or leave out {named('init')}"
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
