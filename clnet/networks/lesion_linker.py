"""The Lesion Linker (Section 3.3): link queries that find the same lesion in the detections of both views."""

import torch
from torch import Tensor, nn

from clnet.losses.link import LinkLoss
from clnet.networks.dustbin import absent_candidates, append_dustbin, exclude
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import PRIOR_LOGIT
from clnet.networks.layers import MLP, ResidualAttention, cosine_similarity
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher


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


class LesionLinker(Matcher):
    """From detection embeddings to M link triplets: a link embedding per view, and a score of the pair.

    Args:
        width: D of the detection embeddings.
        heads: of every attention.
        layers: of the linker.
        ffn: hidden width of the feed-forward networks.
        dropout: in every layer.
        link_queries: M.
        loss: L_Link.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        ffn: int,
        dropout: float,
        link_queries: int,
        loss: LinkLoss,
    ) -> None:
        super().__init__()
        self.width = width
        self.link_loss = loss
        self.link_queries = nn.Parameter(torch.empty(link_queries, width).normal_())
        self.dustbin = nn.Parameter(torch.empty(width).normal_())
        # The paper gives the dustbin no position; a learned one tells it from detections by place too.
        self.dustbin_position = nn.Parameter(torch.empty(width).normal_())
        self.layers = nn.ModuleList(LinkerLayer(width, heads, ffn, dropout) for _ in range(layers))
        self.cc_embedding = MLP(width, width)
        self.mlo_embedding = MLP(width, width)
        self.pair_score = MLP(width, 1)
        nn.init.constant_(self.pair_score.last.bias, PRIOR_LOGIT)

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Link detections; see `Matcher.forward`.

        Returns:
            For every linker layer, the last one last:

            - ``link_similarity`` [layers, B, 2, M, N + 1]: sim(v_i, ẽ_j) in [-1, 1], the dustbin at index N;
              the lowest finite number for detections in a missing view.
            - ``pair_logits`` [layers, B, M]: the score s_i before its sigmoid.

            If asked for, ``link_attention`` [B, M, 2, N + 1] of the last layer (appendix); each row sums
            to 1.
        """
        candidates = append_dustbin(detections.embeddings, self.dustbin)
        positions = append_dustbin(detections.positions, self.dustbin_position)
        absent = absent_candidates(present, detections.embeddings.shape[2])
        link = self.link_queries.expand(present.shape[0], -1, -1)
        similarity, scores, attention = [], [], None
        for layer in self.layers:
            link, attention = layer(link, candidates, positions, absent, return_attention)
            link_embeddings = torch.stack([self.cc_embedding(link), self.mlo_embedding(link)], dim=1)
            similarity.append(exclude(cosine_similarity(link_embeddings, candidates), absent[:, :, None]))
            scores.append(self.pair_score(link).squeeze(-1))
        outputs = {"link_similarity": torch.stack(similarity), "pair_logits": torch.stack(scores)}
        if attention is not None:
            outputs["link_attention"] = attention.transpose(1, 2)
        return outputs

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """L_Link of every linker layer; see `Matcher.loss`."""
        return self.link_loss(outputs["link_similarity"], outputs["pair_logits"], candidates, breast)

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """One pair per link query: ``c_i = argmax_j sim(v^c_i, ẽ^c_j)``, the same for MLO; score s_i."""
        best = outputs["link_similarity"][-1].argmax(-1)  # [B, 2, M]
        return LesionPairs(best.transpose(1, 2), outputs["pair_logits"][-1].sigmoid())
