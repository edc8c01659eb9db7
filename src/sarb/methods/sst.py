"""SST, structured semantic transfer: pseudo-labels from co-occurrence and from similar images (Chen et al. 2022)."""

from __future__ import annotations

from torch import Tensor

from sarb.blends.bank import Bank
from sarb.blends.prototype import known_positives
from sarb.errors import check_share
from sarb.labels import Targets
from sarb.methods.pairs import support
from sarb.methods.together import from_all
from sarb.methods.transfer import Transfer
from sarb.networks.base import Network


class SST(Transfer):
    """L = ℓ(y) + ℓ(y ∪ intra) + ℓ(y ∪ cross) + w_pair L_pair + λ L_cst, see :class:`Transfer`.

    An unknown label is present if its similarity s is at least θ. Intra: s = Σ_{c'∈P} q_cc' / |P| with the pair
    head's q and the known positives P of the image. Cross: s = mean cosine to the newest known positives of the
    category, of all processes.

    Args:
        network: a network with a representation per category.
        start: first epoch (from 0) with pseudo-labels, or a share of all epochs.
        threshold: θ at ``start``.
        lowest: θ at the end.
        fall: epochs over which θ falls, or a share of all epochs.
        bank: newest positives kept per category.
        width: of the pair head.
        pair: w_pair.
        contrastive: λ.
        ramp: epochs over which w_pair and λ rise from 0.
        form: normalisation of the partial BCE.
    """

    def __init__(
        self,
        network: Network,
        *,
        start: float = 5,
        threshold: float = 0.95,
        lowest: float = 0.75,
        fall: float = 8,
        bank: int = 100,
        width: int = 512,
        pair: float = 10.0,
        contrastive: float = 0.05,
        ramp: float = 1.0,
        form: str = "batch",
    ) -> None:
        super().__init__(
            network, start=start, width=width, pair=pair, contrastive=contrastive, ramp=ramp, form=form
        )
        check_share("method.threshold", threshold)
        check_share("method.lowest", lowest)
        self.threshold = threshold
        self.lowest = lowest
        self.fall = fall
        self.bank = Bank(network.categories, network.dim, bank)

    def current_threshold(self) -> float:
        """θ of this epoch."""
        since = self.epoch - self.in_epochs(self.start)
        share = min(1.0, max(0, since) / max(1, self.in_epochs(self.fall)))
        return self.threshold - (self.threshold - self.lowest) * share

    def decide(
        self, reps: Tensor, pairs: Tensor, targets: Targets
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Compare both similarities with θ."""
        threshold = self.current_threshold()
        similarity, filled = self.bank.similarity(reps)
        intra = support(pairs, targets.present) >= threshold
        return {"intra": intra, "cross": (similarity >= threshold) & filled}, {}

    def remember(self, reps: Tensor, targets: Targets) -> None:
        """Add the known positives of all processes to the bank."""
        self.bank.add(*from_all(*known_positives(reps, targets)))

    def figures(self) -> dict[str, float]:
        """Return θ and the pseudo-labels of this epoch."""
        return {"threshold": self.current_threshold(), **super().figures()}
