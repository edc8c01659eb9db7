"""SAM: semantic attention, the alternative to semantic decoupling; it needs no word vectors."""

from __future__ import annotations

from torch import Tensor, nn


class SemanticAttention(nn.Module):
    r"""One sigmoid mask per category over the grid (Ye et al. 2020).

        m_cp = σ(W_m x_p)_c        f_c = Σ_p m_cp (W_t x_p)          an unnormalised sum over the grid

    Args:
        dim: D, width of the grid features and of the representation.
        categories: C.
        normalise: multiply the sum by 2/(H·W), so that masks of ½ give the plain average for any grid size.
            The paper's sum grows with the grid and saturates the tanh after it.
    """

    def __init__(self, dim: int, categories: int, normalise: bool = False) -> None:
        super().__init__()
        self.normalise = normalise
        self.mask = nn.Conv2d(dim, categories, 1, bias=False)
        self.transform = nn.Conv2d(dim, dim, 1)

    def attention(self, maps: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> masks (B, C, H, W) in (0, 1)."""
        out: Tensor = self.mask(maps).sigmoid()
        return out

    def values(self, maps: Tensor) -> Tensor:
        """Maps (B, D, H, W) -> the grid that the masks sum up (B, D, H, W)."""
        scale = 2 / maps[0, 0].numel() if self.normalise else 1
        out: Tensor = self.transform(maps) * scale
        return out

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, D, H, W) -> representations (B, C, D), masks (B, C, H, W)."""
        masks = self.attention(maps)
        weights = masks.flatten(2)
        if self.normalise:
            weights = weights * (2 / weights.shape[-1])
        return weights @ self.transform(maps).flatten(2).transpose(1, 2), masks
