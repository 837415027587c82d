"""L_D: the loss of Deformable DETR on every decoder layer."""

from dataclasses import dataclass

import torch
from monai.losses.focal_loss import sigmoid_focal_loss
from torch import Tensor

from clnet.distributed import mean_count
from clnet.losses.assignment import giou
from clnet.losses.targets import LesionBoxes


@dataclass(frozen=True)
class DetectionLoss:
    """Focal loss of the scores, L1 and GIoU loss of the matched boxes, each summed and divided by the boxes.

    The same weights are used in matching.
    """

    class_weight: float = 2.0
    l1_weight: float = 5.0
    giou_weight: float = 2.0
    alpha: float = 0.25
    gamma: float = 2.0

    @property
    def weights(self) -> tuple[float, float, float]:
        """Of class, L1 and GIoU."""
        return self.class_weight, self.l1_weight, self.giou_weight

    def __call__(
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
        is_lesion = torch.zeros_like(logits).flatten(1, 2)
        is_lesion[layers, lesions.image, queries] = 1.0
        focal = sigmoid_focal_loss(logits, is_lesion.view_as(logits), self.gamma, self.alpha)

        matched = boxes.flatten(1, 2)[layers, lesions.image, queries]  # [layers, T, 4]
        truth = lesions.boxes.expand_as(matched)
        count = mean_count(len(lesions.boxes), logits)
        return {
            "detection_class": self.class_weight * (focal * present[None, :, :, None]).sum() / count,
            "detection_l1": self.l1_weight * (matched - truth).abs().sum() / count,
            "detection_giou": self.giou_weight * (1 - giou(matched, truth)).sum() / count,
        }
