"""Deformable attention in plain PyTorch: the definition, which runs on every device and exports."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Shapes = Sequence[tuple[int, int]]
"""(rows, columns) of each feature level."""


def reference_attention(
    value: Tensor, shapes: Shapes, centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """See `clnet.ops.deformable_attention.deformable_attention`."""
    batch, _, heads, channels = value.shape
    queries, points = offsets.shape[1], offsets.shape[4]
    sizes = value.new_tensor([(columns, rows) for rows, columns in shapes])  # [L, 2]
    locations = (centres[:, :, None, :, None] + offsets + 0.5) / sizes[:, None]  # (0, 0) to (1, 1)
    grid = (2 * locations - 1).transpose(1, 2).flatten(0, 1)  # [B · heads, Q, L, points, 2]
    sampled = []
    for level, level_value in enumerate(torch.split(value, [rows * columns for rows, columns in shapes], 1)):
        rows, columns = shapes[level]
        level_map = level_value.permute(0, 2, 3, 1).reshape(batch * heads, channels, rows, columns)
        sampled.append(F.grid_sample(level_map, grid[:, :, level], align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(shapes) * points)
    summed = (torch.cat(sampled, dim=-1) * weights).sum(-1)  # [B · heads, C, Q]
    return summed.view(batch, heads * channels, queries).transpose(1, 2)
