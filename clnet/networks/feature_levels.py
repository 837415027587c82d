"""The feature levels of Deformable DETR: maps of several strides, one width, flattened into tokens."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from clnet.networks.deformable_attention import Shapes

NORM_GROUPS = 32


class ImageFeatures(NamedTuple):
    """The tokens of images and where they are; S is the number of cells in all L levels.

    Where every image fills its canvas, what depends on places alone has a batch of 1.
    """

    tokens: Tensor
    """[B, S, D], level after level, row by row."""
    centres: Tensor
    """[B or 1, S, 2]: (x, y) of each cell's centre; the valid image is [0, 1]²."""
    valid_ratios: Tensor
    """[B or 1, L, 2]: (x, y), the part of each level's map that the valid image covers, in (0, 1]."""
    padding: Tensor | None
    """bool [B, S], True at cells outside the valid image; None if there are none."""
    shapes: Shapes
    """(rows, columns) of each level."""

    def places(self, reference: Tensor) -> Tensor:
        """Points or boxes in units of the valid image, [B, N, 2 or 4], in units of each level's map.

        Returns:
            [B, N, L, 2 or 4].
        """
        scale = self.valid_ratios.repeat(1, 1, reference.shape[-1] // 2)  # (x, y) or (x, y, x, y)
        return reference[:, :, None] * scale[:, None]

    def of_view(self, view: int) -> "ImageFeatures":
        """The features of one view, where images are pairs: CC, MLO, CC, MLO, …."""
        return self._replace(
            tokens=self.tokens[view::2],
            centres=_every_second(self.centres, view),
            valid_ratios=_every_second(self.valid_ratios, view),
            padding=None if self.padding is None else self.padding[view::2],
        )


def _every_second(tensor: Tensor, view: int) -> Tensor:
    return tensor if tensor.shape[0] == 1 else tensor[view::2]


class FeatureLevels(nn.Module):
    """From a backbone's maps to L levels of one width.

    The deepest min(L, 3) maps pass a 1×1 convolution; each level beyond three halves the one before it by a
    3×3 convolution of stride 2, the first of them from the backbone's last map.
    """

    def __init__(self, channels: list[int], levels: int, width: int) -> None:
        super().__init__()
        self.used_maps = min(levels, len(channels))
        used = channels[-self.used_maps :]
        extra = [channels[-1], *[width] * levels][: levels - self.used_maps]
        self.projections = nn.ModuleList(
            [_projection(nn.Conv2d(below, width, 1)) for below in used]
            + [_projection(nn.Conv2d(below, width, 3, stride=2, padding=1)) for below in extra]
        )

    def forward(self, maps: list[Tensor], size: tuple[int, int], valid_size: Tensor | None) -> ImageFeatures:
        """Flatten maps into tokens.

        Args:
            maps: the backbone's maps, [B, channels[i], h_i, w_i].
            size: (rows, columns) of the canvas that the maps were made from.
            valid_size: int [B, 2], (rows, columns) of the image at the upper left of its canvas; None if it
                fills it.
        """
        used = maps[-self.used_maps :]
        levels = []
        for index, projection in enumerate(self.projections):
            if index < len(used):
                levels.append(projection(used[index]))
            else:
                levels.append(projection(used[-1] if index == len(used) else levels[-1]))
        shapes = [(level.shape[-2], level.shape[-1]) for level in levels]
        tokens = torch.cat([level.flatten(2).transpose(1, 2) for level in levels], dim=1)

        centres, ratios, padding = zip(
            *(_cells(shape, size, valid_size, tokens) for shape in shapes), strict=True
        )
        return ImageFeatures(
            tokens=tokens,
            centres=torch.cat(centres, dim=1),
            valid_ratios=torch.stack(ratios, dim=1),
            padding=None if valid_size is None else torch.cat(padding, dim=1),
            shapes=shapes,
        )


def _projection(convolution: nn.Conv2d) -> nn.Sequential:
    nn.init.xavier_uniform_(convolution.weight)
    nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    return nn.Sequential(convolution, nn.GroupNorm(NORM_GROUPS, convolution.out_channels))


def _cells(
    shape: tuple[int, int], size: tuple[int, int], valid_size: Tensor | None, like: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Centres [B, h·w, 2], valid ratio [B, 2] and padding [B, h·w] of one level's cells; x before y."""
    grid = torch.tensor([shape], device=like.device)  # [1, 2], rows before columns like sizes
    canvas = torch.tensor([size], device=like.device)
    valid = canvas if valid_size is None else valid_size
    # A cell is valid if the pixel at its upper left corner is: the mask of pixels, reduced to the nearest.
    valid_cells = (valid * grid + canvas - 1) // canvas
    rows = torch.arange(shape[0], device=like.device).repeat_interleave(shape[1])
    columns = torch.arange(shape[1], device=like.device).repeat(shape[0])
    cell = torch.stack([rows, columns], dim=-1)  # [h·w, 2]
    centres = (cell + 0.5).to(like.dtype) / valid_cells[:, None].to(like.dtype)
    padding = (cell >= valid_cells[:, None]).any(-1)
    return centres.flip(-1), (valid_cells / grid).to(like.dtype).flip(-1), padding
