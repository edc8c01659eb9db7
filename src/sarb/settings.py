"""Settings of a run: recipe, then what was said on the command line or in Python, checked all at once."""

from __future__ import annotations

import dataclasses
import inspect
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sarb.errors import ConfigError, did_you_mean, unknown_name
from sarb.registry import BACKBONES, METHODS, NETWORKS, find

RECIPES = Path(__file__).parent / "recipes"
#: part of the learning rate for what a method itself owns, α and β; a network names the other parts
METHOD_PART = "blend"
SECTIONS = ("train", "method", "network", "backbone", "lr", "data")
CHOICES: dict[str, tuple[str, ...]] = {
    "optimizer": ("adam", "adamw"),
    "schedule": ("constant", "step", "cosine", "linear"),
    "precision": ("no", "fp16", "bf16"),
    "device": ("auto", "cpu"),
    "graph_counts": ("known", "plain"),
}
AT_LEAST: dict[str, float] = {
    "epochs": 1,
    "min_steps": 0,
    "batch_size": 1,
    "image_size": 32,
    "lr": 0,
    "weight_decay": 0,
    "warmup": 0,
    "clip": 0,
    "workers": 0,
    "cache_views": 0,
    "graph_smoothing": 0,
    "patience": 1,
}
#: how many times ``epochs`` a small data set may get to reach ``min_steps``
MOST_GROWTH = 20


