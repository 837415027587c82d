"""L_P: what teaches proposals. Several cells answer for each lesion, not one query."""

from dataclasses import dataclass

import torch
from monai.losses.focal_loss import sigmoid_focal_loss
from torch import Tensor

from clnet.distributed import mean_count
from clnet.losses.assignment import giou
from clnet.losses.detection import DetectionLoss
from clnet.losses.targets import LesionBoxes

CENTRAL = 0.3
"""A cell may answer for a lesion this close to the lesion's centre, in widths and heights of its box."""
NEAREST = 3
"""So may the cells nearest to it, however small the box."""


@dataclass(frozen=True)
class ProposalLoss:
    """Focal loss of all cells, and L1 and GIoU loss of those that answer for a lesion.

    The weights of L1 and GIoU, α and γ are those of `DetectionLoss`.

    Attributes:
        weight: of the whole.
        class_weight: of the focal loss in it; the sum is divided by the number of cells that answer.
        cells: how many answer for a lesion at most: the candidates of the lowest cost in matching.
    """

    weight: float
    class_weight: float
    cells: int

    def __call__(
        self,
        logits: Tensor,
        boxes: Tensor,
        centres: Tensor,
        lesions: LesionBoxes,
        present: Tensor,
        detection: DetectionLoss,
    ) -> dict[str, Tensor]:
        """Compare proposals with lesions.

        Args:
            logits: [B, 2, S].
            boxes: [B, 2, S, 4], cxcywh.
            centres: [S, 2] of the cells.
            lesions: T boxes.
            present: bool [B, 2]; a missing view adds nothing.
            detection: gives the matching cost and the weights.

        Returns:
            ``proposal_class``, ``proposal_l1``, ``proposal_giou``: scalars, weighted.
        """
        cost = detection.cost(logits[None], boxes[None], lesions)[0]  # [T, S]
        cell, answers = self.answering_cells(cost, centres, lesions.boxes)  # [T, C] each
        breast, view = lesions.breast[:, None], lesions.view[:, None]
        place = (2 * breast + view) * logits.shape[-1] + cell
        is_lesion = torch.zeros_like(logits).flatten()
        is_lesion.scatter_reduce_(0, place.flatten(), answers.to(logits).flatten(), "amax")
        focal = sigmoid_focal_loss(logits, is_lesion.view_as(logits), detection.gamma, detection.alpha)

        matched = boxes[breast, view, cell]  # [T, C, 4]
        truth = lesions.boxes[:, None].expand_as(matched)
        share = answers / answers.sum(1, keepdim=True)  # a lesion counts once, however many cells
        count = mean_count(len(lesions.boxes), logits)
        distance = (share * (matched - truth).abs().sum(-1)).sum() / count
        gap = (share * (1 - giou(matched, truth))).sum() / count
        scores = (focal * present[..., None]).sum() / mean_count(answers.sum(), logits)
        return {
            "proposal_class": self.weight * self.class_weight * scores,
            "proposal_l1": self.weight * detection.l1_weight * distance,
            "proposal_giou": self.weight * detection.giou_weight * gap,
        }

    @torch.no_grad()
    def answering_cells(self, cost: Tensor, centres: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Which cells answer for which lesions: in tables, since a GPU would be waited for to count them.

        Args:
            cost: [T, S].
            centres: [S, 2].
            boxes: [T, 4], cxcywh.

        Returns:
            For each lesion C cells, int [T, C], and which of them answer, bool [T, C]: at least one.
        """
        offset = (centres - boxes[:, None, :2]).abs() / boxes[:, None, 2:]  # [T, S, 2]
        candidate = (offset < CENTRAL).all(-1)
        nearest = offset.sum(-1).topk(NEAREST, dim=1, largest=False).indices
        candidate.scatter_(1, nearest, torch.ones_like(nearest, dtype=torch.bool))
        best, cell = cost.masked_fill(~candidate, torch.inf).topk(self.cells, dim=1, largest=False)
        return cell, best.isfinite()
