"""The whole loss, ``L = L_D + L_match``: the detector's, and that of whatever matcher the network has."""

from typing import Any, Protocol

from torch import Tensor, nn

from clnet.losses.assignment import link_targets
from clnet.losses.detection import DetectionLoss
from clnet.losses.targets import LesionBoxes, gather_targets
from clnet.ops.precision import full_precision


class Detector(Protocol):
    """Part of a network, see `clnet.networks.detector.Detector`."""

    def assign(self, cost: Tensor, lesions: LesionBoxes) -> Tensor:
        """Which query answers for which lesion."""

    def loss(
        self, outputs: dict[str, Tensor], lesions: LesionBoxes, present: Tensor, detection: DetectionLoss
    ) -> dict[str, Tensor]:
        """The parts of its own loss."""


class Matcher(Protocol):
    """Part of a network, see `clnet.networks.Matcher.loss`."""

    def loss(self, outputs: dict[str, Tensor], candidates: Tensor, breast: Tensor) -> dict[str, Tensor]:
        """The parts of its loss."""


class Network(Protocol):
    """See `clnet.networks.CLNet`."""

    detector: Detector
    matcher: Matcher


class CLNetLoss(nn.Module):
    """``L = L_D + L_Link`` for CL-Net, and the like for its variants.

    Args:
        detection: L_D.
        network: that is trained; its detector assigns queries, detector and matcher own parts of the loss.

    Attributes:
        parts: the parts of the last loss, detached, for those who record them.
    """

    def __init__(self, detection: DetectionLoss, network: Network) -> None:
        super().__init__()
        self.detection = detection
        self.parts_of_network = network.detector, network.matcher  # a tuple: their weights are not the loss's
        self.parts: dict[str, Tensor] = {}

    def forward(self, outputs: dict[str, Tensor], target: dict[str, Any]) -> Tensor:
        """Compare a network's outputs with the lesions of a batch.

        Args:
            outputs: of `clnet.networks.CLNet`.
            target: ``lesions``, for each of B breasts ``boxes`` and ``lesion_ids`` (see `gather_targets`),
                and ``present``, bool [B, 2]; missing views add nothing. All of it on the CPU.

        Returns:
            The sum of `parts`, a scalar.
        """
        outputs = {name: full_precision(output) for name, output in outputs.items()}
        logits, boxes, present = outputs["logits"], outputs["boxes"], target["present"]
        lesions = gather_targets(target["lesions"], present, boxes)
        present = present.to(boxes.device, non_blocking=True)
        detector, matcher = self.parts_of_network
        queries = detector.assign(self.detection.cost(logits, boxes, lesions), lesions)
        # Links point at embeddings of the last decoder layer, so its assignment is the one that counts.
        candidates = link_targets(lesions, queries[-1], dustbin=logits.shape[-1])
        parts = {
            **self.detection.loss(logits, boxes, lesions, queries, present),
            **detector.loss(outputs, lesions, present, self.detection),
            **matcher.loss(outputs, candidates, lesions.breast_of_lesion),
        }
        self.parts = {name: part.detach() for name, part in parts.items()}
        return sum(parts.values(), start=logits.new_zeros(()))
