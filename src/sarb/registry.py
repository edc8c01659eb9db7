"""The names of networks, methods, backbones and datasets; nothing is imported before it is used.

A dict maps each name to its class. A name is built in, registered in Python with :func:`register`, or
declared by an installed package (a plug-in) as an entry point of the group ``sarb.networks``,
``sarb.methods``, ``sarb.backbones`` or ``sarb.datasets``.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sarb.errors import ConfigError, SarbError, unknown_name

#: ``"module:attribute"``, imported when it is used, or the class or function itself
Target = str | Callable[..., Any]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
PATH = re.compile(r"[\w.]+:[\w.]+")


class PlugIn(NamedTuple):
    """An entry point: ``"module:attribute"``, and the installed package that declares it."""

    target: str
    package: str


class Registry(dict[str, Target]):
    """The names of one kind: a dict of built-in and registered names that also finds plug-ins.

    Args:
        kind: ``"network"``, ``"method"``, ``"backbone"`` or ``"dataset"``.
        built_in: name -> ``"module:attribute"``.
        families: name of a family, such as ``timm`` -> ``"module:attribute"``. ``timm:NAME`` calls it with NAME.
            A family is no key: nobody can list what is in it.
    """

    def __init__(
        self, kind: str, built_in: Mapping[str, str], families: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(built_in)
        self.kind = kind
        self.built_in = frozenset(built_in)
        self.families = dict(families or {})
        self._plug_ins: dict[str, PlugIn] = {}
        self._searched: list[str] | None = None

    def plug_ins(self) -> dict[str, PlugIn]:
        """Return the entry points of installed packages, without importing them."""
        if self._searched != sys.path:
            self._plug_ins = _installed(self.kind, self.built_in)
            self._searched = list(sys.path)
        return self._plug_ins

    def member(self, name: object) -> tuple[str, str] | None:
        """``"timm:resnet18"`` -> the target of the family and ``"resnet18"``; None for any other name."""
        family, _, rest = str(name).partition(":")
        return (self.families[family], rest) if rest and family in self.families else None

    def __missing__(self, name: str) -> Target:
        member = self.member(name)
        return self.plug_ins()[name].target if member is None else member[0]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.member(name) is not None or name in self.plug_ins()

    def __iter__(self) -> Iterator[str]:
        own = list(super().__iter__())
        return iter([*own, *(name for name in self.plug_ins() if name not in own)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))

    def get(self, name: str, default: Any = None) -> Any:
        """Return ``self[name]``, or the default."""
        if name in self:
            return self[name]
        return default

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Return all names."""
        return KeysView(self)

    def values(self) -> ValuesView[Target]:  # type: ignore[override]
        """Return all targets."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, Target]:  # type: ignore[override]
        """Return all names with their targets."""
        return ItemsView(self)


def _installed(kind: str, built_in: frozenset[str]) -> dict[str, PlugIn]:
    """Read the entry points of one group; report all problems at once."""
    from importlib.metadata import entry_points  # slow to import, and most commands do not need it

    found: dict[str, PlugIn] = {}
    problems = []
    for entry in entry_points(group=f"sarb.{kind}s"):
        package = entry.dist.name if entry.dist is not None else "unknown"
        plug_in = PlugIn(entry.value, package)
        problem = _problem(kind, entry.name, entry.value, built_in)
        if entry.name in found and found[entry.name] != plug_in:
            problem = f"the package '{found[entry.name].package}' also declares {kind} '{entry.name}'"
        if problem:
            problems.append(
                f"plug-in package '{package}': {problem}. Fix it, or run: pip uninstall {package}"
            )
        found[entry.name] = plug_in
    if problems:
        raise ConfigError(problems)
    return found


def _problem(kind: str, name: str, target: object, built_in: frozenset[str]) -> str:
    """Return why a name or its target is not valid, or an empty string."""
    if name in built_in:
        return f"{kind} '{name}' is built in, choose another name"
    if not NAME.fullmatch(name):
        return f"'{name}' is not a valid name: use a letter, then letters, digits, - and _"
    if isinstance(target, str) and not PATH.fullmatch(target):
        return f"{kind} '{name}' must be given as 'module:attribute', got '{target}'"
    if not isinstance(target, str) and not callable(target):
        return f"{kind} '{name}' must be a class, a function or 'module:attribute', got {target!r}"
    return ""


NETWORKS = Registry(
    "network",
    {
        "ssgrl": "sarb.networks.ssgrl:SSGRL",
        "pooled": "sarb.networks.pooled:Pooled",
        "gcn_ml": "sarb.networks.gcn_ml:GCNML",
        "kggr": "sarb.networks.kggr:KGGR",
        "probe": "sarb.networks.probe:Probe",
    },
)

METHODS = Registry(
    "method",
    {
        "sarb": "sarb.methods.sarb:SARB",
        "partial_bce": "sarb.methods.partial_bce:PartialBCE",
        "curriculum": "sarb.methods.curriculum:Curriculum",
        "ip_mixup": "sarb.methods.mixup:PixelMixup",
        "fm_mixup": "sarb.methods.mixup:FeatureMapMixup",
        "asl": "sarb.methods.asl:ASL",
        "an": "sarb.methods.an:AN",
        "wan": "sarb.methods.wan:WAN",
        "an_ls": "sarb.methods.an_ls:ANLS",
        "iu": "sarb.methods.iu:IU",
        "epr": "sarb.methods.epr:EPR",
        "role": "sarb.methods.role:ROLE",
        "ll_r": "sarb.methods.ll_r:LLR",
        "ll_ct": "sarb.methods.ll_ct:LLCt",
        "ll_cp": "sarb.methods.ll_cp:LLCp",
        "hill": "sarb.methods.hill:Hill",
        "splc": "sarb.methods.splc:SPLC",
        "csl": "sarb.methods.csl:CSL",
        "sst": "sarb.methods.sst:SST",
        "hst": "sarb.methods.hst:HST",
        "dsrb": "sarb.methods.dsrb:DSRB",
        "sr_st": "sarb.methods.sr_st:SRST",
        "auto": "sarb.methods.auto:Auto",
    },
)

BACKBONES = Registry(
    "backbone",
    {
        "efficientnet_lite0": "sarb.networks.backbones.efficientnet:EfficientNetLite0",
        "efficientnet_lite1": "sarb.networks.backbones.efficientnet:EfficientNetLite1",
        "efficientnet_lite2": "sarb.networks.backbones.efficientnet:EfficientNetLite2",
        "resnet18": "sarb.networks.backbones.resnet:resnet18",
        "resnet34": "sarb.networks.backbones.resnet:resnet34",
        "resnet50": "sarb.networks.backbones.resnet:resnet50",
        "resnet101": "sarb.networks.backbones.resnet:resnet101",
        "tiny": "sarb.networks.backbones.tiny:Tiny",
    },
    {
        "timm": "sarb.networks.backbones.timm_models:TimmBackbone",
        "hf": "sarb.networks.backbones.hf_models:HuggingFaceBackbone",
    },
)

#: a reader whose first argument has no default takes a path, ``name:PATH``
DATASETS = Registry(
    "dataset",
    {
        "demo": "sarb.data.demo.dataset:load_demo",
        "table": "sarb.data.readers.table:load_table",
        "list": "sarb.data.readers.list_table:load_list",
        "folder": "sarb.data.readers.folder:load_folder",
        "npy": "sarb.data.readers.npy:load_npy",
        "coco": "sarb.data.readers.coco:load_coco",
        "lvis": "sarb.data.readers.lvis:load_lvis",
        "voc": "sarb.data.readers.voc:load_voc",
        "vg": "sarb.data.readers.visual_genome:load_visual_genome",
        "open_images": "sarb.data.readers.open_images:load_open_images",
        "chexpert": "sarb.data.readers.chexpert:load_chexpert",
        "nus_wide": "sarb.data.readers.nus_wide:load_nus_wide",
        "label_studio": "sarb.data.readers.label_studio:load_label_studio",
        "cvat": "sarb.data.readers.cvat:load_cvat",
    },
)

REGISTRIES: dict[str, Registry] = {
    registry.kind: registry for registry in (NETWORKS, METHODS, BACKBONES, DATASETS)
}


def register(kind: str, name: str, target: Target) -> None:
    """Add your own network, method, backbone or dataset, for this process.

    You can register your own name again; the last target wins. A model folder stores only the names, so
    register the network and the backbone before you load the model in another process.

    Args:
        kind: ``"network"``, ``"method"``, ``"backbone"`` or ``"dataset"``.
        name: its name in ``fit``, ``load`` and recipes.
        target: the class (for a backbone or dataset also a function), or ``"module:attribute"``.

    Raises:
        ConfigError: an unknown kind, a built-in name, or a target of the wrong type.
    """
    if kind not in REGISTRIES:
        raise ConfigError([unknown_name("kind", kind, REGISTRIES)])
    registry = REGISTRIES[kind]
    problem = _problem(kind, name, target, registry.built_in)
    if problem:
        raise ConfigError([problem])
    registry[name] = target


def find(kind: str, registry: Mapping[str, Target], name: str) -> Any:
    """Return the class or function of a name; the error for an unknown name lists the known ones."""
    if name not in registry:
        problem = unknown_name(kind, name, [*registry, *families(registry)])
        if isinstance(registry, Registry):
            problem += (
                f". If '{name}' is your own, register it first, sarb.registry.register('{registry.kind}', "
                f"'{name}', ...), or install the package that declares it"
            )
        raise ConfigError([problem])
    target = registry[name]
    if not isinstance(target, str):
        return target
    member = registry.member(name) if isinstance(registry, Registry) else None
    if member is not None:
        return partial(_imported(target), member[1])
    try:
        return _imported(target)
    except Exception as error:  # a plug-in can fail in any way
        if not isinstance(registry, Registry) or name in registry.built_in:
            raise
        plug_in = registry.plug_ins().get(name)
        owner = f"plug-in package '{plug_in.package}': " if plug_in and plug_in.target == target else ""
        raise SarbError(
            f"{owner}{kind} '{name}' cannot be imported from '{target}': {type(error).__name__}: {error}"
        ) from error


def families(registry: Mapping[str, Target]) -> list[str]:
    """Return what the names of its families look like, e.g. ``timm:NAME``."""
    return [f"{name}:NAME" for name in getattr(registry, "families", {})]


def _imported(target: str) -> Any:
    module, _, attribute = target.partition(":")
    found: Any = importlib.import_module(module)
    for piece in attribute.split("."):
        found = getattr(found, piece)
    return found


def summary(target: Target) -> str:
    """Return the first line of a docstring, without importing anything.

    For built-in names it is the docstring of the module, because each module has one topic. For others it is
    that of the class or function, or else of the module. It is empty if there is no docstring or no source.
    """
    if not isinstance(target, str):
        return _first_line(target.__doc__)
    module, _, attribute = target.partition(":")
    file = _source(module)
    try:
        tree = ast.parse("" if file is None else file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):  # reported when the plug-in is used
        return ""
    if not module.startswith("sarb."):
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == attribute:
                return _first_line(ast.get_docstring(node) or ast.get_docstring(tree))
    return _first_line(ast.get_docstring(tree))


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _source(module: str) -> Path | None:
    """Return the file of a module; looking up a top-level package does not run its code."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # a module without a spec, such as __main__
        return None
    if spec is None:
        return None
    files = [Path(spec.origin)] if spec.origin and not rest else []
    for folder in spec.submodule_search_locations or []:
        files += [Path(folder, *rest).with_suffix(".py"), Path(folder, *rest, "__init__.py")]
    return next((file for file in files if file.suffix == ".py" and file.is_file()), None)
