"""The whole loss of a network that has two matchers at once, with the paper's settings."""

from types import SimpleNamespace

import torch

from clnet.losses import CLNetLoss, DetectionLoss, LinkLoss, PairVerificationLoss
from clnet.losses.assignment import assign_detections

DETECTION = {"class_weight": 2.0, "l1_weight": 5.0, "giou_weight": 2.0, "alpha": 0.25, "gamma": 2.0}
LINK = {
    **{"similarity_weight": 0.125, "class_weight": 1.0, "temperature": 1.0},
    **{"focal_alpha": 0.5, "focal_gamma": 2.0},
    **{"cost_method": "mul", "cost_alpha": 0.5, "cost_beta": 0.5, "auxiliary": True},
}
"""The paper's."""


def link_loss(**changes: object) -> LinkLoss:
    return LinkLoss(**{**LINK, **changes})


class BothMatchers:
    """A matcher with the losses of two."""

    def loss(self, outputs, candidates, breast):
        """The parts of both."""
        return {
            **link_loss()(outputs["link_similarity"], outputs["pair_logits"], candidates, breast),
            **PairVerificationLoss(0.75, 2.0)(outputs["match_logits"], candidates, breast),
        }


def compare(outputs, targets, present, assign=assign_detections) -> dict[str, torch.Tensor]:
    """The loss and its parts."""
    detector = SimpleNamespace(assign=assign, loss=lambda *_: {})  # none of its own
    network = SimpleNamespace(detector=detector, matcher=BothMatchers())
    loss = CLNetLoss(DetectionLoss(**DETECTION), network)
    total = loss(outputs, {"lesions": targets, "present": present})
    return {"loss": total, **loss.parts}
