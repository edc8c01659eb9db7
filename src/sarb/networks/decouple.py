"""SD: semantic decoupling, the paper's default way to get a representation per category."""

from __future__ import annotations

from torch import Tensor, nn

from sarb.networks.scores import joint_scores


class SemanticDecoupling(nn.Module):
    r"""Attend to the grid once per category, guided by its word vector (Chen et al. 2019).

    With grid features x_p (D), word vector w_c and the last two linear layers combined, v = W3ᵀ w4:

        a_cp = softmax_p( vᵀ tanh(W1 x_p ⊙ W2 w_c) )        f_c = Σ_p a_cp x_p

    There is no non-linearity between W3 and w4, and their biases cancel in the softmax, so they are applied
    as one vector. Both remain parameters, as in the paper.

    Args:
        dim: D, width of the grid features.
        word_dim: width of a word vector.
        hidden: width of the joint space.
    """

    def __init__(self, dim: int, word_dim: int = 300, hidden: int = 512) -> None:
        super().__init__()
        self.image = nn.Linear(dim, hidden, bias=False)
        self.word = nn.Linear(word_dim, hidden, bias=False)
        self.joint = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)

    def attention(self, maps: Tensor, words: Tensor) -> Tensor:
        """Maps (B, D, H, W), words (C, W) -> attention (B, C, H, W); each map sums to 1."""
        grid = maps.flatten(2).transpose(1, 2)  # (B, P, D)
        # (B, P, hidden), (C, hidden)
        image = self.image(grid)
        word = self.word(words)
        direction = self.joint.weight.T @ self.score.weight[0]  # v, (hidden,)
        scores = joint_scores(image.flatten(0, 1), word, direction)  # (C, B·P)
        attention = scores.view(len(words), *image.shape[:2]).transpose(0, 1).softmax(-1)
        # maps.shape[0], because len(maps) would fix the batch size of an exported model
        return attention.reshape(maps.shape[0], len(words), *maps.shape[2:])

    def forward(self, maps: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, D, H, W), words (C, W) -> representations (B, C, D), attention (B, C, H, W)."""
        attention = self.attention(maps, words)
        return attention.flatten(2) @ maps.flatten(2).transpose(1, 2), attention
