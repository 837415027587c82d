"""Lesion Correspondence Extracting (Section 3.3): from a network's outputs to pairs of detections."""

from typing import NamedTuple

import torch
from torch import Tensor


class LesionPairs(NamedTuple):
    """Candidates for a lesion seen in two views; index N stands for the dustbin: not seen in that view."""

    cc: Tensor
    """int [B, P], index of the detection in the CC view."""
    mlo: Tensor
    """int [B, P], index of the detection in the MLO view."""
    score: Tensor
    """[B, P] in [0, 1]."""


def extract_pairs(outputs: dict[str, Tensor]) -> LesionPairs | None:
    """The pairs of whatever learned the match between views; None if nothing did."""
    if "link_similarity" in outputs:
        return extract_linked_pairs(outputs)
    if "match_logits" in outputs:
        return extract_verified_pairs(outputs)
    if "paired_logits" in outputs:
        return extract_paired_queries(outputs)
    return None


def extract_linked_pairs(outputs: dict[str, Tensor]) -> LesionPairs:
    """One pair a link query: ``c_i = argmax_j sim(v^c_i, ẽ^c_j)``, the same for MLO, and the score s_i."""
    cc, mlo = outputs["link_similarity"][-1].argmax(-1).unbind(1)
    return LesionPairs(cc, mlo, outputs["pair_logits"][-1].sigmoid())


def extract_verified_pairs(outputs: dict[str, Tensor]) -> LesionPairs:
    """Each CC detection with its best match in MLO, then each MLO detection as seen in MLO alone.

    The paper stops at the matching matrix; a detection's match is taken to be the likeliest of its row.
    """
    scores = outputs["match_logits"].sigmoid()  # [B, N + 1, N + 1]
    detections = scores.shape[-1] - 1
    best, mlo = scores[:, :-1].max(-1)
    every = torch.arange(detections, device=scores.device).expand_as(mlo)
    nowhere = torch.full_like(mlo, detections)
    return LesionPairs(
        torch.cat([every, nowhere], dim=1),
        torch.cat([mlo, every], dim=1),
        torch.cat([best, scores[:, -1, :-1]], dim=1),
    )


def extract_paired_queries(outputs: dict[str, Tensor]) -> LesionPairs:
    """A paired lesion query is a pair by itself; it is as sure as the less sure of its views."""
    scores = outputs["paired_logits"].sigmoid()  # [B, N]
    every = torch.arange(scores.shape[-1], device=scores.device).expand_as(scores)
    return LesionPairs(every, every, scores)
