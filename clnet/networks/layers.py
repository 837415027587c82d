"""The small pieces that encoder, decoder and linker are built of."""

import torch
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


class MultiHeadAttention(nn.Module):
    """``M(Q, K, V) = Concat(H_1, …, H_m)``, ``H_i = softmax(QW_i (KW_i)ᵀ / √d_k) VW_i``, then a projection.

    `torch.nn.MultiheadAttention` computes the same, but a trace of it is bound to one batch size.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        for projection in (self.query, self.key, self.value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        ignore: Tensor | None,
        bias: Tensor | None,
        return_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend, see `ResidualAttention.forward`."""
        query, key, value = (
            projected.view(projected.shape[0], projected.shape[1], self.heads, -1).transpose(1, 2)
            for projected in (self.query(query), self.key(key), self.value(value))
        )  # [B, heads, Q or S, D / heads]
        mask = bias if bias is None else bias.to(query.dtype)
        if ignore is not None:
            mask = ~ignore[:, None, None, :]
        dropout = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(query, key, value, mask, dropout)
        weights = _attention_weights(query, key, mask) if return_weights else None
        return self.output(heads.transpose(1, 2).flatten(2)), weights


def _attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """The weights [B, Q, S] that the fused attention keeps to itself, averaged over heads."""
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).mean(1)


class ResidualAttention(nn.Module):
    """``x + M(x + P_x, s + P_s, s)``: the form of every multi-head attention in the paper.

    Positions join queries and keys, never values.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(width, heads, dropout)
        self.residual = Residual(width, dropout)

    def forward(
        self,
        x: Tensor,
        source: Tensor,
        x_position: Tensor | None = None,
        source_position: Tensor | None = None,
        ignore: Tensor | None = None,
        bias: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Let x read from a source.

        Args:
            x: [B, Q, D], what asks.
            source: [B, S, D], what is read.
            x_position: positions of x, broadcastable to [B, Q, D].
            source_position: positions of the source, broadcastable to [B, S, D].
            ignore: bool [B, S], True where the source may not be read; in every row some place is False.
            bias: [B, heads, Q, S], added to the logits of the attention; not together with `ignore`.
            return_weights: whether to give the attention weights too.

        Returns:
            The new x [B, Q, D], and the weights [B, Q, S], averaged over heads, or None.
        """
        query = x if x_position is None else x + x_position
        key = source if source_position is None else source + source_position
        update, weights = self.attention(query, key, source, ignore, bias, return_weights)
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
