"""Cut a model of transformers into stages: convolutional networks and Swin after each stage, ViTs after each block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sarb.networks.backbones.foreign import Stage
from sarb.networks.backbones.positions import resampled
from sarb.networks.backbones.tokens import Block, ChannelsLast, Embedding, Patches

Cut = Callable[[Any], list[Stage]]


def cut(model: Any) -> list[Stage]:
    """Return the stages of a model in eval mode; its type must be one of ``CUTS``."""
    stages = CUTS[model.config.model_type](model)
    for name, module in [(stage.name, part) for stage in stages for part in stage.modules]:
        for part in module.modules():
            if name == "stem" and isinstance(getattr(part, "mask_token", None), nn.Parameter):
                part.register_parameter("mask_token", None)  # only pretraining needs it
    return stages


def _numbered(stem: list[nn.Module], parts: list[nn.Module], end: list[nn.Module], word: str) -> list[Stage]:
    stages = [Stage("stem", stem)] if stem else []
    stages += [Stage(f"{word}{number}", [part]) for number, part in enumerate(parts, start=1)]
    stages[-1].modules.extend(end)
    return stages


# Convolutional networks


def _resnet(model: Any) -> list[Stage]:
    return _numbered([model.embedder], list(model.encoder.stages), [], "stage")


def _convnext(model: Any) -> list[Stage]:
    """The last norm follows the average in the model; here each cell gets it."""
    return _numbered([model.embeddings], list(model.encoder.stages), [ChannelsLast(model.layernorm)], "stage")


def _dinov3_convnext(model: Any) -> list[Stage]:
    return _numbered([], list(model.model.stages), [ChannelsLast(model.layer_norm)], "stage")


# Swin: tokens in a grid, without any before them


class _SwinStem(nn.Module):
    def __init__(self, embeddings: Any) -> None:
        super().__init__()
        self.embeddings = embeddings

    def forward(self, images: Tensor) -> Tensor:
        size = self.embeddings.patch_size
        height, width = (-(-int(side) // size) for side in images.shape[-2:])
        tokens = self.embeddings(images, interpolate_pos_encoding=True)[0]
        return tokens.unflatten(1, (height, width)).permute(0, 3, 1, 2)  # type: ignore[no-any-return]


class _SwinStage(nn.Module):
    def __init__(self, stage: Any) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, maps: Tensor) -> Tensor:
        height, width = (int(side) for side in maps.shape[-2:])
        tokens = self.stage(maps.flatten(2).transpose(1, 2), (height, width))[0]
        if self.stage.downsample is not None:
            height, width = (height + 1) // 2, (width + 1) // 2
        return tokens.transpose(1, 2).unflatten(2, (height, width))  # type: ignore[no-any-return]


def _swin(model: Any) -> list[Stage]:
    stages = [_SwinStage(layer) for layer in model.encoder.layers]
    return _numbered([_SwinStem(model.embeddings)], [*stages], [ChannelsLast(model.layernorm)], "stage")


# Vision transformers


def _blocks(
    stem: list[nn.Module],
    run: Callable[..., Tensor],
    patch: int,
    prefix: int,
    layers: Any,
    norm: nn.Module,
    rope: nn.Module | None = None,
) -> list[Stage]:
    more = _no_mask if rope is None else _rope
    blocks = [Block(layer, prefix, more, rope) for layer in layers]
    end = [Block(norm, prefix), Patches(prefix)]
    return _numbered([Embedding(stem, run, prefix, patch)], [*blocks], end, "block")


def _vit(model: Any) -> list[Stage]:
    """ViT, DeiT without distillation, DINOv2: one class token."""
    layers = model.layers if hasattr(model, "layers") else model.encoder.layer
    return _blocks(
        [model.embeddings], _embed_vit, _patch(model), 1 + _registers(model), layers, model.layernorm
    )


def _embed_vit(parts: Any, images: Tensor) -> Tensor:
    """Class token and patches with positions, then the registers, which have none, after the class token."""
    inner = parts[0]
    patches = inner.patch_embeddings(images)
    side = round((int(inner.position_embeddings.shape[1]) - 1) ** 0.5)
    patch = _first(inner.patch_embeddings.patch_size)
    grid = (int(images.shape[-2]) // patch, int(images.shape[-1]) // patch)
    tokens = torch.cat([inner.cls_token.expand(images.shape[0], -1, -1), patches], 1)
    registers = getattr(inner, "register_tokens", None)
    antialias = registers is not None  # so does the package, in this type of model only
    tokens = tokens + resampled(inner.position_embeddings, (side, side), grid, antialias)
    if registers is not None:
        tokens = torch.cat([tokens[:, :1], registers.expand(images.shape[0], -1, -1), tokens[:, 1:]], 1)
    found: Tensor = inner.dropout(tokens)
    return found


def _dinov3(model: Any) -> list[Stage]:
    """One class token, registers, and rotary positions."""
    prefix = 1 + _registers(model)
    return _blocks(
        [model.embeddings],
        _embed_plain,
        _patch(model),
        prefix,
        model.model.layer,
        model.norm,
        _Rope(model.rope_embeddings, _patch(model)),
    )


def _embed_plain(parts: Any, images: Tensor) -> Tensor:
    found: Tensor = parts[0](images)
    return found


class _Rope(nn.Module):
    """Rotary positions of a grid; the model computes them from the image's size alone."""

    def __init__(self, inner: nn.Module, patch: int) -> None:
        super().__init__()
        self.inner = inner
        self.patch = patch

    def forward(self, tokens: Tensor, height: int, width: int) -> Any:
        return self.inner(tokens.new_zeros(1, 1, height * self.patch, width * self.patch))


