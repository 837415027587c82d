"""Multi-scale deformable attention (Deformable DETR, Eq. 3): a query reads a few places, not all."""

import math

import torch
from torch import Tensor, nn

from clnet.ops.deformable_attention import deformable_attention
from clnet.ops.reference import Shapes


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
        """Begin with equal weights on places in one direction per head, a step further with each point."""
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

    def forward(self, query: Tensor, references: Tensor, tokens: Tensor, shapes: Shapes) -> Tensor:
        """Let queries read from the features of an image.

        Args:
            query: [B, Q, D], positions included.
            references: [B or 1, Q, 2 or 4] in units of the canvas: (x, y), around which offsets count in
                cells of each level's map; or (cx, cy, w, h), around whose centre they count in half sizes of
                the box over the number of points.
            tokens: [B, S, D], the features of all levels.
            shapes: (rows, columns) of each of the L levels.

        Returns:
            [B, Q, D].
        """
        batch, queries, _ = query.shape
        value = self.value_projection(tokens)
        value = value.view(batch, -1, self.heads, value.shape[-1] // self.heads)
        offsets = self.sampling_offsets(query).view(batch, queries, self.heads, self.levels, self.points, 2)
        weights = self.attention_weights(query).view(batch, queries, self.heads, self.levels * self.points)
        weights = weights.softmax(-1).view(batch, queries, self.heads, self.levels, self.points)

        # From here on, places count in cells of each level's map, x first.
        sizes = references.new_tensor([(columns, rows) for rows, columns in shapes])  # [L, 2]
        centres = references[:, :, None, :2] * sizes - 0.5
        if references.shape[-1] == 4:
            steps = references[:, :, None, 2:] * sizes * (0.5 / self.points)
            offsets = offsets * steps[:, :, None, :, None]
        return self.output_projection(deformable_attention(value, shapes, centres, offsets, weights))
