"""Which query answers for which lesion: bipartite matching by the Hungarian algorithm (Section 3.4)."""

from collections import Counter
from dataclasses import dataclass

import torch
from monai.losses.focal_loss import sigmoid_focal_loss
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from clnet.boxes import cxcywh_to_xyxy
from clnet.errors import ClnetError
from clnet.losses.targets import LesionBoxes


class AssignmentError(ClnetError):
    """Lesions cannot be assigned to queries."""


def solve(cost: Tensor, block: Tensor) -> Tensor:
    """Give every lesion a query of its own, at the lowest total cost (scipy's Hungarian method).

    Args:
        cost: [layers, R, Q], of lesion r being answered by query q.
        block: the breasts of the lesions, int [R], or their breasts and views, int [R, 2]; nondecreasing.
            Lesions of different blocks do not compete.

    Returns:
        int [layers, R], a query for each lesion, on the device of `cost`.
    """
    queries = torch.empty(cost.shape[:2], dtype=torch.long)
    # In one piece, since the CPU waits for a GPU at every transfer.
    piece = torch.cat([cost.detach().flatten(), block.to(cost.dtype).flatten()]).cpu()
    table, blocks = piece[: cost.numel()].view(cost.shape), piece[cost.numel() :].view(block.shape)
    if not table.isfinite().all():
        raise AssignmentError(
            "the matching cost is not finite, since the network's outputs are not: "
            "lower the learning rate, or clip gradients more"
        )
    sizes = list(Counter(map(str, blocks.tolist())).values())
    if max(sizes, default=0) > cost.shape[2]:
        raise AssignmentError(
            f"{max(sizes)} lesions cannot each have one of {cost.shape[2]} queries: "
            "give the network more object_queries or link_queries"
        )
    for layer in range(len(cost)):
        start = 0
        for size in sizes:
            lesions = slice(start, start + size)
            # Rows come back in order, and all of them, since there are no more rows than columns.
            _, columns = linear_sum_assignment(table[layer, lesions].numpy())
            queries[layer, lesions] = torch.from_numpy(columns)
            start += size
    return queries.to(cost.device, non_blocking=True)


@dataclass(frozen=True)
class DetectionCost:
    """The cost of Deformable DETR's matching, with the weights and the focal loss of `DetectionLoss`.

    The class term is what the focal loss would gain by calling the query a lesion.
    """

    class_weight: float
    l1_weight: float
    giou_weight: float
    alpha: float
    gamma: float

    @torch.no_grad()
    def cost(self, logits: Tensor, boxes: Tensor, lesions: LesionBoxes) -> Tensor:
        """Of each of T boxes with all queries of its image.

        Args:
            logits: [layers, B, 2, N].
            boxes: [layers, B, 2, N, 4], cxcywh.
            lesions: T boxes.

        Returns:
            [layers, T, N].
        """
        # 0, or not a number if any output is none: `solve` looks, where the CPU waits for a GPU anyway.
        sound = 0 * (logits.sum() + boxes.sum())
        logits = logits[:, lesions.breast, lesions.view]  # [layers, T, N]
        boxes = boxes[:, lesions.breast, lesions.view]  # [layers, T, N, 4]
        positive, negative = (
            sigmoid_focal_loss(logits, target, gamma=self.gamma, alpha=self.alpha)
            for target in (torch.ones_like(logits), torch.zeros_like(logits))
        )
        truth = lesions.boxes[:, None].expand_as(boxes)
        distance = (boxes - truth).abs().sum(-1)
        return (
            self.class_weight * (positive - negative)
            + self.l1_weight * distance
            - self.giou_weight * giou(boxes, truth)
            + sound
        )


def giou(boxes: Tensor, truth: Tensor) -> Tensor:
    """Generalised overlap in [-1, 1] of each box with its truth, both [..., 4] as cxcywh, to [...].

    As `monai.data.box_utils.box_pair_giou`, which makes the CPU wait for a GPU, to look for NaN.
    """
    boxes, truth = cxcywh_to_xyxy(boxes), cxcywh_to_xyxy(truth)
    smallest, largest = torch.minimum(boxes, truth), torch.maximum(boxes, truth)
    overlap = _area((smallest[..., 2:] - largest[..., :2]).clamp(min=0))
    frame = _area(largest[..., 2:] - smallest[..., :2])
    union = _area(boxes[..., 2:] - boxes[..., :2]) + _area(truth[..., 2:] - truth[..., :2]) - overlap
    tiny = torch.finfo(torch.float32).eps
    return overlap / (union + tiny) - (frame - union) / (frame + tiny)


