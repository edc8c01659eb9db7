"""Cut a model of timm into stages; a cut is used only if it gives what the whole model gives.

A vision transformer is cut after every block. Any other model is cut between its children if it runs them one after
the other, as most do: a random image tells. What cannot be cut is one stage.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError
from sarb.networks.backbones.foreign import Stage
from sarb.networks.backbones.positions import resampled
from sarb.networks.backbones.tokens import Block, ChannelsLast, Embedding, Patches, as_map

#: children that belong to the classifier: the map ends before the first of them
HEADS = (
    *("global_pool", "pool", "attn_pool", "fc_norm", "head_drop", "pre_logits"),
    *("head", "head_dist", "aux_head", "fc", "classifier", "last_linear"),
)
#: children that hold stages or blocks
CONTAINERS = ("stages", "blocks", "layers", "features", "body")
#: largest accepted difference from the whole model, relative to its largest output
CLOSE = 1e-4


@torch.no_grad()
def cut(model: nn.Module, image: Tensor) -> list[Stage]:
    """Return the stages of a model in eval mode.

    Args:
        model: as ``timm.create_model`` returns it.
        image: (1, 3, S, S), of a size that fits.
    """
    whole = _Whole(model)
    expected = whole(image)
    transformer = any(kind.__name__ in ("VisionTransformer", "Eva") for kind in type(model).__mro__)
    stages = _transformer(model) if transformer else _children(model)
    if not (_same_parameters(stages, whole) and _agrees(stages, image, expected)):
        stages = [Stage("body", [whole])]
    stages[-1].modules.extend(_last_norm(model, expected.shape[1]))
    return stages


def _agrees(stages: list[Stage], image: Tensor, expected: Tensor) -> bool:
    found = image
    try:
        for stage in stages:
            for module in stage.modules:
                found = module(found)
    except Exception:  # the children are no sequence, so anything may go wrong; then the model stays whole
        return False
    if found.shape != expected.shape:
        return False
    return bool((found - expected).abs().max() <= CLOSE * expected.abs().max())


def _same_parameters(stages: list[Stage], whole: nn.Module) -> bool:
    """Whether every parameter belongs to exactly one stage."""
    staged = [id(each) for stage in stages for module in stage.modules for each in module.parameters()]
    return sorted(staged) == sorted(id(each) for each in whole.parameters())


def _without(model: nn.Module, names: tuple[str, ...]) -> Any:
    """A copy that shares everything but the named children, which do nothing in it."""
    made = copy.copy(model)
    made._modules = dict(model._modules)
    for name in names:
        if made._modules.get(name) is not None:
            made._modules[name] = nn.Sequential()
    return made


class _Whole(nn.Module):
    """The model without its classifier: images -> map."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        names = [name for name, _ in model.named_children()]
        pooled = names[names.index("global_pool") :] if "global_pool" in names else []
        self.model = _without(model, (*HEADS, *pooled))

    def forward(self, images: Tensor) -> Tensor:
        found = self.model.forward_features(images)
        if not isinstance(found, Tensor):
            raise ConfigError(
                [f"{type(self.model).__name__}: no backbone, it makes several maps at once instead of one"]
            )
        if found.ndim == 4:
            last = getattr(self.model, "output_fmt", "NCHW") == "NHWC"
            return found.permute(0, 3, 1, 2) if last else found
        prefix = int(getattr(self.model, "num_prefix_tokens", 0))
        cells = found.shape[1] - prefix if found.ndim == 3 else 0
        side = round(max(cells, 0) ** 0.5)
        if not side or side * side != cells:
            raise ConfigError(
                [f"{type(self.model).__name__}: no backbone, its features {tuple(found.shape)} are no map"]
            )
        return as_map(found, prefix, side, side)[:, :, prefix:]


def _transformer(model: Any) -> list[Stage]:
    """Stem (patches, positions), then one stage per block; class and register tokens stay until the end."""
    prefix = int(model.num_prefix_tokens)
    patch = int(model.patch_embed.patch_size[0])
    stem = _without(model, (*HEADS, "blocks", "norm"))
    rope = getattr(model, "rope", None)
    stages = [Stage("stem", [Embedding([stem], _embed, prefix, patch)])]
    for number, block in enumerate(model.blocks, start=1):
        more = None if rope is None else _rope
        stages.append(Stage(f"block{number}", [Block(block, prefix, more, rope)]))
    stages[-1].modules.extend([Block(model.norm, prefix), Patches(prefix)])
    return stages


def _embed(parts: Any, images: Tensor) -> Tensor:
    """As ``forward_features`` before the first block, but with positions that can be exported at any size."""
    model = parts[0]
    patches = model.patch_embed(images)
    patch = int(model.patch_embed.patch_size[0])
    grid = (int(images.shape[-2]) // patch, int(images.shape[-1]) // patch)
    patches = patches.reshape(patches.shape[0], grid[0] * grid[1], -1)
    first = [
        each.expand(patches.shape[0], -1, -1)
        for each in (model.cls_token, model.reg_token)
        if each is not None
    ]
    if model.pos_embed is None:
        tokens = torch.cat([*first, patches], 1)
    else:
        positions = resampled(model.pos_embed, model.patch_embed.grid_size, grid, antialias=True)
        apart = model.no_embed_class
        tokens = torch.cat([*first, patches + positions if apart else patches], 1)
        tokens = tokens if apart else tokens + positions
    found: Tensor = model.norm_pre(model.pos_drop(tokens))
    return found


def _rope(source: Any, tokens: Tensor, height: int, width: int) -> dict[str, Any]:
    return {"rope": source.get_embed(shape=[height, width])}


def _children(model: nn.Module) -> list[Stage]:
    """The children in order; one without weights of its own, such as a norm, belongs to the one before."""
    modules: list[nn.Module] = []
    for name, child in model.named_children():
        if name in HEADS:
            break
        split = name in CONTAINERS and isinstance(child, nn.Sequential | nn.ModuleList)
        modules += list(child.children()) if split else [child]
    last = getattr(model, "output_fmt", "NCHW") == "NHWC"
    stages: list[Stage] = []
    for module in modules:
        weighty = any(isinstance(part, nn.Conv2d | nn.Linear) for part in module.modules())
        if weighty or not stages:
            stages.append(Stage(f"stage{len(stages)}" if stages else "stem", []))
        first = stages[0].modules == []
        stages[-1].modules.append(ChannelsLast(module, images=first) if last else module)
    return stages


def _last_norm(model: Any, width: int) -> list[nn.Module]:
    """The norm between pooling and classifier, which each cell gets: a classifier expects it."""
    head = getattr(model, "head", None)
    for norm in (getattr(model, "fc_norm", None), getattr(head, "norm", None)):
        sizes = {parameter.numel() for parameter in norm.parameters()} if isinstance(norm, nn.Module) else ()
        if sizes == {width}:
            assert isinstance(norm, nn.Module)
            return [norm] if type(norm).__name__.endswith("2d") else [ChannelsLast(norm)]
    return []
