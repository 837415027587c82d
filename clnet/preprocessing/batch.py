"""Batches of pairs: how samples are put together, and how a batch reaches the network and the loss."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Batch = dict[str, Any]


def collate_pairs(samples: Sequence[dict[str, Any]]) -> Batch:
    """Stack samples of `FinishPaird`; what has another length in each pair stays a list.

    Returns:
        ``image`` [B, 2, H, W], ``present`` [B, 2], and lists of B: ``boxes``, ``lesion_ids``, ``pair_id``, ….
    """
    batch: Batch = {key: [sample[key] for sample in samples] for key in samples[0]}
    for key in ("image", "present"):
        batch[key] = torch.stack(batch[key])
    return batch


def prepare_batch(
    batch: Batch, device: torch.device, non_blocking: bool = False, **_: Any
) -> tuple[Tensor, dict[str, Any], tuple[()], dict[str, Tensor]]:
    """What MONAI's engines ask of a batch: input, target, and what else the network takes.

    Returns:
        The images [B, 2, H, W]; the target of `CLNetLoss`, which stays on the CPU, where the loss gathers it;
        no positional and one named argument of the network, ``present`` [B, 2].
    """
    lesions = [
        {"boxes": boxes, "lesion_ids": ids}
        for boxes, ids in zip(batch["boxes"], batch["lesion_ids"], strict=True)
    ]
    image, present = (batch[name].to(device, non_blocking=non_blocking) for name in ("image", "present"))
    return image, {"lesions": lesions, "present": batch["present"]}, (), {"present": present}