def _area(sides: Tensor) -> Tensor:
    return sides[..., 0] * sides[..., 1]


@torch.no_grad()
def assign_detections(cost: Tensor, lesions: LesionBoxes) -> Tensor:
    """Match boxes with object queries, anew in every decoder layer and in each view by itself.

    Args:
        cost: [layers, T, N], see `DetectionCost`.
        lesions: T boxes.

    Returns:
        int [layers, T], the object query of each box.
    """
    return solve(cost, torch.stack([lesions.breast, lesions.view], dim=1))


@torch.no_grad()
def assign_paired_queries(cost: Tensor, lesions: LesionBoxes) -> Tensor:
    """Match lesions with paired lesion queries (appendix): the cost is the larger one of the two views'.

    A lesion seen in one view costs what it costs there.

    Args:
        cost: [layers, T, N], see `DetectionCost`.
        lesions: T boxes of R lesions.

    Returns:
        int [layers, T], the paired query of each box; boxes of the same lesion have the same.
    """
    larger = cost.new_zeros(cost.shape[0], len(lesions.breast_of_lesion), cost.shape[2])
    larger.scatter_reduce_(1, lesions.lesion[None, :, None].expand_as(cost), cost, "amax", include_self=False)
    return solve(larger, lesions.breast_of_lesion)[:, lesions.lesion]


def link_targets(lesions: LesionBoxes, queries: Tensor, dustbin: int) -> Tensor:
    """Which detection each lesion is in each view: the paper's triplets ⟨e^c, e^m, a = 1⟩.

    Args:
        lesions: T boxes of R lesions.
        queries: int [T], the object query of each box in the *last* decoder layer: its embeddings are linked.
        dustbin: N, the index for a view that does not show the lesion or is missing.

    Returns:
        int [R, 2], index in CC and in MLO.
    """
    candidates = torch.full((len(lesions.breast_of_lesion), 2), dustbin, device=queries.device)
    candidates[lesions.lesion, lesions.view] = queries
    return candidates


def link_cost(
    similarity: Tensor,
    pair_logits: Tensor,
    candidates: Tensor,
    breast: Tensor,
    alpha: float,
    beta: float,
    method: str,
) -> Tensor:
    """The matching cost between lesions and link queries (Eq. cost function, Table 5).

    With ``emd = β sim(e^c, v^c) + (1 − β) sim(e^m, v^m) + 1`` and the pair score s as a probability it is
    ``−emd^α · s^(1−α)`` for method "mul" and ``−(α emd + (1 − α) s)`` for "add".

    Args:
        similarity: [layers, B, 2, M, N + 1].
        pair_logits: [layers, B, M].
        candidates: int [R, 2], from `link_targets`.
        breast: int [R], whose lesion it is.
        alpha: weight of the embeddings against the score.
        beta: weight of CC against MLO.
        method: "mul" or "add".

    Returns:
        [layers, R, M].
    """
    cc, mlo = similarity_to(similarity, candidates, breast).unbind(2)
    # Rounding may take a cosine below −1, and a root of a negative number is none.
    emd = (beta * cc + (1 - beta) * mlo + 1).clamp(min=0)
    score = pair_logits[:, breast].sigmoid()
    return -(emd**alpha) * score ** (1 - alpha) if method == "mul" else -(alpha * emd + (1 - alpha) * score)


def similarity_to(similarity: Tensor, candidates: Tensor, breast: Tensor) -> Tensor:
    """Of all link queries, the similarity (or its log probability) to the right candidate of each lesion.

    Args:
        similarity: [layers, B, 2, M, N + 1].
        candidates: int [R, 2].
        breast: int [R].

    Returns:
        [layers, R, 2, M].
    """
    of_lesion = similarity[:, breast]  # [layers, R, 2, M, N + 1]
    index = candidates[None, :, :, None, None].expand(*of_lesion.shape[:-1], 1)
    return of_lesion.gather(-1, index).squeeze(-1)