@dataclass(frozen=True)
class Settings:
    """All that decides a run besides its data. The defaults are the paper's.

    Attributes:
        min_steps: train more epochs than ``epochs``, up to 20 times, where the images are too few for this
            many steps.
        lr_scale: factor of the learning rate per part, see :attr:`sarb.networks.Network.parts`.
        warmup: epochs in which the learning rate grows from 0.
        clip: largest gradient norm, 0 for none.
        cache: use the feature cache; None uses it on a CPU whenever nothing speaks against it.
        cache_views: V augmented views of each training image in the feature cache, and train on them; 0 for
            none.
        augment: the paper's crops and flips.
        flip: mirror cached maps at random; nearly, but not quite, what the network makes of mirrored images.
        graph_smoothing: κ of the co-occurrence graph.
        precision: ``no`` (fp32), ``fp16`` or ``bf16`` (GPUs only).
    """

    method: str = "sarb"
    network: str = "ssgrl"
    backbone: str = "efficientnet_lite0"
    epochs: int = 20
    min_steps: int = 0
    batch_size: int = 16
    lr: float = 1e-5
    image_size: int = 448
    seed: int = 0
    optimizer: str = "adam"
    weight_decay: float = 5e-4
    schedule: str = "step"
    warmup: float = 0.0
    clip: float = 0.0
    patience: int | None = None
    words: str | None = None
    cache: bool | None = None
    cache_views: int = 0
    augment: bool = True
    flip: bool = False
    workers: int = 0
    precision: str = "no"
    device: str = "auto"
    graph_smoothing: float = 1.0
    graph_counts: str = "known"
    lr_scale: dict[str, float] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)
    network_options: dict[str, Any] = field(default_factory=dict)
    backbone_options: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All settings, ready for JSON."""
        return dataclasses.asdict(self)

    def grown(self, steps: int) -> Settings:
        """The same with the epochs, of ``steps`` steps each, that ``min_steps`` needs, as far as they may
        grow.
        """
        wanted = -(-self.min_steps // max(1, steps))
        return dataclasses.replace(self, epochs=max(self.epochs, min(wanted, MOST_GROWTH * self.epochs)))

    def network_config(self) -> dict[str, Any]:
        """What is needed to build the network again; where its first weights came from is not."""
        backbone = {key: value for key, value in self.backbone_options.items() if key != "weights"}
        return {
            "network": self.network,
            "network_options": dict(self.network_options),
            "backbone": self.backbone,
            "backbone_options": backbone,
            "image_size": self.image_size,
        }


def read_recipe(recipe: str | Path | None) -> dict[str, dict[str, Any]]:
    """Read a recipe by name or file; None is the one for this machine (``small`` without a GPU, else
    ``gpu``).
    """
    if recipe is None:
        recipe = "gpu" if _has_gpu() else "small"
    file = Path(recipe)
    built_in = RECIPES / f"{recipe}.toml"
    if file.suffix not in ("", ".toml") or (not built_in.is_file() and file.is_dir()):
        raise ConfigError(
            [f"{file}: a recipe is a built-in name or a .toml file; did you mean --data {file}?"]
        )
    if not file.suffix:
        file = built_in
        if not file.is_file():
            raise ConfigError([unknown_name("recipe", str(recipe), recipe_names())])
    if not file.is_file():
        raise ConfigError([f"{file}: no such recipe file. Built in: {', '.join(recipe_names())}"])
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"{file}: not valid TOML: {error}"]) from error
    wrong = [unknown_name(f"section in {file}:", name, SECTIONS) for name in content if name not in SECTIONS]
    wrong += [
        f"{file}: '{name}' must be a table [{name}]"
        for name, value in content.items()
        if not isinstance(value, dict)
    ]
    if wrong:
        raise ConfigError(wrong)
    return content


def recipe_names() -> list[str]:
    """Names of the built-in recipes."""
    return sorted(file.stem for file in RECIPES.glob("*.toml"))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def section(content: Mapping[str, Any], name: str, chosen: str, owner: str | None = None) -> dict[str, Any]:
    """Values of ``[name]`` for ``chosen``: plain ones if the recipe chose the same, then
    ``[name.chosen]``.
    """
    table = content.get(name, {})
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    own = table.get(chosen, {})
    return {**(plain if owner in (None, chosen) else {}), **(own if isinstance(own, dict) else {})}


def resolve(recipe: str | Path | None = None, **given: Any) -> Settings:
    """Merge a recipe with what was given (None means: not said), check everything, raise all errors at
    once.
    """
    content = read_recipe(recipe)
    train = {key: value for key, value in content.get("train", {}).items() if not isinstance(value, dict)}
    given = {key: value for key, value in given.items() if value is not None}
    names = {
        key: str(given.get(key, train.get(key, getattr(Settings, key))))
        for key in ("method", "network", "backbone")
    }
    options: dict[str, Any] = {
        f"{key}_options": {
            **section(content, key, names[key], train.get(key)),
            **given.pop(f"{key}_options", {}),
        }
        for key in names
    }
    options["lr_scale"] = {**section(content, "lr", names["network"]), **given.pop("lr_scale", {})}
    values = {
        **train,
        **section({"train": content.get("train", {})}, "train", names["network"], ""),
        **given,
        **names,
    }
    if "epochs" in given:
        values["min_steps"] = given.get("min_steps", 0)  # a number of epochs that was asked for is kept
    if values.get("words") is not None:
        values["words"] = str(values["words"])
    problems = (
        _check_tables(content)
        + _check_values(values)
        + _check_names(names, options)
        + _check_scale(names["network"], options["lr_scale"])
    )
    if problems:
        raise ConfigError(problems)
    floats = {f.name for f in dataclasses.fields(Settings) if f.type == "float"}
    values = {key: float(value) if key in floats else value for key, value in values.items()}
    return Settings(**values, **options)


def _check_tables(content: Mapping[str, Any]) -> list[str]:
    """Sub-tables such as ``[method.sarb]`` must name something that exists, and be tables."""
    owners = {
        "train": NETWORKS,
        "lr": NETWORKS,
        "method": METHODS,
        "network": NETWORKS,
        "backbone": BACKBONES,
    }
    problems = []
    for name, registry in owners.items():
        for key, value in content.get(name, {}).items():
            if isinstance(value, dict) and key not in registry:
                problems.append(f"[{name}.{key}]: " + unknown_name(name, key, registry))
            elif key in registry and not isinstance(value, dict):
                problems.append(f"[{name}] {key}: expected a table [{name}.{key}], got {value!r}")
    return problems


def _check_scale(network: str, scale: Mapping[str, Any]) -> list[str]:
    """Learning-rate factors: parts that exist, finite numbers of at least 0."""
    own = _parts(network)
    accepted = own.union(*map(_parts, NETWORKS.built_in))  # one recipe may serve several networks
    problems = [unknown_name("part in [lr]", part, own or accepted) for part in scale if part not in accepted]
    for part, value in scale.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (number and math.isfinite(value) and value >= 0):
            problems.append(f"lr.{part} must be a number of at least 0, got {value!r}")
    return problems


def _parts(network: str) -> set[str]:
    """Parts with a learning rate of their own; none where the network is unknown."""
    if network not in NETWORKS:
        return set()
    return {METHOD_PART, *getattr(find("network", NETWORKS, network), "parts", {}).values()}


def _check_values(values: Mapping[str, Any]) -> list[str]:
    """Unknown names, wrong types, values outside their range."""
    kinds = {f.name: str(f.type) for f in dataclasses.fields(Settings) if not f.name.endswith("_options")}
    problems = []
    for key, value in values.items():
        if key not in kinds:
            problems.append(f"unknown setting '{key}'.{did_you_mean(key, kinds)}")
        elif not _fits(value, kinds[key]):
            problems.append(f"{key} must be {kinds[key]}, got {value!r}")
        elif key in CHOICES and value not in CHOICES[key]:
            problems.append(unknown_name(key, str(value), CHOICES[key]))
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append(f"{key} must be finite, got {value}")
        elif key in AT_LEAST and value < AT_LEAST[key]:
            problems.append(f"{key} must be at least {AT_LEAST[key]:g}, got {value}")
    return problems


def _fits(value: Any, kind: str) -> bool:
    names = kind.split(" | ")
    if value is None or "Any" in names:
        return "None" in names or "Any" in names
    if isinstance(value, Path):
        return "str" in names
    if isinstance(value, bool):
        return "bool" in names
    if isinstance(value, int):
        return "int" in names or "float" in names
    return type(value).__name__ in names


def _check_names(names: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Unknown method, network or backbone, options they do not have, and values of the wrong type."""
    registries = {"method": METHODS, "network": NETWORKS, "backbone": BACKBONES}
    problems = []
    for key, registry in registries.items():
        if names[key] not in registry:
            problems.append(unknown_name(key, names[key], registry))
            continue
        kinds = option_types(key, names[key])
        for option, value in options[f"{key}_options"].items():
            if option not in kinds:
                problems.append(unknown_name(f"{key} option of {names[key]}:", option, kinds))
            elif not _fits(value, kinds[option]):
                problems.append(f"{key}.{option} must be {kinds[option]}, got {value!r}")
    return problems


def option_types(kind: str, name: str) -> dict[str, str]:
    """Keyword options of a method, network or backbone with the types they are annotated with."""
    if kind == "backbone":
        return {"weights": "str | None", "train_stages": "int | None", "frozen_norms": "bool"}
    made = find(kind, METHODS if kind == "method" else NETWORKS, name)
    parameters = inspect.signature(made).parameters.values()
    return {p.name: _spelled(p.annotation) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _spelled(annotation: Any) -> str:
    """An annotation as it was written; ``Any`` where there is none."""
    if annotation is inspect.Parameter.empty:
        return "Any"
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def parse_assignment(text: str) -> tuple[str, str, Any]:
    """``"method.alpha=0.3"`` -> ("method", "alpha", 0.3); without a section it belongs to ``train``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError([f"--set {text}: expected name=value, e.g. --set method.alpha=0.3"])
    where, _, key = name.strip().rpartition(".")
    if (where or "train") not in SECTIONS:
        raise ConfigError([f"--set {text}: " + unknown_name("section", where, SECTIONS)])
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = {"True": True, "False": False, "none": None, "None": None}.get(value, value)
    return where or "train", key, parsed
