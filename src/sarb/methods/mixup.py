"""Mixup: train on pairs of images, mixed as pixels (ip_mixup) or as grid features (fm_mixup)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.blends import draw_mixing, mix
from sarb.errors import ConfigError
from sarb.labels import Targets
from sarb.methods.base import Method
from sarb.networks.base import Network


class Mixup(Method):
    """L = λ ℓ(ŝ, y_n) + (1 − λ) ℓ(ŝ, y_m), with ŝ the logits of λ x_n + (1 − λ) x_m.

    Each ℓ uses only the known entries of its own image. The mixed images replace the plain ones. λ is usually
    close to 0 or 1, so many steps are nearly plain.

    Args:
        network: any network.
        concentration: a of λ ~ Beta(a, a); one λ per batch.
        form: normalisation of the partial BCE.
        positive_weight: see :class:`Method`.
    """

    on_top: ClassVar[bool] = False

    def __init__(
        self,
        network: Network,
        *,
        concentration: float = 0.2,
        form: str = "batch",
        positive_weight: float | str | None = None,
    ) -> None:
        super().__init__(network, form=form, positive_weight=positive_weight)
        if concentration <= 0:
            raise ConfigError([f"method.concentration must be more than 0, got {concentration}"])
        self.concentration = concentration

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "mixup"}: the loss for the labels of the image and of its partner."""
        share, partner = (
            part.to(batch.images.device) for part in draw_mixing(len(batch.index), self.concentration)
        )
        logits = self.network.head(self.mixed_maps(batch, share, partner))
        own = Targets.of(batch.labels)
        other = Targets(own.value[partner], own.weight[partner])
        return {"cls": share * self.loss(logits, own), "mixup": (1 - share) * self.loss(logits, other)}

    def mixed_maps(self, batch: Batch, share: Tensor, partner: Tensor) -> Tensor:
        """Grid features (B, D, H, W) of the mixed images."""
        raise NotImplementedError("a mixup defines mixed_maps")


class PixelMixup(Mixup):
    """IP-Mixup: mixes images, so it cannot use cached features."""

    cacheable: ClassVar[bool] = False

    def mixed_maps(self, batch: Batch, share: Tensor, partner: Tensor) -> Tensor:
        """Mix pixels, then compute the maps."""
        return self.network.maps(mix(batch.images, share, partner))


class FeatureMapMixup(Mixup):
    """FM-Mixup: mixes grid features, after the backbone and SSGRL's projection."""

    def mixed_maps(self, batch: Batch, share: Tensor, partner: Tensor) -> Tensor:
        """Compute the maps, then mix them."""
        return mix(self.maps(batch), share, partner)
