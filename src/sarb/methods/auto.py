"""Auto: fit the ladder of probe, evidence and neighbours on frozen features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sarb.auto.evidence import ConceptScores
from sarb.auto.ladder import Ladder, fit_ladder
from sarb.auto.names import tie
from sarb.auto.neighbours import BANK, COUNT
from sarb.errors import ConfigError
from sarb.labels import LabelMatrix
from sarb.methods.base import Method
from sarb.networks.base import Network
from sarb.progress import Advance


class Auto(Method):
    """Fit a network that is fitted, not trained step by step.

    Args:
        network: a network with the stage ``fit``: ``probe``.
        claims: what may be used besides images, known labels and pretrained features: ``"strict"`` nothing (the
            paper's setting), ``"no-names"`` the outputs of the pretrained classifier, ``"names"`` also what the
            categories are called.
        folds: parts of the known entries; every rung is judged on the part its model has not seen.
        neighbours: how many of the nearest training images vote; 0 for none.
        bank: at most this many training images are kept in the model, as feature vectors with their labels.
        residual: method that trains a semantic network (ssgrl) on what the ladder leaves over, such as
            ``"partial_bce"`` or ``"sarb"``; ``"none"`` for no such rung.
        residual_options: keyword options of that method.
        finetune: also train the last stage of the backbone, and keep it if held-out images gain.
        ties: category -> concepts it means, where the name does not say it; an empty list unties it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"maps", "fit"})
    fitted: ClassVar[bool] = True
    on_top: ClassVar[bool] = False
    search: ClassVar[Mapping[str, str]] = {"neighbours": "5..200:log"}

    def __init__(
        self,
        network: Network,
        *,
        claims: Literal["strict", "no-names", "names"] = "names",
        folds: int = 5,
        neighbours: int = COUNT,
        bank: int = BANK,
        residual: str | None = "none",
        residual_options: dict[str, Any] | None = None,
        finetune: bool = False,
        ties: dict[str, list[str]] | None = None,
    ) -> None:
        super().__init__(network)
        bounds = {"folds": (folds, 2), "neighbours": (neighbours, 0), "bank": (bank, 0)}
        problems = [
            f"method.{name} must be at least {least}, got {value}"
            for name, (value, least) in bounds.items()
            if value < least
        ]
        if problems:
            raise ConfigError(problems)
        self.claims = claims
        self.folds = folds
        self.neighbours = neighbours
        self.bank = bank
        self.residual = residual or "none"  # --set method.residual=none gives None
        self.residual_options: Mapping[str, Any] = residual_options or {}
        self.finetune = finetune
        self.ties: Mapping[str, list[str]] = ties or {}

    def prepare(self, labels: LabelMatrix) -> None:
        """Check the ties before the features are computed, which takes long."""
        if self.claims == "names":
            tie(labels.categories, self.ties)

    def is_tied(self, categories: Sequence[str]) -> bool:
        """Whether the name of at least one category is tied to a concept."""
        return self.claims == "names" and bool(tie(categories, self.ties).tied.any())

    def fit(
        self,
        pooled: NDArray[np.float32],
        labels: LabelMatrix,
        concepts: ConceptScores | None = None,
        seed: int = 0,
        judged: NDArray[np.bool_] | None = None,
        advance: Advance | None = None,
    ) -> Ladder:
        """Fit the ladder to pooled maps (N, D), labels (N, C) and concept probabilities of the same images.

        ``judged`` (N,) are the images whose known entries choose and judge; None for all.
        ``advance`` is told about each rung.
        """
        ties = tie(labels.categories, self.ties).matrix if self.claims == "names" else None
        return fit_ladder(
            pooled,
            labels,
            concepts,
            ties,
            claims=self.claims,
            folds=self.folds,
            seed=seed,
            neighbours=self.neighbours if self.bank else 0,
            bank=self.bank,
            judged=judged,
            advance=advance,
        )
