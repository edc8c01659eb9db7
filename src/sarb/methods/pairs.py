"""The pair head of SST and HST: how likely two categories are present together in this image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sarb.labels import Targets
from sarb.losses.asymmetric import asymmetric

#: γ₊, γ₋ and margin of the asymmetric loss of pairs
ASYMMETRIC = (1.0, 2.0, 0.05)


class PairHead(nn.Module):
    """x_ij = v_ij · (W₂ relu(W₁ [P f_i, P f_j] + b₁) + b₂) + d_ij for each pair i < j.

    W₁ applies to both halves separately, and v_ij W₂ is one vector per pair, so the largest tensor is
    (B, C(C−1)/2, 2·width).

    Args:
        categories: C.
        dim: D.
        width: of a projected representation; a pair is twice as wide.
    """

    first: Tensor
    second: Tensor

    def __init__(self, categories: int, dim: int, width: int = 512) -> None:
        super().__init__()
        first, second = torch.triu_indices(categories, categories, 1)
        self.register_buffer("first", first, persistent=False)
        self.register_buffer("second", second, persistent=False)
        self.project = nn.Linear(dim, width)
        self.left = nn.Linear(width, 2 * width)
        self.right = nn.Linear(width, 2 * width, bias=False)
        self.join = nn.Linear(2 * width, 2 * width)
        self.weight = nn.Parameter(torch.randn(len(first), 2 * width) / (2 * width) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(len(first)))

    def forward(self, reps: Tensor) -> Tensor:
        """Representations (B, C, D) -> logits of the pairs (B, C(C−1)/2), in the order 12, 13, …, 23."""
        projected = self.project(reps)
        hidden = (self.left(projected)[:, self.first] + self.right(projected)[:, self.second]).relu()
        scores = torch.einsum("bpw,pw->bp", hidden, self.weight @ self.join.weight)
        return scores + self.weight @ self.join.bias + self.bias


def pair_loss(logits: Tensor, targets: Targets) -> Tensor:
    """Asymmetric loss of pairs (B, C(C−1)/2); 1 if both are known to be present, all else is 0.

    Unknown labels are among "all else", as in the authors' code.
    """
    present = targets.present
    first, second = torch.triu_indices(present.shape[1], present.shape[1], 1, device=present.device)
    both = (present[:, first] & present[:, second]).to(logits.dtype)
    return asymmetric(logits, Targets(both, torch.ones_like(both)), *ASYMMETRIC)


def support(logits: Tensor, present: Tensor, own: bool = True) -> Tensor:
    """s_c = Σ_{c'∈P} q_cc' / max(1, |P|), where P are the known positives of the image and q = σ of the pairs.

    Args:
        logits: (B, C(C−1)/2).
        present: (B, C) mask of P.
        own: q_cc = 1 counts for a known positive; without, s_c is what the other positives say about c.
    """
    batch, categories = present.shape
    first, second = torch.triu_indices(categories, categories, 1, device=present.device)
    q = logits.sigmoid()
    together = q.new_zeros(batch, categories, categories)
    together[:, first, second] = q
    together = together + together.transpose(1, 2)
    known = present.to(q.dtype)
    total = (together @ known[..., None])[..., 0]
    number = known.sum(1, keepdim=True).expand_as(total)
    if own:
        return (total + known) / number.clamp(min=1)
    return total / (number - known).clamp(min=1)
