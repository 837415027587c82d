"""A View-Interactive Lesion Detector whose object queries are proposals of the image encoder."""

import torch
from torch import Tensor, nn

from clnet.losses.detection import DetectionLoss
from clnet.losses.proposal import ProposalLoss
from clnet.losses.targets import LesionBoxes
from clnet.networks.detector import DecoderLayer, Detector
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.geometry import CommonFrame, GeometricInterAttention
from clnet.networks.heads import DetectionHead
from clnet.networks.matcher import DetectorOutputs
from clnet.networks.proposals import BoxPosition, ProposalHead
from clnet.networks.settings import require, require_heads
from clnet.networks.views import to_images, to_pairs


class ProposalDetector(Detector):
    """Object queries begin at the N best proposals of each view; every layer knows the boxes it refines.

    Args:
        width: D of the image tokens.
        heads: of every attention.
        levels: L of the image tokens.
        points: sampled by deformable attention per head and level.
        layers: of the decoder.
        ffn: hidden width of the feed-forward networks.
        dropout: in every layer.
        object_queries: N, candidates per view.
        inter_attention: whether every layer ends with attention to the other view, biased by geometry.
        frame: of `ViewGeometry`.
        loss: L_P, of the proposals.
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
        frame: CommonFrame,
        loss: ProposalLoss,
    ) -> None:
        super().__init__()
        require_heads(width, heads)
        require(layers >= 1, f"layers: {layers} of the detector must be at least 1")
        self.width = width
        self.proposal_loss = loss
        self.proposals = ProposalHead(width, object_queries)
        self.position = BoxPosition(width)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, levels, points, ffn, dropout, inter_attention=False)
            for _ in range(layers)
        )
        self.inter_attentions = nn.ModuleList(
            GeometricInterAttention(width, heads, dropout, frame)
            for _ in range(layers if inter_attention else 0)
        )
        self.heads = nn.ModuleList(DetectionHead(width, first=False) for _ in range(layers))

    def forward(self, features: ImageFeatures, present: Tensor) -> DetectorOutputs:
        """Detect lesions in both views; see `Detector.forward`."""
        partner_present = to_images(present.flip(1))
        proposals = self.proposals(features)
        query = proposals.embeddings
        reference = proposals.boxes.gather(1, proposals.chosen[..., None].expand(-1, -1, 4)).detach()
        logits, boxes = [], []
        for index, (layer, head) in enumerate(zip(self.layers, self.heads, strict=True)):
            position = self.position(reference)
            query = layer(query, position, reference, features, partner_present)
            if self.inter_attentions:
                informed = self.inter_attentions[index](query, position, reference, features.content)
                query = torch.where(partner_present[:, None, None], informed, query)
            layer_logits, layer_boxes = head(query, reference)
            logits.append(to_pairs(layer_logits))
            boxes.append(to_pairs(layer_boxes))
            reference = layer_boxes.detach()
        return DetectorOutputs(
            torch.stack(logits),
            torch.stack(boxes),
            to_pairs(query),
            to_pairs(position),
            features.content,
            {
                "proposal_logits": to_pairs(proposals.logits),
                "proposal_boxes": to_pairs(proposals.boxes),
                "proposal_centres": features.centres.expand(present.shape[0], -1, -1),
            },
        )

    def loss(
        self, outputs: dict[str, Tensor], lesions: LesionBoxes, present: Tensor, detection: DetectionLoss
    ) -> dict[str, Tensor]:
        """L_P; see `Detector.loss`."""
        return self.proposal_loss(
            outputs["proposal_logits"],
            outputs["proposal_boxes"],
            outputs["proposal_centres"][0],
            lesions,
            present,
            detection,
        )
