"""CL-Net, composed of three parts: image encoder, detector, and what learns the match between views."""

import torch
from torch import Tensor, nn

from clnet.networks.detector import Detector
from clnet.networks.encoder import ImageEncoder
from clnet.networks.matcher import Matcher
from clnet.networks.settings import require
from clnet.networks.views import to_images


class CLNet(nn.Module):
    """The paper's network, its ablations and what goes beyond it, each a choice of parts.

    =================  ========================================  ====================
    variant            detector                                  matcher
    =================  ========================================  ====================
    Deformable DETR    ViewInteractiveDetector, no               NoMatcher
                       inter-attention
    VILD               ViewInteractiveDetector                   NoMatcher
    Lesion Linker      ViewInteractiveDetector, no               LesionLinker
                       inter-attention
    CL-Net             ViewInteractiveDetector                   LesionLinker
    Pair Verification  ViewInteractiveDetector                   PairVerification
    Paired Lesion      PairedQueryDetector                       PairedQueryMatcher
    Query
    Geometric CL-Net   ProposalDetector (beyond the paper)       GeometricLinker
    =================  ========================================  ====================

    Args:
        encoder: from images to tokens.
        detector: from tokens to scored boxes.
        matcher: from the detections of two views to links.
        compiled: whether each part is compiled, as one graph, when it is first called; names of weights stay.
    """

    def __init__(
        self,
        encoder: ImageEncoder,
        detector: Detector,
        matcher: Matcher,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        widths = {
            name: part.width
            for name, part in {"encoder": encoder, "detector": detector, "matcher": matcher}.items()
            if hasattr(part, "width")
        }
        require(len(set(widths.values())) == 1, f"width: {widths} must be equal; set --width for all parts")
        self.encoder = encoder
        self.detector = detector
        self.matcher = matcher
        if compiled:
            for part in (encoder, detector, matcher):
                part.compile(fullgraph=True)

    def forward(
        self, image: Tensor, present: Tensor | None = None, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Detect lesions in both views of a breast and link them.

        Args:
            image: [B, 2, H, W], CC and MLO.
            present: bool [B, 2], which views exist; None if all. Outputs of a missing view mean nothing.
            return_attention: also return ``link_attention`` [B, P, 2, N + 1] if the matcher has any.

        Returns:
            - ``logits`` [decoder layers, B, 2, N]: the score of each detection before its sigmoid;
            - ``boxes`` [decoder layers, B, 2, N, 4]: cxcywh in [0, 1], in units of the canvas;
            - ``links`` int64 [B, P, 2]: indices of detections in CC and MLO that may be one lesion; N: not
              seen in that view; P is the matcher's number of candidates, 0 without one;
            - ``link_scores`` [B, P] in [0, 1];
            - what the losses of detector and matcher are computed from.
        """
        if present is None:
            present = torch.ones(image.shape[:2], dtype=torch.bool, device=image.device)
        detections = self.detector(self.encoder(to_images(image)[:, None]), present)
        matched = self.matcher(detections, present, return_attention)
        pairs = self.matcher.pairs(detections, matched)
        return {
            "logits": detections.logits,
            "boxes": detections.boxes,
            "links": pairs.links,
            "link_scores": pairs.scores,
            **detections.extra,
            **matched,
        }
