"""Settings of a run: a recipe, overridden by the command line or Python arguments, all checked together."""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from sarb.errors import ConfigError, did_you_mean, either, setting, unknown_name
from sarb.options import AtLeast, AtMost, bare, check, hints_of, plain_number
from sarb.registry import BACKBONES, METHODS, NETWORKS, families, find

RECIPES = Path(__file__).parent / "recipes"
#: part of the learning rate for what a method itself owns, α and β; a network names the other parts
METHOD_PART = "blend"
#: a recipe by name or file, its content (an empty one sets nothing), or None for the default, see read_recipe
Recipe = str | Path | Mapping[str, Any] | None
SECTIONS = ("train", "method", "network", "backbone", "lr", "data")
#: settings that do not change the numbers of a run
HARMLESS = frozenset({"workers", "checkpoint_every"})
#: unit of ``checkpoint_every`` -> seconds
UNITS = {"s": 1, "m": 60, "h": 3600}
#: a small data set is trained for at most this many times ``epochs`` to reach ``min_steps``
MOST_GROWTH = 20
#: pixels of a side of the input: a model of more could not be loaded again
LARGEST_SIDE = 4096


@dataclass(frozen=True)
class Settings:
    """Everything that determines a run, apart from its data. The defaults are the paper's.

    Attributes:
        batch_size: images per step, of all processes together.
        min_steps: least number of optimiser steps; a small data set is trained for up to 20 times ``epochs``.
        lr_scale: learning-rate factor of each part of the model, see :attr:`sarb.networks.Network.parts`.
        warmup: number of epochs over which the learning rate rises from 0.
        clip: maximum gradient norm; 0 turns clipping off.
        cache: use the feature cache; None means on a CPU, if the other settings allow it.
        cache_views: train on this many cached augmented views of each image; 0 caches no augmented view.
        augment: random crops and flips, as in the paper.
        flip: mirror cached maps at random; close to, but not the same as, the maps of mirrored images.
        graph_smoothing: κ of the co-occurrence graph.
        precision: ``no`` (fp32), ``fp16`` or ``bf16`` (GPUs only), ``fp64`` for checks: slow, and exact to 1e-10 or so.
        accumulate: parts of ``batch_size`` images whose gradients make one optimiser step; the loss is the mean over
            the known labels of all parts.
        across_ranks: with several processes, partners of ILRB and pairs of the contrastive loss come from the images of
            all processes, not only of the same one. The model is then that of a single process.
        sync_batch_norm: statistics of trained batch norms over all processes; None means if there are several.
        compile: compile the trained part with ``torch.compile``.
        checkpoint_every: steps (``200``) or time (``"30s"``, ``"5m"``, ``"1h"``) between two checkpoints in an epoch;
            ``"epoch"`` for none. There is one at the end of every epoch. It changes no number.
    """

    method: str = "sarb"
    network: str = "ssgrl"
    backbone: str = "efficientnet_lite0"
    epochs: Annotated[int, AtLeast(1)] = 20
    min_steps: Annotated[int, AtLeast(0)] = 0
    batch_size: Annotated[int, AtLeast(1)] = 16
    lr: Annotated[float, AtLeast(0)] = 1e-5
    image_size: Annotated[int, AtLeast(32), AtMost(LARGEST_SIDE)] = 448
    seed: int = 0
    optimizer: Literal["adam", "adamw"] = "adam"
    weight_decay: Annotated[float, AtLeast(0)] = 5e-4
    schedule: Literal["constant", "step", "cosine", "linear"] = "step"
    warmup: Annotated[float, AtLeast(0)] = 0.0
    clip: Annotated[float, AtLeast(0)] = 0.0
    patience: Annotated[int, AtLeast(1)] | None = None
    words: str | None = None
    cache: bool | None = None
    cache_views: Annotated[int, AtLeast(0)] = 0
    augment: bool = True
    flip: bool = False
    workers: Annotated[int, AtLeast(0)] = 0
    precision: Literal["no", "fp16", "bf16", "fp64"] = "no"
    accumulate: Annotated[int, AtLeast(1)] = 1
    across_ranks: bool = False
    sync_batch_norm: bool | None = None
    compile: bool = False
    device: Literal["auto", "cpu"] = "auto"
    checkpoint_every: int | str = "10m"
    graph_smoothing: Annotated[float, AtLeast(0)] = 1.0
    graph_counts: Literal["known", "plain"] = "known"
    lr_scale: dict[str, float] = field(default_factory=dict)
    method_options: dict[str, Any] = field(default_factory=dict)
    network_options: dict[str, Any] = field(default_factory=dict)
    backbone_options: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as a dict that can be written as JSON."""
        return dataclasses.asdict(self)

    def identity(self) -> bytes:
        """Return a text that differs for settings that give other numbers."""
        values = {name: value for name, value in self.as_dict().items() if name not in HARMLESS}
        return json.dumps(values, sort_keys=True).encode()

    def grown(self, steps: int) -> Settings:
        """Return a copy with enough epochs of ``steps`` steps each for ``min_steps``, within the limit."""
        wanted = -(-self.min_steps // max(1, steps))
        return dataclasses.replace(self, epochs=max(self.epochs, min(wanted, MOST_GROWTH * self.epochs)))

    def network_config(self) -> dict[str, Any]:
        """Return what is needed to rebuild the network, without the file its first weights came from."""
        backbone = {key: value for key, value in self.backbone_options.items() if key != "weights"}
        return {
            "network": self.network,
            "network_options": dict(self.network_options),
            "backbone": self.backbone,
            "backbone_options": backbone,
            "image_size": self.image_size,
        }


def checkpoint_pace(every: int | str) -> tuple[float, float]:
    """Return steps and seconds between two checkpoints of an epoch, infinite where they do not count.

    >>> checkpoint_pace(200), checkpoint_pace("5m"), checkpoint_pace("epoch")
    ((200.0, inf), (inf, 300.0), (inf, inf))

    Raises:
        ConfigError: neither steps nor a time.
    """
    text = str(every).strip()
    if text == "epoch":
        return math.inf, math.inf
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "")
    try:
        value = float(number) if unit else int(number)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        expected = "steps such as 200, a time such as 30s, 5m or 1h, or epoch for the end of each epoch only"
        raise ConfigError([f"checkpoint_every must be {expected}, got {every!r}"])
    return (math.inf, value * UNITS[unit]) if unit else (float(value), math.inf)


def read_recipe(recipe: Recipe, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read a recipe by name or file; None means the default one for the settings that are ``given``."""
    if isinstance(recipe, Mapping):
        return dict(recipe)
    if recipe is None:
        recipe = _default_recipe(given or {})
    file = Path(recipe)
    built_in = RECIPES / f"{recipe}.toml"
    if file.suffix not in ("", ".toml") or (not built_in.is_file() and file.is_dir()):
        raise ConfigError(
            [
                f"{file}: a recipe is a built-in name or a .toml file; "
                + either(f"did you mean --data {file}?", f"sarb.load({str(file)!r}) loads data")
            ]
        )
    if not file.suffix:
        file = built_in
        if not file.is_file():
            raise ConfigError([unknown_name("recipe", str(recipe), recipe_names())])
    if not file.is_file():
        raise ConfigError([f"{file}: no such recipe file. Built-in recipes: {', '.join(recipe_names())}"])
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
    """Return the names of the built-in recipes."""
    return sorted(file.stem for file in RECIPES.glob("*.toml"))


