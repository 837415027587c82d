"""Geometry between views, beyond the paper: what two boxes say about being one lesion.

A radiologist who has found a mass in one view looks for it in the other at the same depth. Depth is measured
from the chest wall in CC; in MLO, where the image plane is tilted and the chest wall is a slanting muscle, it
also depends on the height in the image, and both on how deep the breast was compressed. So

    d = a₁ (x − left) + a₂ |y − middle| + a₃ (right − left) + a₄

with one vector a per view, in units of the canvas's width; left, right and middle are those of the image's
content. Rows count by their distance from the middle, so that an image may be turned upside down. What speaks
against two boxes i and j of different views being one lesion is

    g_ij = α ((d_i − d_j) / σ_d)² + β (log(A_i / A_j) / σ_A)²

with A the area of a box. All of a, α and β are learned; where a begins is a setting. σ_d and σ_A are what
boxes of one mass show on the training films of CBIS-DDSM: by the best a, depths differ by 0.09 of the
canvas's width (standard deviation), log areas by 0.4.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.layers import ResidualAttention
from clnet.networks.settings import require
from clnet.networks.views import swap_views, to_images, to_pairs

DEPTH_SPREAD, AREA_SPREAD = 0.09, 0.4
"""σ_d and σ_A."""
STRENGTHS = (0.05, 2.0)
"""α and β begin between these, evenly over the heads."""


class Content(NamedTuple):
    """Where 2B images have content on their canvases."""

    extents: Tensor
    """[2B, 4]: left, top, right and bottom, in units of the canvas."""
    aspect: float
    """Height of the canvas over its width."""


class ViewGeometry(nn.Module):
    """What speaks against two boxes being one lesion, seen by each of several heads.

    Args:
        heads: each has an α and a β of its own.
        axes: where a of CC and a of MLO begin, four numbers each; ``[[1, 0, 0, 0], [1, 0, 0, 0]]`` is the
            straight depth from the chest wall.
    """

    def __init__(self, heads: int, axes: Sequence[Sequence[float]]) -> None:
        super().__init__()
        self.axes = nn.Parameter(torch.tensor(axes, dtype=torch.float32))  # [2, 4]
        require(self.axes.shape == (2, 4), f"axes: {axes} must be four numbers for CC and four for MLO")
        begin = torch.linspace(*STRENGTHS, heads) if heads > 1 else torch.tensor([0.5])
        strengths = torch.stack([begin, begin], dim=-1)
        self.strengths = nn.Parameter(torch.log(torch.expm1(strengths)))  # [heads, 2]: α and β after softplus

    def forward(self, boxes: Tensor, content: Content) -> Tensor:
        """Compare every box of an image with every box of the other view.

        Args:
            boxes: [2B, N, 4], cxcywh in units of the canvas; see `clnet.networks.views`.
            content: of the images.

        Returns:
            −g [2B, heads, N, N]: of each box of the image (row) with each of the partner's (column).
        """
        depth, area = self.depths(boxes, content), boxes[..., 2:].clamp(min=1e-4).log().sum(-1)
        strengths = F.softplus(self.strengths)[:, :, None, None]  # [heads, 2, 1, 1]
        gaps = [
            ((own[:, :, None] - swap_views(own)[:, None, :]) / spread).square()[:, None]
            for own, spread in ((depth, DEPTH_SPREAD), (area, AREA_SPREAD))
        ]  # [2B, 1, N, N] each
        return -(strengths[:, 0] * gaps[0] + strengths[:, 1] * gaps[1])

    def depths(self, boxes: Tensor, content: Content) -> Tensor:
        """The depth d [2B, N] of each box, comparable between views."""
        left, top, right, bottom = content.extents[:, None].unbind(-1)  # [2B, 1] each
        parts = torch.stack(
            [
                boxes[..., 0] - left,
                (boxes[..., 1] - (top + bottom) / 2).abs() * content.aspect,
                (right - left).expand_as(boxes[..., 0]),
                torch.ones_like(boxes[..., 0]),
            ],
            dim=-1,
        )  # [2B, N, 4]
        return to_images((to_pairs(parts) * self.axes[:, None]).sum(-1))


class GeometricInterAttention(nn.Module):
    """The paper's inter-attention, biased by geometry, with "nothing there" among what can be read.

    ``E^c* = E^c + M(E^c + P^c, [E^m + P^m, ∅], [E^m, ∅])`` with −g_ij added to the logits of every head, and
    nothing to those of ∅, a learned embedding.

    Args:
        width: D.
        heads: of the attention.
        dropout: of the attention and its residual.
        axes: of `ViewGeometry`.
    """

    def __init__(self, width: int, heads: int, dropout: float, axes: Sequence[Sequence[float]]) -> None:
        super().__init__()
        self.attention = ResidualAttention(width, heads, dropout)
        self.geometry = ViewGeometry(heads, axes)
        self.nothing = nn.Parameter(torch.empty(width).normal_())

    def forward(self, query: Tensor, position: Tensor, boxes: Tensor, content: Content) -> Tensor:
        """Let the queries [2B, N, D] of each view read from those of the other."""
        partner = swap_views(query)
        nothing = self.nothing.to(partner.dtype).expand_as(partner[:, :1])
        source = torch.cat([partner, nothing], dim=1)
        source_position = F.pad(swap_views(position), (0, 0, 0, 1))
        bias = F.pad(self.geometry(boxes, content), (0, 1))
        informed, _ = self.attention(query, source, position, source_position, bias=bias)
        return informed


def find_content(images: Tensor) -> Content:
    """What is not 0 in images [2B, 1, H, W]; the whole canvas for an image that is 0 everywhere."""
    filled = images[:, 0] != 0
    sides = []
    for lines in (filled.any(1), filled.any(2)):  # columns [2B, W], rows [2B, H]
        count = lines.shape[1]
        first = lines.to(images.dtype).argmax(1)
        last = count - lines.flip(1).to(images.dtype).argmax(1)
        sides.append((first / count, last / count))
    (left, right), (top, bottom) = sides
    return Content(torch.stack([left, top, right, bottom], dim=-1), images.shape[-2] / images.shape[-1])
