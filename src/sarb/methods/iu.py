"""IU, ignore unknown: the known labels only, divided by all entries (Cole et al. 2021)."""

from __future__ import annotations

from sarb.methods.partial_bce import PartialBCE
from sarb.networks.base import Network


class IU(PartialBCE):
    """L = Σ_known ℓ / (B·C); partial BCE with another denominator.

    Args:
        network: any network.
    """

    def __init__(self, network: Network) -> None:
        super().__init__(network, form="entries")
