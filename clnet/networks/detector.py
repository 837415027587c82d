"""The View-Interactive Lesion Detector's decoder (Section 3.2): object queries that look across views."""

import torch
from torch import Tensor, nn

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import DetectionHead
from clnet.networks.layers import Residual, ResidualAttention
from clnet.networks.positions import BoxPosition


class DecoderLayer(nn.Module):
    """A layer of Deformable DETR's decoder, with the paper's inter-attention appended at its end.

    ``E^c* = E^c + M(E^c + P^c, E^m + P^m, E^m)`` for CC and vice versa for MLO, one M for both directions.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        levels: int,
        points: int,
        ffn: int,
        dropout: float,
        inter_attention: bool,
    ) -> None:
        super().__init__()
        self.self_attention = ResidualAttention(width, heads, dropout)
        self.cross_attention = DeformableAttention(width, heads, levels, points)
        self.cross_residual = Residual(width, dropout)
        self.ffn = FeedForward(width, ffn, dropout)
        self.inter_attention = ResidualAttention(width, heads, dropout) if inter_attention else None

    def forward(
        self,
        query: Tensor,
        position: Tensor,
        references: Tensor,
        features: ImageFeatures,
        partner_present: Tensor,
    ) -> Tensor:
        """Refine the embeddings of object queries.

        Args:
            query: [2B, N, D], embeddings of CC, MLO, CC, MLO, ….
            position: [2B, N, D], the object queries' positions P^c, P^m.
            references: [2B, N, L, 2 or 4] in units of each level's map.
            features: of the 2B images.
            partner_present: bool [2B], whether the other view of the breast exists. Where it does not, the
                inter-attention is left out, norm and all, as if the layer had none.

        Returns:
            [2B, N, D].
        """
        query, _ = self.self_attention(query, query, position, position)
        update = self.cross_attention(
            query + position, references, features.tokens, features.shapes, features.padding
        )
        query = self.ffn(self.cross_residual(query, update))
        if self.inter_attention is not None:
            informed, _ = self.inter_attention(query, swap_views(query), position, swap_views(position))
            query = torch.where(partner_present[:, None, None], informed, query)
        return query


class ViewInteractiveDecoder(nn.Module):
    """Two sets of object queries, one a view, through all decoder layers to scores and boxes."""

    def __init__(
        self,
        width: int,
        heads: int,
        levels: int,
        points: int,
        layers: int,
        ffn: int,
        dropout: float,
        object_queries: int,
        inter_attention: bool,
        box_refinement: bool,
        box_positions: bool,
    ) -> None:
        super().__init__()
        self.box_refinement = box_refinement
        self.box_position = BoxPosition(width) if box_positions else None
        # Position and first embedding of each query, side by side, for CC and for MLO.
        self.object_queries = nn.Parameter(torch.empty(2, object_queries, 2 * width).normal_())
        self.reference_points = nn.Linear(width, 2)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, levels, points, ffn, dropout, inter_attention) for _ in range(layers)
        )
        # One head for all layers, or, where each layer refines the box of the one before, one head a layer.
        self.heads = nn.ModuleList(
            DetectionHead(width, first=index == 0) for index in range(layers if box_refinement else 1)
        )
        nn.init.xavier_uniform_(self.reference_points.weight)
        nn.init.zeros_(self.reference_points.bias)

    def forward(self, features: ImageFeatures, present: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Detect lesions in both views.

        Args:
            features: of 2B images: CC, MLO, CC, MLO, ….
            present: bool [B, 2], which views exist.

        Returns:
            logits [layers, B, 2, N], boxes [layers, B, 2, N, 4] (cxcywh in [0, 1]), and for the linker the
            last layer's embeddings E^c, E^m [B, 2, N, D], which with box positions know where their boxes
            are, and the queries' learned positions P^c, P^m [B, 2, N, D].
        """
        pairs = present.shape[0]
        partner_present = present.flip(1).flatten()
        learned, query = self.object_queries.repeat(pairs, 1, 1).chunk(2, dim=-1)  # [2B, N, D] each
        reference = self.reference_points(learned).sigmoid()
        place: Tensor | float = 0.0
        logits, boxes = [], []
        for index, layer in enumerate(self.layers):
            query = layer(query, learned + place, features.places(reference), features, partner_present)
            head = self.heads[index if self.box_refinement else 0]
            layer_logits, layer_boxes = head(query, reference)
            logits.append(layer_logits)
            boxes.append(layer_boxes)
            if self.box_refinement:
                reference = layer_boxes.detach()
            if self.box_position is not None:
                place = self.box_position(layer_boxes)
        by_pair = (pairs, 2, learned.shape[1])
        return (
            torch.stack(logits).view(-1, *by_pair),
            torch.stack(boxes).view(-1, *by_pair, 4),
            (query + place).view(*by_pair, -1),
            learned.reshape(*by_pair, -1),
        )


def swap_views(x: Tensor) -> Tensor:
    """[2B, ...] of CC, MLO, CC, MLO, … to MLO, CC, MLO, CC, …."""
    return x.reshape(-1, 2, *x.shape[1:]).flip(1).flatten(0, 1)
