"""The feature levels of Deformable DETR: maps of several strides, one width, flattened into tokens."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from clnet.networks.geometry import Content
from clnet.networks.settings import require

NORM_GROUPS = 32


class ImageFeatures(NamedTuple):
    """The tokens of images and where they are; S is the number of cells in all L levels."""

    tokens: Tensor
    """[B, S, D], level after level, row by row."""
    centres: Tensor
    """[1, S, 2]: (x, y) of each cell's centre; the canvas is [0, 1]²."""
    shapes: list[tuple[int, int]]
    """(rows, columns) of each level."""
    content: Content
    """Where the images have content."""


class FeatureLevels(nn.Module):
    """From a backbone's maps to L levels of one width.

    The deepest min(L, maps) maps pass a 1×1 convolution; each further level halves the one before it by a
    3×3 convolution of stride 2, the first of them from the backbone's last map.
    """

    def __init__(self, channels: list[int], levels: int, width: int) -> None:
        super().__init__()
        require(levels >= 1, f"levels: {levels} must be at least 1")
        require(
            width > 0 and width % NORM_GROUPS == 0,
            f"width: {width} must be a multiple of {NORM_GROUPS}, the groups of the norm",
        )
        self.used_maps = min(levels, len(channels))
        used = channels[-self.used_maps :]
        extra = [channels[-1], *[width] * levels][: levels - self.used_maps]
        self.projections = nn.ModuleList(
            [_projection(nn.Conv2d(below, width, 1)) for below in used]
            + [_projection(nn.Conv2d(below, width, 3, stride=2, padding=1)) for below in extra]
        )

    def forward(self, maps: list[Tensor], content: Content) -> ImageFeatures:
        """Flatten the backbone's maps, [B, channels[i], h_i, w_i], into tokens."""
        used = maps[-self.used_maps :]
        levels = []
        for index, projection in enumerate(self.projections):
            if index < len(used):
                levels.append(projection(used[index]))
            else:
                levels.append(projection(used[-1] if index == len(used) else levels[-1]))
        shapes = [(level.shape[-2], level.shape[-1]) for level in levels]
        tokens = torch.cat([level.flatten(2).transpose(1, 2) for level in levels], dim=1)
        centres = torch.cat([_centres(rows, columns, tokens) for rows, columns in shapes])
        return ImageFeatures(tokens, centres[None], shapes, content)


def _projection(convolution: nn.Conv2d) -> nn.Sequential:
    nn.init.xavier_uniform_(convolution.weight)
    nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    return nn.Sequential(convolution, nn.GroupNorm(NORM_GROUPS, convolution.out_channels))


def _centres(rows: int, columns: int, like: Tensor) -> Tensor:
    """The centres [rows · columns, 2] of a map's cells, row by row, x before y, in units of the map."""
    y = (torch.arange(rows, device=like.device).to(like.dtype) + 0.5) / rows
    x = (torch.arange(columns, device=like.device).to(like.dtype) + 0.5) / columns
    return torch.stack([x.repeat(rows), y.repeat_interleave(columns)], dim=-1)
