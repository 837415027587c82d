"""The lesions of a batch in flat tensors, so that losses need no loops over breasts and views."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class LesionBoxes(NamedTuple):
    """Every box of a batch, breast by breast, CC before MLO; boxes of missing views are left out."""

    boxes: Tensor
    """[T, 4], normalised cxcywh."""
    breast: Tensor
    """int [T], nondecreasing."""
    view: Tensor
    """int [T]: 0 for CC, 1 for MLO; nondecreasing within a breast."""
    lesion: Tensor
    """int [T]: counts the lesions of the batch from 0; two boxes of one lesion share it."""
    breast_of_lesion: Tensor
    """int [R], nondecreasing."""


def gather_targets(targets: Sequence[dict[str, Any]], present: Tensor, like: Tensor) -> LesionBoxes:
    """Flatten the targets of a batch.

    Args:
        targets: for each of B breasts ``boxes``: [cc [n, 4], mlo [m, 4]], normalised cxcywh, and
            ``lesion_ids``: [cc int [n], mlo int [m]]; the same id in both views is the same lesion.
        present: bool [B, 2]; boxes of a missing view are left out.
        like: gives device and type of the boxes. Targets are on the CPU: a GPU would be waited for at each.
    """
    boxes, breasts, views, lesion = [torch.zeros(0, 4, dtype=like.dtype)], [], [], []
    lesions: dict[tuple[int, int], int] = {}
    for breast, (target, exists) in enumerate(zip(targets, present.tolist(), strict=True)):
        for view in range(2):
            if not exists[view]:
                continue
            boxes.append(target["boxes"][view].to(like.dtype))
            for lesion_id in target["lesion_ids"][view].tolist():
                breasts.append(breast)
                views.append(view)
                lesion.append(lesions.setdefault((breast, lesion_id), len(lesions)))

    def integers(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long).to(like.device, non_blocking=True)

    return LesionBoxes(
        torch.cat(boxes).to(like.device, non_blocking=True),
        integers(breasts),
        integers(views),
        integers(lesion),
        integers([breast for breast, _ in lesions]),
    )
