"""Multi-scale deformable attention (Deformable DETR, Eq. 3): a query reads few places, not all."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.ops.attention_path import takes_fused_path
from clnet.ops.cpu_attention import fused_attention

Shapes = Sequence[tuple[int, int]]
"""(rows, columns) of each feature level."""


def deformable_attention(value: Tensor, shapes: Shapes, locations: Tensor, weights: Tensor) -> Tensor:
    """Sum the values that bilinear interpolation finds at the sampling locations, by weight.

    The core of the operation: no parameters, plain tensors in and out. Outside a level the value is 0. This
    is the reference, which runs everywhere and exports; `fused_attention` does the same on CPU, much faster.

    Args:
        value: [B, S, heads, C], the features of all levels, flattened row by row, level after level.
        shapes: (rows, columns) of each of the L levels; S is the sum of their products.
        locations: [B, Q, heads, L, points, 2], (x, y) in units of each level's whole map, (0, 0) its upper
            left corner and (1, 1) its lower right corner.
        weights: [B, Q, heads, L, points].

    Returns:
        [B, Q, heads · C].
    """
    batch, _, heads, channels = value.shape
    queries, points = locations.shape[1], locations.shape[4]
    grid = (2 * locations - 1).transpose(1, 2).flatten(0, 1)  # [B · heads, Q, L, points, 2]
    sampled = []
    for level, level_value in enumerate(torch.split(value, [rows * columns for rows, columns in shapes], 1)):
        rows, columns = shapes[level]
        level_map = level_value.permute(0, 2, 3, 1).reshape(batch * heads, channels, rows, columns)
        sampled.append(F.grid_sample(level_map, grid[:, :, level], align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, len(shapes) * points)
    summed = (torch.cat(sampled, dim=-1) * weights).sum(-1)  # [B · heads, C, Q]
    return summed.view(batch, heads * channels, queries).transpose(1, 2)


class DeformableAttention(nn.Module):
    """Multi-head attention in which each query chooses a few places around its reference."""

    def __init__(self, width: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        self.heads, self.levels, self.points = heads, levels, points
        self.sampling_offsets = nn.Linear(width, heads * levels * points * 2)
        self.attention_weights = nn.Linear(width, heads * levels * points)
        self.value_projection = nn.Linear(width, width)
        self.output_projection = nn.Linear(width, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin with equal weights on places in one direction a head, a step further each point."""
        angle = torch.arange(self.heads) * (2 * math.pi / self.heads)
        direction = torch.stack([angle.cos(), angle.sin()], dim=-1)
        direction = direction / direction.abs().amax(-1, keepdim=True)
        steps = torch.arange(1, self.points + 1)
        offsets = direction[:, None, None, :] * steps[None, None, :, None]  # [heads, 1, points, 2]
        nn.init.zeros_(self.sampling_offsets.weight)
        with torch.no_grad():
            self.sampling_offsets.bias.copy_(offsets.expand(-1, self.levels, -1, -1).flatten())
        nn.init.zeros_(self.attention_weights.weight)
        nn.init.zeros_(self.attention_weights.bias)
        for projection in (self.value_projection, self.output_projection):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        references: Tensor,
        tokens: Tensor,
        shapes: Shapes,
        padding: Tensor | None = None,
    ) -> Tensor:
        """Let queries read from the features of an image.

        Args:
            query: [B, Q, D], positions included.
            references: [B or 1, Q, L, 2 or 4] in units of each level's whole map: (x, y), around which
                offsets count in cells of the map; or (cx, cy, w, h), around whose centre they count in half
                sizes of the box over the number of points.
            tokens: [B, S, D], the features of all levels.
            shapes: (rows, columns) of each of the L levels.
            padding: bool [B, S], True where there is no image; None if it is everywhere.

        Returns:
            [B, Q, D].
        """
        batch, queries, _ = query.shape
        value = self.value_projection(tokens)
        if padding is not None:
            # After the projection: its bias would otherwise speak for places that do not exist.
            value = value.masked_fill_(padding[..., None], 0.0)
        value = value.view(batch, -1, self.heads, value.shape[-1] // self.heads)
        offsets = self.sampling_offsets(query).view(batch, queries, self.heads, self.levels, self.points, 2)
        weights = self.attention_weights(query).view(batch, queries, self.heads, self.levels * self.points)
        weights = weights.softmax(-1).view(batch, queries, self.heads, self.levels, self.points)

        # From here on, places count in cells of each level's map, x first.
        sizes = query.new_tensor([(columns, rows) for rows, columns in shapes])  # [L, 2]
        centres = references[..., :2] * sizes - 0.5
        if references.shape[-1] == 4:
            steps = references[..., 2:] * sizes * (0.5 / self.points)
            offsets = offsets * steps[:, :, None, :, None]
        if takes_fused_path(value, centres, offsets, weights):
            flat_shapes = [size for shape in shapes for size in shape]
            read = fused_attention(value, flat_shapes, centres, offsets, weights)
        else:
            locations = (centres[:, :, None, :, None] + offsets + 0.5) / sizes[:, None]
            read = deformable_attention(value, shapes, locations, weights)
        return self.output_projection(read)
