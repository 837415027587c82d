"""CL-Net, assembled: image encoder, view-interactive decoder, and what learns the match between views."""

from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from clnet.networks.detector import ViewInteractiveDecoder
from clnet.networks.encoder import ImageEncoder
from clnet.networks.lesion_linker import LesionLinker
from clnet.networks.pair_verification import PairVerification
from clnet.networks.settings import SettingError, check_sizes

MatchLearning = Literal["lesion_linker", "pair_verification", "none"]

PAPER_SETTINGS: dict[str, Any] = {
    "backbone": "resnet50",
    "feature_levels": 4,
    "width": 256,
    "heads": 8,
    "points": 4,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "ffn": 1024,
    "dropout": 0.1,
    "object_queries": 125,
    "inter_attention": True,
    "box_refinement": False,
    "box_positions": False,
    "match_learning": "lesion_linker",
    "link_queries": 16,
    "linker_layers": 3,
}
"""The settings of Section 4.1 and the appendix; Deformable DETR's own where the paper is silent."""


class CLNet(nn.Module):
    """The paper's network; its ablations are settings.

    =================  ===============  =================
    variant            inter_attention  match_learning
    =================  ===============  =================
    Deformable DETR    False            none
    VILD               True             none
    Lesion Linker      False            lesion_linker
    CL-Net             True             lesion_linker
    Pair Verification  True             pair_verification
    =================  ===============  =================

    The defaults make a light network for small images on a CPU; `PAPER_SETTINGS` are the paper's.

    Args:
        backbone: light, resnet18, resnet34 or resnet50.
        backbone_weights: a file with torchvision's state dict of the ResNet, or None.
        feature_levels: maps of different strides that attention reads from.
        width: D, the length of every embedding.
        heads: of every multi-head attention.
        points: that deformable attention samples, a head and level.
        encoder_layers: of the image encoder; 0 is allowed.
        decoder_layers: of the detector.
        ffn: hidden width of the feed-forward networks.
        dropout: in all transformer layers.
        object_queries: N, candidates a view.
        inter_attention: whether decoder layers end with attention to the other view.
        box_refinement: whether each decoder layer refines the boxes of the one before.
        box_positions: whether positions of object queries, and the embeddings that the linker reads, also
            tell where the last box is; beyond the paper, in which they tell where a query begins.
        match_learning: what learns which detections are the same lesion.
        link_queries: M, for the lesion linker.
        linker_layers: of the lesion linker.
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
        object_queries: int = 20,
        inter_attention: bool = True,
        box_refinement: bool = True,
        box_positions: bool = False,
        match_learning: MatchLearning = "lesion_linker",
        link_queries: int = 16,
        linker_layers: int = 1,
    ) -> None:
        super().__init__()
        check_sizes(width, heads, feature_levels, decoder_layers)
        if match_learning not in get_args(MatchLearning):
            raise SettingError(
                f"match_learning: {match_learning!r} is not one of {', '.join(get_args(MatchLearning))}"
            )
        self.encoder = ImageEncoder(
            backbone, backbone_weights, feature_levels, width, heads, points, encoder_layers, ffn, dropout
        )
        self.decoder = ViewInteractiveDecoder(
            width,
            heads,
            feature_levels,
            points,
            decoder_layers,
            ffn,
            dropout,
            object_queries,
            inter_attention,
            box_refinement,
            box_positions,
        )
        self.linker = (
            LesionLinker(width, heads, linker_layers, ffn, dropout, link_queries)
            if match_learning == "lesion_linker"
            else None
        )
        self.verification = PairVerification(width) if match_learning == "pair_verification" else None

    def forward(
        self,
        image: Tensor,
        present: Tensor | None = None,
        valid_size: Tensor | None = None,
        return_attention: bool = False,
    ) -> dict[str, Tensor]:
        """Detect lesions in both views of a breast and link them.

        Args:
            image: [B, 2, H, W], CC and MLO.
            present: bool [B, 2], which views exist; None if all. Outputs of a missing view mean nothing.
            valid_size: int [B, 2, 2], (rows, columns) of each view at the upper left of its canvas; None if
                it fills it. Boxes are in units of this size.
            return_attention: whether to give the attention weights of link queries on detections.

        Returns:
            - ``logits`` [decoder layers, B, 2, N]: the score of each detection before its sigmoid;
            - ``boxes`` [decoder layers, B, 2, N, 4]: cxcywh in [0, 1];
            - ``link_similarity``, ``pair_logits`` and, if asked for, ``link_attention``: see `LesionLinker`;
            - ``match_logits``: see `PairVerification`.
        """
        if present is None:
            present = torch.ones(image.shape[:2], dtype=torch.bool, device=image.device)
        # Both views at once: image 2·b + v is view v of breast b.
        features = self.encoder(
            image.flatten(0, 1)[:, None], None if valid_size is None else valid_size.flatten(0, 1)
        )
        logits, boxes, embeddings, positions = self.decoder(features, present)
        outputs = {"logits": logits, "boxes": boxes}
        if self.linker is not None:
            outputs |= self.linker(embeddings, positions, present, return_attention)
        if self.verification is not None:
            outputs |= self.verification(embeddings, present)
        return outputs
