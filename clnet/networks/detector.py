"""The View-Interactive Lesion Detector's decoder (Section 3.2): object queries that look across views."""

import torch
from torch import Tensor, nn

from clnet.losses.assignment import assign_detections
from clnet.losses.detection import DetectionLoss
from clnet.losses.targets import LesionBoxes
from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.feed_forward import FeedForward
from clnet.networks.heads import DetectionHead
from clnet.networks.layers import Residual, ResidualAttention
from clnet.networks.matcher import DetectorOutputs
from clnet.networks.settings import require, require_heads
from clnet.networks.views import swap_views, to_images, to_pairs


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
        reference: Tensor,
        features: ImageFeatures,
        partner_present: Tensor,
    ) -> Tensor:
        """Refine the embeddings of object queries.

        Args:
            query: [2B, N, D], embeddings of CC, MLO, CC, MLO, ….
            position: [2B, N, D], the object queries' positions P^c, P^m.
            reference: [2B, N, 2 or 4], a point or a box per query.
            features: of the 2B images.
            partner_present: bool [2B], whether the other view of the breast exists. Where it does not, the
                inter-attention is left out, norm and all, as if the layer had none.

        Returns:
            [2B, N, D].
        """
        query, _ = self.self_attention(query, query, position, position)
        update = self.cross_attention(query + position, reference, features.tokens, features.shapes)
        query = self.ffn(self.cross_residual(query, update))
        if self.inter_attention is not None:
            informed, _ = self.inter_attention(query, swap_views(query), position, swap_views(position))
            query = torch.where(partner_present[:, None, None], informed, query)
        return query


class Detector(nn.Module):
    """The base of all detectors: from image tokens to scored boxes in both views."""

    width: int

    def forward(self, features: ImageFeatures, present: Tensor) -> DetectorOutputs:
        """Detect lesions in both views.

        Args:
            features: of 2B images, see `clnet.networks.views`.
            present: bool [B, 2], which views exist.
        """
        raise NotImplementedError

    def assign(self, cost: Tensor, lesions: LesionBoxes) -> Tensor:
        """The object query of each of T boxes, int [layers, T], given their cost [layers, T, N]."""
        return assign_detections(cost, lesions)

    def loss(
        self, outputs: dict[str, Tensor], lesions: LesionBoxes, present: Tensor, detection: DetectionLoss
    ) -> dict[str, Tensor]:
        """The parts of the loss beyond `DetectionLoss` of the object queries; by default none.

        Args:
            outputs: of the network, in float32.
            lesions: T boxes.
            present: bool [B, 2]; a missing view adds nothing.
            detection: the loss of the object queries.
        """
        return {}


class ViewInteractiveDetector(Detector):
    """Two sets of object queries, one per view, through all decoder layers to scores and boxes.

    Args:
        width: D of the image tokens.
        heads: of every attention.
        levels: L of the image tokens.
        points: sampled by deformable attention per head and level.
        layers: of the decoder.
        ffn: hidden width of the feed-forward networks.
        dropout: in every layer.
        object_queries: N, candidates per view.
        inter_attention: whether every layer ends with attention to the other view; without, and without a
            matcher, this is Deformable DETR.
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
        object_queries: int,
        inter_attention: bool,
        box_refinement: bool,
    ) -> None:
        super().__init__()
        require_heads(width, heads)
        require(layers >= 1, f"layers: {layers} of the detector must be at least 1")
        self.width = width
        self.box_refinement = box_refinement
        # Position and first embedding of each query, side by side, for CC and for MLO.
        self.object_queries = nn.Parameter(torch.empty(2, object_queries, 2 * width).normal_())
        self.reference_points = nn.Linear(width, 2)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, levels, points, ffn, dropout, inter_attention) for _ in range(layers)
        )
        # One head for all layers, or, where each layer refines the box of the one before, one per layer.
        self.heads = nn.ModuleList(
            DetectionHead(width, first=index == 0) for index in range(layers if box_refinement else 1)
        )
        nn.init.xavier_uniform_(self.reference_points.weight)
        nn.init.zeros_(self.reference_points.bias)

    def forward(self, features: ImageFeatures, present: Tensor) -> DetectorOutputs:
        """Detect lesions in both views; see `Detector.forward`."""
        partner_present = to_images(present.flip(1))
        position, query = self.object_queries.repeat(present.shape[0], 1, 1).chunk(
            2, dim=-1
        )  # [2B, N, D] each
        reference = self.reference_points(position).sigmoid()
        logits, boxes = [], []
        for index, layer in enumerate(self.layers):
            query = layer(query, position, reference, features, partner_present)
            head = self.heads[index if self.box_refinement else 0]
            layer_logits, layer_boxes = head(query, reference)
            logits.append(to_pairs(layer_logits))
            boxes.append(to_pairs(layer_boxes))
            if self.box_refinement:
                reference = layer_boxes.detach()
        return DetectorOutputs(
            torch.stack(logits), torch.stack(boxes), to_pairs(query), to_pairs(position), features.content, {}
        )
