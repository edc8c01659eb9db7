"""Semantic transfer, what SST and HST share: pseudo-labels from pairs in the image and from other images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from sarb.batches.loader import Batch
from sarb.labels import Targets
from sarb.methods.base import Rate
from sarb.methods.pairs import PairHead, pair_loss
from sarb.methods.semantic import SemanticMethod
from sarb.methods.together import pool
from sarb.networks.base import Network


class Transfer(SemanticMethod):
    """L = ℓ(y) + ℓ(y ∪ intra) + ℓ(y ∪ cross) + w_pair L_pair + λ L_cst; known labels count three times.

    The last two rise over ``ramp`` epochs. A subclass decides which unknown labels become present. None becomes
    absent.

    Args:
        network: a network with a representation per category.
        start: first epoch (from 0) with pseudo-labels, or a share of all epochs.
        width: of the pair head.
        pair: w_pair.
        contrastive: λ.
        ramp: in epochs.
        form: normalisation of the partial BCE.
    """

    completes: ClassVar[tuple[str, ...]] = ("intra", "cross")
    rates: Mapping[str, Rate] = {"pairs.": Rate(1.0, decay=True)}

    def __init__(
        self,
        network: Network,
        *,
        start: float,
        width: int,
        pair: float,
        contrastive: float,
        ramp: float,
        form: str,
    ) -> None:
        super().__init__(network, start=start, contrastive=contrastive, ramp=ramp, form=form)
        self.pair = pair
        self.pairs = PairHead(network.categories, network.dim, width)

    def decide(
        self, reps: Tensor, pairs: Tensor, targets: Targets
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Masks (B, C) "intra" and "cross" of what looks present, and further loss terms.

        Args:
            reps: (B, C, D).
            pairs: logits (B, C(C−1)/2).
            targets: known labels.
        """
        raise NotImplementedError("a transfer method defines decide")

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "pair", "cst", "intra", "cross"}, the last two from epoch ``start`` on."""
        targets = Targets.of(batch.labels)
        reps = self.network.represent(self.maps(batch))
        logits = self.network.classify(reps)
        pairs = self.pairs(reps)
        shared = pool(reps, targets)
        pair = self.pair * self.rise * pair_loss(pairs, targets)
        terms = {"cls": shared.keep(self.loss(logits, targets)), "pair": pair}
        if self.contrastive > 0:
            terms["cst"] = self.compactness(shared)
        if self.completing:
            sure, more = self.decide(reps, pairs, targets)
            terms |= {name: self.loss(logits, self._completed(targets, name, sure[name])) for name in sure}
            terms |= more
        self.remember(reps, targets)
        return terms

    def remember(self, reps: Tensor, targets: Targets) -> None:
        """Called at the end of each step with representations (B, C, D)."""

    def _completed(self, targets: Targets, name: str, sure: Tensor) -> Targets:
        """The known targets and, where unknown and sure, a present one; counted under a name."""
        chosen = sure & (targets.weight == 0)
        self.count(name, chosen)
        return Targets(targets.value.masked_fill(chosen, 1), targets.weight.masked_fill(chosen, 1))
