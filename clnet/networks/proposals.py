"""Proposals: every cell of the image scores a box of its own, and the best become object queries.

Learned object queries begin anywhere, and need long training on much data before they look at lesions. Films
are few, so queries begin where the image encoder already sees something, as in two-stage Deformable DETR. And
several cells learn from each lesion, not one query alone, which teaches backbone and encoder much sooner.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.heads import DetectionHead

CELLS = 3.0
"""The side of a cell's first box, in cells of its level."""
NOT_A_PEAK = 100.0
"""Taken off the logit of a cell with a better neighbour."""


class Proposals(NamedTuple):
    """What the cells of images say; S cells, of which N are chosen."""

    logits: Tensor
    """[2B, S]: the score of each cell before its sigmoid."""
    boxes: Tensor
    """[2B, S, 4], cxcywh in units of the canvas."""
    chosen: Tensor
    """int64 [2B, N], the best cells, the best first."""
    embeddings: Tensor
    """[2B, N, D], of the chosen cells."""


class ProposalHead(nn.Module):
    """Scores a box at each cell and chooses the N best peaks.

    Args:
        width: D of the image tokens.
        queries: N.
    """

    def __init__(self, width: int, queries: int) -> None:
        super().__init__()
        self.queries = queries
        self.tower = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())
        self.head = DetectionHead(width, first=False)
        self.embedding = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))

    def forward(self, features: ImageFeatures) -> Proposals:
        """Propose boxes in 2B images."""
        cells = self.tower(features.tokens)  # [2B, S, D]
        logits, boxes = self.head(cells, first_boxes(features))
        chosen = peaks(logits.detach(), features.shapes).topk(self.queries, dim=1).indices
        picked = cells.gather(1, chosen[..., None].expand(-1, -1, cells.shape[-1]))
        return Proposals(logits, boxes, chosen, self.embedding(picked))


def first_boxes(features: ImageFeatures) -> Tensor:
    """A box [1, S, 4] around the centre of each cell, larger on coarser levels."""
    sizes = [
        features.centres.new_tensor([CELLS / columns, CELLS / rows]).clamp(max=0.9).expand(rows * columns, 2)
        for rows, columns in features.shapes
    ]
    return torch.cat([features.centres, torch.cat(sizes)[None]], dim=-1)


def peaks(logits: Tensor, shapes: list[tuple[int, int]]) -> Tensor:
    """Logits [2B, S] in which only cells that no neighbour of their level surpasses keep their value.

    Without this, the N best cells would all lie on the one or two most conspicuous places.
    """
    levels = torch.split(logits, [rows * columns for rows, columns in shapes], dim=1)
    kept = []
    for level, (rows, columns) in zip(levels, shapes, strict=True):
        best = F.max_pool2d(level.view(-1, 1, rows, columns), 3, stride=1, padding=1).flatten(1)
        kept.append(torch.where(level >= best, level, level - NOT_A_PEAK))
    return torch.cat(kept, dim=1)


class BoxPosition(nn.Module):
    """From a box to the position of its query: sines of periods from 1 to 1/64 of the canvas, and two layers.

    Args:
        width: D.
    """

    frequencies: Tensor
    OCTAVES = 8

    def __init__(self, width: int) -> None:
        super().__init__()
        periods = torch.linspace(0, 6, self.OCTAVES)
        self.register_buffer("frequencies", 2 * math.pi * 2**periods, persistent=False)
        self.layers = nn.Sequential(
            nn.Linear(4 * 2 * self.OCTAVES, width), nn.ReLU(), nn.Linear(width, width)
        )

    def forward(self, boxes: Tensor) -> Tensor:
        """[..., 4] to [..., D]."""
        angles = boxes[..., None] * self.frequencies
        return self.layers(torch.cat([angles.sin(), angles.cos()], dim=-1).flatten(-2))
