"""The whole loss, ``L = L_D + L_match``: the detector's, and that of whatever matcher the network has."""

from typing import Any, Protocol

from torch import Tensor, nn

from clnet.losses.assignment import link_targets
from clnet.losses.detection import DetectionLoss
from clnet.losses.targets import gather_targets
from clnet.ops.precision import full_precision


class HasLoss(Protocol):
    """A matcher, see `clnet.networks.Matcher.loss`."""

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """The parts of its loss."""


class CLNetLoss(nn.Module):
    """``L = L_D + L_Link`` for CL-Net, and the like for its variants.

    Args:
        detection: L_D.
        matcher: that of the network; it owns its part of the loss.

    Attributes:
        parts: the parts of the last loss, detached, for those who record them.
    """

    def __init__(self, detection: DetectionLoss, matcher: HasLoss) -> None:
        super().__init__()
        self.detection = detection
        self.matcher = [matcher]  # in a list, lest its parameters count as the loss's
        self.parts: dict[str, Tensor] = {}

    def forward(self, outputs: dict[str, Tensor], target: dict[str, Any]) -> Tensor:
        """Compare a network's outputs with the lesions of a batch.

        Args:
            outputs: of `clnet.networks.CLNet`.
            target: ``lesions``, for each of B breasts ``boxes`` and ``lesion_ids`` (see `gather_targets`),
                and ``present``, bool [B, 2]; missing views add nothing.

        Returns:
            The sum of `parts`, a scalar.
        """
        outputs = {name: full_precision(output) for name, output in outputs.items()}
        logits, boxes, present = outputs["logits"], outputs["boxes"], target["present"]
        lesions = gather_targets(target["lesions"], present, boxes)
        queries = self.detection.assign(logits, boxes, lesions)
        # Links point at embeddings of the last decoder layer, so its assignment is the one that counts.
        candidates = link_targets(lesions, queries[-1], dustbin=logits.shape[-1])
        parts = {
            **self.detection.loss(logits, boxes, lesions, queries, present),
            **self.matcher[0].loss(outputs, candidates, lesions.breast_of_lesion),
        }
        self.parts = {name: part.detach() for name, part in parts.items()}
        return sum(parts.values(), start=logits.new_zeros(()))
