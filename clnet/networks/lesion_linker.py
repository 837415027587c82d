"""The Lesion Linker (Section 3.3): link queries that find the same lesion in the detections of both views."""

import torch
from torch import Tensor, nn

from clnet.networks.dustbin import absent_candidates, append_dustbin, exclude
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import PRIOR_LOGIT
from clnet.networks.layers import MLP, ResidualAttention, cosine_similarity


class LinkerLayer(nn.Module):
    """Link queries read from one another, then from CC, then from MLO, then a feed-forward network."""

    def __init__(self, width: int, heads: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = ResidualAttention(width, heads, dropout)
        self.cc_attention = ResidualAttention(width, heads, dropout)
        self.mlo_attention = ResidualAttention(width, heads, dropout)
        self.ffn = FeedForward(width, ffn, dropout)

    def forward(
        self,
        link: Tensor,
        candidates: Tensor,
        positions: Tensor,
        absent: Tensor,
        return_attention: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Refine link queries.

        Args:
            link: Q [B, M, D].
            candidates: Ẽ [B, 2, N + 1, D], detection embeddings of each view and the dustbin.
            positions: P [B, 2, N + 1, D].
            absent: bool [B, 2, N + 1], True where there is no candidate because the view is missing.
            return_attention: whether to give the weights on the candidates.

        Returns:
            Q [B, M, D], and the weights [B, 2, M, N + 1] or None.
        """
        link, _ = self.self_attention(link, link)
        weights: list[Tensor] = []
        for view, attention in enumerate((self.cc_attention, self.mlo_attention)):
            link, view_weights = attention(
                link,
                candidates[:, view],
                source_position=positions[:, view],
                ignore=absent[:, view],
                return_weights=return_attention,
            )
            if view_weights is not None:
                weights.append(view_weights)
        return self.ffn(link), torch.stack(weights, dim=1) if weights else None


class LesionLinker(nn.Module):
    """From detection embeddings to M link triplets: a link embedding a view, and a score of the pair."""

    def __init__(
        self, width: int, heads: int, layers: int, ffn: int, dropout: float, link_queries: int
    ) -> None:
        super().__init__()
        self.link_queries = nn.Parameter(torch.empty(link_queries, width).normal_())
        self.dustbin = nn.Parameter(torch.empty(width).normal_())
        # The paper gives the dustbin no position; a learned one lets it be told from detections by place too.
        self.dustbin_position = nn.Parameter(torch.empty(width).normal_())
        self.layers = nn.ModuleList(LinkerLayer(width, heads, ffn, dropout) for _ in range(layers))
        self.cc_embedding = MLP(width, width)
        self.mlo_embedding = MLP(width, width)
        self.pair_score = MLP(width, 1)
        nn.init.constant_(self.pair_score.last.bias, PRIOR_LOGIT)

    def forward(
        self, embeddings: Tensor, positions: Tensor, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Link detections.

        Args:
            embeddings: E^c, E^m [B, 2, N, D].
            positions: P^c, P^m [B, 2, N, D].
            present: bool [B, 2]. Of a missing view only the dustbin can be read or linked.
            return_attention: whether to give the attention of link queries on detections (appendix).

        Returns:
            For every linker layer, the last one last:

            - ``link_similarity`` [layers, B, 2, M, N + 1]: sim(v_i, ẽ_j) in [-1, 1], the dustbin at index N;
              the lowest finite number for detections in a missing view.
            - ``pair_logits`` [layers, B, M]: the score s_i before its sigmoid.
            - ``link_attention`` [layers, B, 2, M, N + 1], only if asked for; each row sums to 1.
        """
        candidates = append_dustbin(embeddings, self.dustbin)
        positions = append_dustbin(positions, self.dustbin_position)
        absent = absent_candidates(present, embeddings.shape[2])
        link = self.link_queries.expand(present.shape[0], -1, -1)
        similarity, scores, attention = [], [], []
        for layer in self.layers:
            link, weights = layer(link, candidates, positions, absent, return_attention)
            link_embeddings = torch.stack([self.cc_embedding(link), self.mlo_embedding(link)], dim=1)
            similarity.append(exclude(cosine_similarity(link_embeddings, candidates), absent[:, :, None]))
            scores.append(self.pair_score(link).squeeze(-1))
            if weights is not None:
                attention.append(weights)
        outputs = {"link_similarity": torch.stack(similarity), "pair_logits": torch.stack(scores)}
        if attention:
            outputs["link_attention"] = torch.stack(attention)
        return outputs
