"""What a matcher is: the part of a network that learns which detections of the two views are one lesion."""

from typing import NamedTuple

from torch import Tensor, nn

from clnet.networks.geometry import Content


class DetectorOutputs(NamedTuple):
    """What a detector hands to the matcher and to the loss; N object queries per view, D channels."""

    logits: Tensor
    """[layers, B, 2, N]: the score of each detection before its sigmoid."""
    boxes: Tensor
    """[layers, B, 2, N, 4]: cxcywh in [0, 1], in units of the canvas."""
    embeddings: Tensor
    """E^c, E^m [B, 2, N, D], of the last layer."""
    positions: Tensor
    """P^c, P^m [B, 2, N, D], the positions of the object queries."""
    content: Content
    """Where the 2B images have content."""
    extra: dict[str, Tensor]
    """What the detector's own loss is computed from; see `clnet.networks.detector.Detector.loss`."""


class LesionPairs(NamedTuple):
    """Candidates for a lesion seen in two views; index N is the dustbin: not seen in that view."""

    links: Tensor
    """int64 [B, P, 2], the index of the detection in CC and in MLO."""
    scores: Tensor
    """[B, P] in [0, 1]."""


class Matcher(nn.Module):
    """The base of all matchers. A matcher owns its outputs, its loss, and how pairs are read from them.

    A new strategy is one file with a subclass, and one config that names it.
    """

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """Compare the detections of the two views.

        Args:
            detections: of a batch of B breasts.
            present: bool [B, 2], which views exist. Of a missing view only the dustbin can be linked.
            return_attention: also return ``link_attention`` [B, P, 2, N + 1], the attention of each pair on
                detections and dustbin, if the matcher has any.

        Returns:
            Tensors for `loss` and `pairs` of the same matcher.
        """
        raise NotImplementedError

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """Compare the outputs with the R lesions of the batch.

        Args:
            outputs: of `forward`, in float32.
            candidates: int [R, 2], the right detection of each lesion in CC and in MLO; N for the dustbin.
            breast: int [R], nondecreasing, the breast of each lesion.

        Returns:
            The named parts of the loss: scalars, weighted.
        """
        raise NotImplementedError

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """Lesion Correspondence Extracting (Section 3.3): read candidate pairs from the outputs."""
        raise NotImplementedError


class NoMatcher(Matcher):
    """Links nothing: the matcher of Deformable DETR and VILD."""

    def forward(
        self, detections: DetectorOutputs, present: Tensor, return_attention: bool = False
    ) -> dict[str, Tensor]:
        """No outputs."""
        return {}

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """No loss."""
        return {}

    def pairs(self, detections: DetectorOutputs, outputs: dict[str, Tensor]) -> LesionPairs:
        """No pairs: P is 0."""
        none = detections.logits.new_zeros(detections.logits.shape[1], 0)
        return LesionPairs(none.long()[..., None].expand(-1, -1, 2), none)