def _default_recipe(given: Mapping[str, Any]) -> str:
    """``auto``; if another method or network is given, ``gpu`` with a GPU and ``small`` without one."""
    if given.get("method") in (None, "auto") and given.get("network") in (None, "probe"):
        return "auto"
    return "gpu" if _has_gpu() else "small"


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def section(content: Mapping[str, Any], name: str, chosen: str, owner: str | None = None) -> dict[str, Any]:
    """Return the values of the table ``[name]`` of a recipe that apply to ``chosen``.

    Args:
        content: the recipe.
        name: the table, such as ``method``.
        chosen: the method, network or backbone of this run; ``[name.chosen]`` overrides ``[name]``.
        owner: what the values directly in ``[name]`` belong to; None means that they always apply.
    """
    table = content.get(name, {})
    direct = {key: value for key, value in table.items() if not isinstance(value, dict)}
    own = table.get(chosen, {})
    return {**(direct if owner in (None, chosen) else {}), **(own if isinstance(own, dict) else {})}


def resolve(recipe: Recipe = None, **given: Any) -> Settings:
    """Merge a recipe with the given settings and check everything; None means that a setting is not given.

    Raises:
        ConfigError: wrong settings or options, all reported at once.
    """
    content = read_recipe(recipe, given)
    train = {key: value for key, value in content.get("train", {}).items() if not isinstance(value, dict)}
    given = {key: plain_number(value) for key, value in given.items() if value is not None}
    names = {
        key: str(given.get(key, train.get(key, getattr(Settings, key))))
        for key in ("method", "network", "backbone")
    }
    if names["method"] == "auto" and "network" not in given and "network" not in train:
        names["network"] = "probe"
    if names["network"] == "probe" and "method" not in given and "method" not in train:
        names["method"] = "auto"
    options: dict[str, Any] = {
        f"{key}_options": {
            **section(content, key, names[key], train.get(key)),
            **{option: plain_number(value) for option, value in given.pop(f"{key}_options", {}).items()},
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
        values["min_steps"] = given.get("min_steps", 0)  # an explicit number of epochs is not extended
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
    if "image_size" not in given and _built_in(recipe):
        values |= _own_size(names["backbone"], options)
    floats = {name for name, hint in hints_of(Settings).items() if bare(hint) is float}
    values = {key: float(value) if key in floats else value for key, value in values.items()}
    return Settings(**values, **options)


def _built_in(recipe: Recipe) -> bool:
    """Whether a recipe is one of ours, or the default; the sizes of others are a choice of the user's."""
    return recipe is None or (isinstance(recipe, str) and recipe in recipe_names())


def _own_size(backbone: str, options: Mapping[str, Any]) -> dict[str, int]:
    """The image size that a model of another package was made for; nothing for our own, which take any."""
    if BACKBONES.member(backbone) is None:
        return {}
    from sarb.networks.backbones.base import own_size  # imports torch

    return {"image_size": own_size(backbone, options["backbone_options"])}


def _check_tables(content: Mapping[str, Any]) -> list[str]:
    """Check that sub-tables such as ``[method.sarb]`` are tables and name something that exists."""
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
    """Check for unknown names, wrong types and values out of range."""
    hints = {name: hint for name, hint in hints_of(Settings).items() if not name.endswith("_options")}
    problems = check(
        values, hints, unknown=lambda name: f"unknown setting '{name}'.{did_you_mean(name, hints)}"
    )
    try:
        checkpoint_pace(values.get("checkpoint_every", Settings.checkpoint_every))
    except ConfigError as error:
        problems += error.problems
    return problems


def _check_names(names: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Check the names of method, network and backbone, and their options."""
    registries = {"method": METHODS, "network": NETWORKS, "backbone": BACKBONES}
    problems = []
    for key, registry in registries.items():
        if names[key] not in registry:
            problems.append(unknown_name(key, names[key], [*registry, *families(registry)]))
        else:
            problems += check_options(key, names[key], options[f"{key}_options"])
    return problems


def check_options(kind: str, name: str, options: Mapping[str, Any]) -> list[str]:
    """Check the options of a method, network or backbone; return one message per problem."""
    hints = option_types(kind, name)
    return check(
        options,
        hints,
        unknown=lambda option: _unknown_option(kind, name, option, hints),
        label=lambda option: f"{kind}.{option}",
    )


def _unknown_option(kind: str, name: str, option: str, own: Mapping[str, Any]) -> str:
    """Return the message for an option that does not exist, or that belongs to another method or network."""
    registry = {"method": METHODS, "network": NETWORKS, "backbone": BACKBONES}[kind]
    owners = [
        other for other in registry if other in registry.built_in and option in option_types(kind, other)
    ]
    if not owners:
        return unknown_name(f"option of {kind} '{name}':", option, own)
    return (
        f"unknown option of {kind} '{name}': '{option}'. It is an option of {kind} {' or '.join(owners)}: "
        f"add {setting(kind, owners[0])}"
    )


def option_types(kind: str, name: str) -> dict[str, Any]:
    """Return the keyword options of a method, network or backbone with their type hints."""
    if kind != "backbone":
        return hints_of(find(kind, METHODS if kind == "method" else NETWORKS, name), keyword_only=True)
    from sarb.networks.backbones.base import create_backbone  # imports torch

    shared = {option: hint for option, hint in hints_of(create_backbone).items() if option != "name"}
    return {**shared, **hints_of(find(kind, BACKBONES, name), keyword_only=True)}


def parse_assignment(text: str) -> tuple[str, str, Any]:
    """``"method.alpha=0.3"`` -> ("method", "alpha", 0.3); the section is ``train`` if none is given."""
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
