"""The dustbin (Section 3.3): where a lesion is linked in the view that does not show it."""

import torch
from torch import Tensor


def append_dustbin(detections: Tensor, dustbin: Tensor) -> Tensor:
    """``Ẽ = Concat(E, e^d)``: the dustbin becomes the last candidate.

    Args:
        detections: [..., N, D].
        dustbin: e^d [D], the same for both views.

    Returns:
        [..., N + 1, D].
    """
    return torch.cat([detections, dustbin.expand_as(detections[..., :1, :])], dim=-2)


def absent_candidates(present: Tensor, detections: int) -> Tensor:
    """Which candidates are not there: all detections of a missing view, never its dustbin.

    Args:
        present: bool [B, 2], which views exist.
        detections: N.

    Returns:
        bool [B, 2, N + 1].
    """
    is_detection = torch.arange(detections + 1, device=present.device) < detections
    return ~present[..., None] & is_detection


def exclude(scores: Tensor, excluded: Tensor) -> Tensor:
    """Scores in which what is excluded can neither be chosen nor add to a loss.

    The lowest finite number stands there: its sigmoid and its share of a softmax are exactly 0, and, unlike
    minus infinity, it gives 0 when multiplied by 0.

    Args:
        scores: similarities or logits of any shape.
        excluded: bool, broadcastable to it.
    """
    return scores.masked_fill(excluded, torch.finfo(scores.dtype).min)
