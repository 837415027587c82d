"""The whole loss: L = L_D + L_Link for CL-Net and its variants, and those of the two alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from clnet.distributed import full_precision
from clnet.losses.assignment import assign_detections, assign_paired_queries, link_targets
from clnet.losses.detection import DetectionLoss
from clnet.losses.link import LinkLoss, PairVerificationLoss
from clnet.losses.targets import gather_targets


@dataclass(frozen=True)
class CLNetLoss:
    """``L = L_D + L_Link``, or L_D + L_V, or L_D alone: by what the network puts out."""

    detection: DetectionLoss = field(default_factory=DetectionLoss)
    link: LinkLoss = field(default_factory=LinkLoss)
    verification: PairVerificationLoss = field(default_factory=PairVerificationLoss)

    def __call__(
        self, outputs: dict[str, Tensor], targets: Sequence[dict[str, Any]], present: Tensor
    ) -> dict[str, Tensor]:
        """Compare a network's outputs with the lesions of a batch.

        Args:
            outputs: of `clnet.networks.CLNet`.
            targets: for each of B breasts ``boxes`` and ``lesion_ids``, see `gather_targets`.
            present: bool [B, 2]; missing views add nothing.

        Returns:
            ``loss``, and the parts whose sum it is.
        """
        outputs = {name: full_precision(output) for name, output in outputs.items()}
        logits, boxes = outputs["logits"], outputs["boxes"]
        lesions = gather_targets(targets, present, boxes)
        queries = assign_detections(logits, boxes, lesions, self.detection.weights)
        parts = self.detection(logits, boxes, lesions, queries, present)

        # Links point at embeddings of the last decoder layer, so its assignment is the one that counts.
        candidates = link_targets(lesions, queries[-1], dustbin=logits.shape[-1])
        breast = lesions.breast_of_lesion
        if "link_similarity" in outputs:
            parts |= self.link(outputs["link_similarity"], outputs["pair_logits"], candidates, breast)
        if "match_logits" in outputs:
            parts |= self.verification(outputs["match_logits"], candidates, breast)
        return with_total(parts)


@dataclass(frozen=True)
class PairedLesionQueryLoss:
    """``L = L_D^CC + L_D^MLO`` (appendix), where a lesion has the same query in both views."""

    detection: DetectionLoss = field(default_factory=DetectionLoss)

    def __call__(
        self, outputs: dict[str, Tensor], targets: Sequence[dict[str, Any]], present: Tensor
    ) -> dict[str, Tensor]:
        """As `CLNetLoss`, for the outputs of `clnet.networks.PairedLesionQuery`."""
        logits, boxes = full_precision(outputs["logits"]), full_precision(outputs["boxes"])
        lesions = gather_targets(targets, present, boxes)
        queries = assign_paired_queries(logits, boxes, lesions, self.detection.weights)
        return with_total(self.detection(logits, boxes, lesions, queries, present))


def with_total(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parts, preceded by their sum under the name ``loss``."""
    return {"loss": sum(parts.values(), start=next(iter(parts.values())).new_zeros(())), **parts}
