"""A model of another package as a backbone: its parts in order, its input, and the classifier it came with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sarb.errors import ConfigError
from sarb.networks.backbones.concepts import Concepts
from sarb.networks.backbones.stages import Backbone


class Stage(NamedTuple):
    """A stage: its name, and modules from map to map."""

    name: str
    modules: list[nn.Module]


def whole_patches(size: int, patch: int) -> int:
    """The image size without its last pixels if patches do not cover them: some models never look at these.

    >>> whole_patches(384, 14)
    378
    """
    return max(size // patch, 1) * patch


class Foreign(Backbone):
    """Base class: a subclass makes the model in its ``__init__`` and hands its stages to :meth:`take`.

    Attributes:
        title: what messages call it, e.g. ``timm:resnet18``.
        step: image sizes must be multiples of it.
        only_size: the one image size it can process; None if there are others.
    """

    needs_weights = False
    default_train_stages = 1

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title
        self.step = 1
        self.only_size: int | None = None
        self.stage_names = ()
        self.parts = nn.ModuleDict()
        self._concepts: Concepts | None = None
        self._pretrained = ""

    def take(self, stages: Sequence[Stage]) -> None:
        """Take over the stages, in eval mode as the base class expects, and measure the width."""
        self.parts = nn.ModuleDict({stage.name: nn.Sequential(*stage.modules) for stage in stages})
        self.stage_names = tuple(stage.name for stage in stages)
        self.width = int(self.look().shape[1])

    def normalise(self, mean: Sequence[float], std: Sequence[float]) -> None:
        """Set the normalisation of the input, on the 0..255 scale."""
        wrong = len(mean) != 3 or len(std) != 3 or min(std) <= 0
        if wrong:
            raise ConfigError(
                [f"backbone.mean and backbone.std must be three numbers each, std above 0, got {mean}, {std}"]
            )
        self.mean = (float(mean[0]), float(mean[1]), float(mean[2]))
        self.std = (float(std[0]), float(std[1]), float(std[2]))

    @torch.no_grad()
    def look(self) -> Tensor:
        """The map of a small random image, in eval mode."""
        training = self.training
        self.eval()
        found: Tensor = self._run(self.sample(), self.stage_names)
        self.train(training)
        return found

    def sample(self) -> Tensor:
        """A random image of a size that fits, the same every time."""
        like = next(self.parameters(), None)
        image = torch.randn(1, 3, self.small, self.small, generator=torch.Generator().manual_seed(0))
        return image if like is None else image.to(like)

    @property
    def small(self) -> int:
        """A small image size that fits."""
        return self.only_size or -(-64 // self.step) * self.step

    def check_size(self, size: int) -> None:
        """Raise ConfigError if images of this size do not fit; say which ones do."""
        if self.only_size is not None and size != self.only_size:
            raise ConfigError(
                [f"image_size {size} does not fit {self.title}: it takes {self.only_size} pixels only"]
            )
        if size % self.step:
            lower = size // self.step * self.step
            near = [fits for fits in (lower, lower + self.step) if fits >= 32]
            raise ConfigError(
                [
                    f"image_size {size} does not fit {self.title}: its patches have {self.step} pixels; use "
                    f"{' or '.join(map(str, near))}"
                ]
            )

    def stage(self, name: str) -> list[nn.Module]:
        """The modules of a stage."""
        found = self.parts[name]
        assert isinstance(found, nn.Sequential)
        return list(found)

    # The classifier it came with

    def offer(self, concepts: Concepts | None) -> None:
        """Keep the classifier that belongs to the weights it has now, if it fits the width."""
        if concepts is not None and concepts.weight.shape[1] == self.width:
            self._concepts = concepts
            self._pretrained = self._hash(self.state_dict())

    def concepts(self) -> Concepts | None:
        """The classifier it was pretrained with; None if there is none, or if the weights have changed."""
        if self._concepts is None or self._hash(self.state_dict()) != self._pretrained:
            return None
        return self._concepts

    @staticmethod
    def _hash(state: Mapping[str, Tensor]) -> str:
        digest = hashlib.sha256()
        for key, value in state.items():
            if not key.endswith("num_batches_tracked"):
                digest.update(key.encode())
                digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    # What others need to know

    def described(self) -> dict[str, Any]:
        """Options that make it again without any file: the input, and what a subclass adds."""
        return {"mean": list(self.mean), "std": list(self.std)}

    def frozen_fingerprint(self) -> str:
        """The base class's, and what the model is: equal weights do not mean equal activations."""
        what = json.dumps({"title": self.title, **self.described()}, sort_keys=True, default=str)
        return hashlib.sha256(f"{what}{super().frozen_fingerprint()}".encode()).hexdigest()[:16]
