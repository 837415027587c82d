"""The small pieces that encoder, decoder and linker are built of."""

from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """How every part of a transformer layer joins its input: ``LayerNorm(x + Dropout(update))``."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, update: Tensor) -> Tensor:
        """X and update [..., D] to [..., D]."""
        return self.norm(x + self.dropout(update))


class FeedForward(nn.Module):
    """Two linear layers on every token, with the residual around them (the paper's FFN in a layer)."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(hidden, width)
        self.residual = Residual(width, dropout)
        nn.init.xavier_uniform_(self.expand.weight)
        nn.init.xavier_uniform_(self.contract.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] to [..., D]."""
        return self.residual(x, self.contract(self.dropout(F.relu(self.expand(x)))))


class ResidualAttention(nn.Module):
    """``x + M(x + P_x, s + P_s, s)``: the form of every multi-head attention in the paper.

    M is MultiHeadAttn of Section 3.1; positions join queries and keys, never values.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.residual = Residual(width, dropout)
        nn.init.xavier_uniform_(self.attention.out_proj.weight)

    def forward(
        self,
        x: Tensor,
        source: Tensor,
        x_position: Tensor | None = None,
        source_position: Tensor | None = None,
        ignore: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Let x read from a source.

        Args:
            x: [B, Q, D], what asks.
            source: [B, S, D], what is read.
            x_position: positions of x, broadcastable to [B, Q, D].
            source_position: positions of the source, broadcastable to [B, S, D].
            ignore: bool [B, S], True where the source may not be read; in every row some place is False.
            return_weights: whether to give the attention weights too.

        Returns:
            The new x [B, Q, D], and the weights [B, Q, S], averaged over heads, or None.
        """
        query = x if x_position is None else x + x_position
        key = source if source_position is None else source + source_position
        update, weights = self.attention(
            query, key, source, key_padding_mask=ignore, need_weights=return_weights
        )
        return self.residual(x, update), weights


class MLP(nn.Module):
    """Three linear layers with ReLU between them: the prediction heads of DETR and HOTR."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, out)

    def forward(self, x: Tensor) -> Tensor:
        """[..., width] to [..., out]."""
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


def cosine_similarity(x: Tensor, y: Tensor) -> Tensor:
    """Every x with every y: ``sim(x, y) = xᵀy / (‖x‖ ‖y‖)`` (the paper's Eq. sim).

    A zero vector is similar to nothing: 0, with a finite gradient.

    Args:
        x: [..., M, D].
        y: [..., N, D].

    Returns:
        [..., M, N] in [-1, 1].
    """
    # 1e-6 rather than the default 1e-12: still a number in float16, and it bounds the gradient at zero.
    return F.normalize(x, dim=-1, eps=1e-6) @ F.normalize(y, dim=-1, eps=1e-6).transpose(-1, -2)