def _no_mask(source: None, tokens: Tensor, height: int, width: int) -> dict[str, Any]:
    return {"attention_mask": None}


def _rope(source: nn.Module, tokens: Tensor, height: int, width: int) -> dict[str, Any]:
    return {"position_embeddings": source(tokens, height, width)}


def _clip(model: Any) -> list[Stage]:
    """One class token and a norm before the blocks."""
    stem = [model.embeddings, model.pre_layrnorm]
    return _blocks(stem, _embed_clip, _patch(model), 1, model.encoder.layers, model.post_layernorm)


def _siglip(model: Any) -> list[Stage]:
    """No class token; its head, which attends to all patches, is left out."""
    return _blocks(
        [model.embeddings], _embed_clip, _patch(model), 0, model.encoder.layers, model.post_layernorm
    )


def _embed_clip(parts: Any, images: Tensor) -> Tensor:
    inner = parts[0]
    patches = inner.patch_embedding(images)
    grid = (int(patches.shape[-2]), int(patches.shape[-1]))
    tokens = patches.flatten(2).transpose(1, 2)
    if hasattr(inner, "class_embedding"):
        tokens = torch.cat([inner.class_embedding.expand(images.shape[0], 1, -1), tokens], 1)
    side = int(inner.image_size) // int(inner.patch_size)
    tokens = tokens + resampled(inner.position_embedding.weight[None], (side, side), grid)
    for norm in parts[1:]:
        tokens = norm(tokens)
    return tokens  # type: ignore[no-any-return]


def _patch(model: Any) -> int:
    return _first(model.config.patch_size)


def _first(size: Any) -> int:
    return int(size if isinstance(size, int) else size[0])


def _registers(model: Any) -> int:
    return int(getattr(model.config, "num_register_tokens", 0))


#: ``model_type`` in config.json -> how to cut it
CUTS: Mapping[str, Cut] = {
    "resnet": _resnet,
    "convnext": _convnext,
    "convnextv2": _convnext,
    "dinov3_convnext": _dinov3_convnext,
    "swin": _swin,
    "swinv2": _swin,
    "vit": _vit,
    "dinov2": _vit,
    "dinov2_with_registers": _vit,
    "dinov3_vit": _dinov3,
    "clip_vision_model": _clip,
    "siglip_vision_model": _siglip,
}
#: types with patches whose sizes must divide the image's; Swin and ConvNeXt pad or drop the rest
PATCHED = ("vit", "dinov2", "dinov2_with_registers", "dinov3_vit", "clip_vision_model", "siglip_vision_model")
