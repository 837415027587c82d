"""Paired Lesion Query (appendix): the alternative in which one query finds a lesion in both views at once."""

from typing import cast

import torch
from torch import Tensor, nn

from clnet.losses.assignment import assign_paired_queries
from clnet.losses.targets import LesionBoxes
from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.detector import Detector
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import DetectionHead
from clnet.networks.layers import Residual, ResidualAttention
from clnet.networks.matcher import DetectorOutputs, LesionPairs, Matcher
from clnet.networks.settings import require, require_heads
from clnet.networks.views import to_pairs


class PairedDecoderLayer(nn.Module):
    """Paired queries read from one another, then from the CC image, then from the MLO image, then an FFN."""

    def __init__(self, width: int, heads: int, levels: int, points: int, ffn: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = ResidualAttention(width, heads, dropout)
        self.view_attentions = nn.ModuleList(
            DeformableAttention(width, heads, levels, points) for _ in range(2)
        )
        self.view_residuals = nn.ModuleList(Residual(width, dropout) for _ in range(2))
        self.ffn = FeedForward(width, ffn, dropout)

    def forward(
        self, query: Tensor, position: Tensor, references: Tensor, views: list[ImageFeatures], present: Tensor
    ) -> Tensor:
        """Refine paired queries.

        Args:
            query: [B, N, D].
            position: [B, N, D].
            references: [B, 2, N, 2 or 4], a point or a box in each view.
            views: features of the CC and of the MLO images.
            present: bool [B, 2]; a missing view is not read.

        Returns:
            [B, N, D].
        """
        query, _ = self.self_attention(query, query, position, position)
        for view, features in enumerate(views):
            attention, places = self.view_attentions[view], references[:, view]
            update = attention(query + position, places, features.tokens, features.shapes)
            informed = self.view_residuals[view](query, update)
            query = torch.where(present[:, view, None, None], informed, query)
        return self.ffn(query)


class PairedQueryDetector(Detector):
    """Paired lesion queries in place of object queries: query i finds the same lesion in CC and in MLO.

    Args:
        width: D of the image tokens.
        heads: of every attention.
        levels: L of the image tokens.
        points: sampled by deformable attention per head and level.
        layers: of the decoder; the paper takes 3.
        ffn: hidden width of the feed-forward networks.
        dropout: in every layer.
        paired_queries: N.
        box_refinement: whether each layer refines the boxes of the one before.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        levels: int,
        points: int,
        layers: int,
        ffn: int,
        dropout: float,
        paired_queries: int,
        box_refinement: bool,
    ) -> None:
        super().__init__()
        require_heads(width, heads)
        require(layers >= 1, f"layers: {layers} of the detector must be at least 1")
        self.width = width
        self.box_refinement = box_refinement
        # Position and first embedding of each query, side by side.
        self.paired_queries = nn.Parameter(torch.empty(paired_queries, 2 * width).normal_())
        self.reference_points = nn.ModuleList(nn.Linear(width, 2) for _ in range(2))
        self.layers = nn.ModuleList(
            PairedDecoderLayer(width, heads, levels, points, ffn, dropout) for _ in range(layers)
        )
        # By layer, as in `ViewInteractiveDetector`, and by view.
        self.heads = nn.ModuleList(
            nn.ModuleList(DetectionHead(width, first=index == 0) for _ in range(2))
            for index in range(layers if box_refinement else 1)
        )

    def forward(self, features: ImageFeatures, present: Tensor) -> DetectorOutputs:
        """Find lesions in both views; index i in CC and index i in MLO are the same lesion.

        Args:
            features: of 2B images, see `clnet.networks.views`.
            present: bool [B, 2], which views exist.
        """
        views = [features._replace(tokens=tokens) for tokens in to_pairs(features.tokens).unbind(1)]
        position, query = self.paired_queries.expand(present.shape[0], -1, -1).chunk(2, dim=-1)
        references = torch.stack([point(position).sigmoid() for point in self.reference_points], dim=1)
        logits, boxes = [], []
        for index, layer in enumerate(self.layers):
            query = layer(query, position, references, views, present)
            heads = cast(nn.ModuleList, self.heads[index if self.box_refinement else 0])
            predictions = [head(query, references[:, view]) for view, head in enumerate(heads)]
            logits.append(torch.stack([view_logits for view_logits, _ in predictions], dim=1))
            boxes.append(torch.stack([view_boxes for _, view_boxes in predictions], dim=1))
            if self.box_refinement:
                references = boxes[-1].detach()
        both = (-1, 2, -1, -1)
        return DetectorOutputs(
            torch.stack(logits),
            torch.stack(boxes),
            query[:, None].expand(both),
            position[:, None].expand(both),
            features.content,
            {},
        )

    def assign(self, cost: Tensor, lesions: LesionBoxes) -> Tensor:
        """The paired query of each of T boxes, int [layers, T], given their cost [layers, T, N]."""
        return assign_paired_queries(cost, lesions)


class PairedQueryMatcher(Matcher):
    """A paired lesion query is a pair by itself; nothing is learned beyond the detector's own loss."""

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """``paired_logits`` [B, N]: of the views that exist, the less certain one's."""
        return {"paired_logits": detections.logits[-1].masked_fill(~present[:, :, None], torch.inf).amin(1)}

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """No loss of its own."""
        return {}

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """Query i with query i, as certain as the less certain of its views."""
        scores = outputs["paired_logits"].sigmoid()  # [B, N]
        every = torch.arange(scores.shape[-1], device=scores.device).expand_as(scores)
        return LesionPairs(torch.stack([every, every], dim=-1), scores)
