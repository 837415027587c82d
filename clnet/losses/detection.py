"""L_D: the loss of Deformable DETR on every decoder layer."""

from dataclasses import dataclass

import torch
from monai.losses.focal_loss import sigmoid_focal_loss
from torch import Tensor

from clnet.distributed import mean_count
from clnet.losses.assignment import DetectionCost, giou
from clnet.losses.targets import LesionBoxes


@dataclass(frozen=True)
class DetectionLoss(DetectionCost):
    """Focal loss of the scores, L1 and GIoU loss of the matched boxes, each summed and divided by the boxes.

    Matching has the same weights, α and γ.
    """

    def loss(
        self, logits: Tensor, boxes: Tensor, lesions: LesionBoxes, queries: Tensor, present: Tensor
    ) -> dict[str, Tensor]:
        """Compare detections with lesions.

        Args:
            logits: [layers, B, 2, N].
            boxes: [layers, B, 2, N, 4], cxcywh.
            lesions: T boxes.
            queries: int [layers, T], the query assigned to each box.
            present: bool [B, 2]; a missing view adds nothing.

        Returns:
            ``detection_class``, ``detection_l1``, ``detection_giou``: weighted and summed over layers.
        """
        layers = torch.arange(len(logits), device=logits.device)[:, None]
        assigned = layers, lesions.breast, lesions.view, queries
        is_lesion = torch.zeros_like(logits)
        is_lesion[assigned] = 1.0
        focal = sigmoid_focal_loss(logits, is_lesion, self.gamma, self.alpha)

        matched = boxes[assigned]  # [layers, T, 4]
        truth = lesions.boxes.expand_as(matched)
        count = mean_count(len(lesions.boxes), logits)
        return {
            "detection_class": self.class_weight * (focal * present[None, :, :, None]).sum() / count,
            "detection_l1": self.l1_weight * (matched - truth).abs().sum() / count,
            "detection_giou": self.giou_weight * (1 - giou(matched, truth)).sum() / count,
        }
