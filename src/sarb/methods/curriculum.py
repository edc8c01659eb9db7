"""Curriculum labeling: train, label what the network is sure about, train again from scratch, repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn

from sarb.batches.loader import Batch
from sarb.errors import ConfigError, check_choice
from sarb.labels import LabelMatrix, Targets
from sarb.methods.base import Method
from sarb.methods.strategies import STRATEGIES, Opinion, agreement, pseudo_labels
from sarb.methods.together import counted, over_all
from sarb.networks.base import Network


class Curriculum(Method):
    """L = L_cls(known) + ω L_cls(pseudo-labels), with pseudo-labels from the network of the previous round.

    The first round has no pseudo-labels. At the end of each round except the last, all unknown entries are
    labelled again, and the network restarts from its initial weights. The run costs ``rounds`` times as much
    as one round.

    Args:
        network: any network; strategy ``"uncertainty"`` needs one with dropout.
        strategy: a name in ``STRATEGIES``, see :func:`sarb.methods.strategies.pseudo_labels`.
        threshold: θ of the strategy; None for the default in ``STRATEGIES``.
        rounds: how often the whole schedule runs.
        weight: ω. Each term is a mean, so at ω = 1 all known labels together count as much as all
            pseudo-labels.
        passes: T of strategy ``"uncertainty"``: over T passes with dropout, x is the mean logit and u the
            standard deviation of the probability.
        members: M of strategy ``"ensemble"``: the networks after the last M epochs of the round.
        form: normalisation of the partial BCE, of both terms.
        positive_weight: see :class:`Method`.

    Attributes:
        pseudo_value, pseudo_weight: (N, C), the pseudo-labels of all training images.
        agreed: (N, C), for strategy ``"ensemble"``: what the members so far agree on; NaN before the first.
    """

    unset: ClassVar[frozenset[str]] = frozenset({"agreed"})
    pseudo_value: Tensor
    pseudo_weight: Tensor
    agreed: Tensor

    def __init__(
        self,
        network: Network,
        *,
        strategy: str = "score",
        threshold: float | None = None,
        rounds: int = 3,
        weight: float = 1.0,
        passes: int = 20,
        members: int = 3,
        form: str = "batch",
        positive_weight: float | str | None = None,
    ) -> None:
        super().__init__(network, form=form, positive_weight=positive_weight)
        check_choice("method.strategy", strategy, STRATEGIES)
        self.strategy = strategy
        self.weight = weight
        self.rounds = rounds
        self.threshold = STRATEGIES[strategy][1] if threshold is None else threshold
        self.passes = passes if strategy == "uncertainty" else 1
        self.members = members
        self.completed = 0
        parts = [part for name, part in network.named_modules() if not name.startswith("backbone.")]
        self._dropouts = [part for part in parts if isinstance(part, nn.Dropout) and part.p > 0]
        least = {"threshold": (self.threshold, 0), "rounds": (rounds, 1), "weight": (weight, 0)}
        least |= {"passes": (passes, 2), "members": (members, 1)}
        problems = [
            f"method.{key} must be at least {low}, got {it}" for key, (it, low) in least.items() if it < low
        ]
        if strategy == "top" and self.threshold > 1:
            problems.append(
                f"method.threshold of strategy 'top' is a share of at most 1, got {self.threshold:g}"
            )
        if strategy == "uncertainty" and not self._dropouts:
            problems.append(
                f"strategy 'uncertainty' needs dropout, but network {type(network).__name__} has none: set "
                "network.dropout=0.2 (networks pooled, ssgrl, kggr) or choose another method.strategy"
            )
        if problems:
            raise ConfigError(problems)

    def prepare(self, labels: LabelMatrix) -> None:
        """Allocate the pseudo-labels."""
        super().prepare(labels)
        empty = torch.zeros(labels.shape, device=self.positive_weight.device)
        self.register_buffer("pseudo_value", empty.bool())
        self.register_buffer("pseudo_weight", empty.bool())
        if self.strategy == "ensemble":
            self.register_buffer("agreed", empty.fill_(torch.nan))

    def begin_epoch(self, epoch: int, loader: Callable[[], Iterable[Batch]]) -> None:
        """Predict with the network of the previous epoch, if it is a member of the ensemble."""
        super().begin_epoch(epoch, loader)
        self.completed = 0
        done, within = divmod(epoch, max(1, self.epochs))
        member = within >= max(1, self.epochs - self.members + 1) and done < self.rounds - 1
        if self.strategy == "ensemble" and member:
            self._ask(loader)

    def end_round(self, loader: Callable[[], Iterable[Batch]]) -> None:
        """Label all unknown entries again."""
        opinion, unknown, index = self._ask(loader)
        pseudo = pseudo_labels(self.strategy, opinion, unknown, self.threshold)
        self.pseudo_value.zero_()
        self.pseudo_weight.zero_()
        self.pseudo_value[index] = pseudo.value.bool()
        self.pseudo_weight[index] = pseudo.weight.bool()
        if self.strategy == "ensemble":
            self.agreed.fill_(torch.nan)

    @torch.no_grad()
    def _ask(self, loader: Callable[[], Iterable[Batch]]) -> tuple[Opinion, Tensor, Tensor]:
        """Return the network's opinion on all readable training images, their unknown entries and indices."""
        training = self.training
        self.eval()
        for part in self._dropouts:
            part.train(self.passes > 1)

        def answer(batch: Batch) -> tuple[Tensor, ...]:
            maps = self.maps(batch)
            logits = torch.stack([self.network.head(maps).float() for _ in range(self.passes)])
            uncertainty = logits.sigmoid().std(0, correction=0)
            return logits.mean(0), uncertainty, Targets.of(batch.labels).weight == 0, batch.index

        score, uncertainty, unknown, index = over_all(loader, answer)
        self.train(training)
        if self.strategy == "ensemble":
            before = self.agreed[index]
            score = torch.where(before.isnan(), score, agreement(before, score))
            self.agreed[index] = score
        return Opinion(score, uncertainty), unknown, index

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Batch -> {"cls", "curriculum"}; the latter is 0 in the first round."""
        logits = self.network.head(self.maps(batch))
        pseudo = Targets(self.pseudo_value[batch.index].float(), self.pseudo_weight[batch.index].float())
        self.completed += counted(pseudo.weight)
        cls = self.loss(logits, Targets.of(batch.labels))
        return {"cls": cls, "curriculum": self.weight * self.loss(logits, pseudo)}

    def figures(self) -> dict[str, float]:
        """Return how many unknown labels had a pseudo-label in this epoch."""
        return {"completed_curriculum": self.completed}
