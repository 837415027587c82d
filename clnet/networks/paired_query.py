"""Paired Lesion Query (appendix): the alternative in which one query finds a lesion in both views at once."""

from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.encoder import ImageEncoder
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import DetectionHead
from clnet.networks.layers import Residual, ResidualAttention
from clnet.networks.settings import check_sizes


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
            references: [B, 2, N, 2 or 4], a point or a box in each view, in units of the valid image.
            views: features of the CC and of the MLO images.
            present: bool [B, 2]; a missing view is not read.

        Returns:
            [B, N, D].
        """
        query, _ = self.self_attention(query, query, position, position)
        for view, features in enumerate(views):
            places = features.places(references[:, view])
            update = self.view_attentions[view](
                query + position, places, features.tokens, features.shapes, features.padding
            )
            informed = self.view_residuals[view](query, update)
            query = torch.where(present[:, view, None, None], informed, query)
        return self.ffn(query)


class PairedLesionQuery(nn.Module):
    """The whole network with paired lesion queries in place of object queries and link queries.

    Settings mean the same as in `CLNet`; the paper takes 3 decoder layers.
    """

    def __init__(
        self,
        backbone: str = "light",
        backbone_weights: str | Path | None = None,
        feature_levels: int = 3,
        width: int = 64,
        heads: int = 4,
        points: int = 4,
        encoder_layers: int = 0,
        decoder_layers: int = 3,
        ffn: int = 128,
        dropout: float = 0.0,
        paired_queries: int = 20,
        box_refinement: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(width, heads, feature_levels, decoder_layers)
        self.box_refinement = box_refinement
        self.encoder = ImageEncoder(
            backbone, backbone_weights, feature_levels, width, heads, points, encoder_layers, ffn, dropout
        )
        # Position and first embedding of each query, side by side.
        self.paired_queries = nn.Parameter(torch.empty(paired_queries, 2 * width).normal_())
        self.reference_points = nn.ModuleList(nn.Linear(width, 2) for _ in range(2))
        self.layers = nn.ModuleList(
            PairedDecoderLayer(width, heads, feature_levels, points, ffn, dropout)
            for _ in range(decoder_layers)
        )
        # By layer, as in `ViewInteractiveDecoder`, and by view.
        self.heads = nn.ModuleList(
            nn.ModuleList(DetectionHead(width, first=index == 0) for _ in range(2))
            for index in range(decoder_layers if box_refinement else 1)
        )

    def forward(
        self, image: Tensor, present: Tensor | None = None, valid_size: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Find lesions in both views.

        Args:
            image: [B, 2, H, W], CC and MLO.
            present: bool [B, 2], which views exist; None if all.
            valid_size: int [B, 2, 2], (rows, columns) of each view within its canvas; None if it fills it.

        Returns:
            ``logits`` [layers, B, 2, N] and ``boxes`` [layers, B, 2, N, 4] as of `CLNet`; index i in CC and
            index i in MLO are the same lesion. ``paired_logits`` [B, N]: of its views
            that exist, the less sure one's.
        """
        if present is None:
            present = torch.ones(image.shape[:2], dtype=torch.bool, device=image.device)
        features = self.encoder(
            image.flatten(0, 1)[:, None], None if valid_size is None else valid_size.flatten(0, 1)
        )
        views = [features.of_view(view) for view in range(2)]
        position, query = self.paired_queries.expand(image.shape[0], -1, -1).chunk(2, dim=-1)
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
        return {
            "logits": torch.stack(logits),
            "boxes": torch.stack(boxes),
            "paired_logits": logits[-1].masked_fill(~present[:, :, None], torch.inf).amin(1),
        }
