"""Geometry between views, beyond the paper: what two boxes say about being one lesion.

A radiologist who has found a mass in one view looks for it in the other at the same depth. Depth is measured
from the chest wall in CC; in MLO, where the image plane is tilted and the chest wall is a slanting muscle, it
also depends on the height in the image, and both on how deep the breast was compressed. A view that shows
less of the chest wall has smaller depths, but the same from the nipple, at the right. What lies high in MLO
often lies lateral in CC. So each view v has a matrix M_v that leads from

    m = (x − left, (y − middle) H / W, right − left, 1),

in units of the canvas's width, to a place u = (depth, row) = M_v m in a frame that both views share; left,
right and middle are those of the image's content. What speaks against two boxes i and j of different views
being one lesion is

    g_ij = Σ_k α_k ((u_i − u_j)_k / σ_k)² + β (log(A_i / A_j) / σ_A)²

with A the area of a box. M, α and β are learned; where M begins, and the spreads σ, are a `CommonFrame`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clnet.networks.layers import ResidualAttention
from clnet.networks.settings import require
from clnet.networks.views import swap_views, to_images, to_pairs
from clnet.ops.precision import without_autocast

STRENGTHS = (0.05, 2.0)
"""α and β begin between these, evenly over the heads."""


class Content(NamedTuple):
    """Where 2B images have content on their canvases."""

    extents: Tensor
    """[2B, 4]: left, top, right and bottom, in units of the canvas."""
    aspect: float
    """Height of the canvas over its width."""


@dataclass(frozen=True)
class CommonFrame:
    """Where the matrices of a `ViewGeometry` begin, and how far the boxes of one lesion lie apart.

    ``scripts/fit_frame.py`` fits one to a data set.

    Attributes:
        cc: M of CC, [2, 4]: depth and row.
        mlo: M of MLO.
        spreads: σ of depth, of row and of log area.
    """

    cc: Sequence[Sequence[float]]
    mlo: Sequence[Sequence[float]]
    spreads: Sequence[float]

    def __post_init__(self) -> None:
        for name, rows in (("cc", self.cc), ("mlo", self.mlo)):
            fits = len(rows) == 2 and all(len(row) == 4 for row in rows)
            require(fits, f"frame: {name} is {rows}, and must be two rows of four numbers: depth and row")
        fits = len(self.spreads) == 3 and min(self.spreads) > 0
        require(fits, f"frame: spreads are {self.spreads}, and must be three numbers above 0")


class ViewGeometry(nn.Module):
    """What speaks against two boxes being one lesion, seen by each of several heads.

    Args:
        heads: each has an α and a β of its own.
        frame: where M begins, and σ.
    """

    spreads: Tensor

    def __init__(self, heads: int, frame: CommonFrame) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.tensor([frame.cc, frame.mlo], dtype=torch.float32))  # [2, 2, 4]
        self.register_buffer("spreads", torch.tensor(frame.spreads), persistent=False)
        begin = torch.linspace(*STRENGTHS, heads) if heads > 1 else torch.tensor([0.5])
        # [heads, 3]: α of depth and row, and β, after softplus
        self.strengths = nn.Parameter(torch.log(torch.expm1(begin))[:, None].repeat(1, 3))

    def forward(self, boxes: Tensor, content: Content) -> Tensor:
        """Compare every box of an image with every box of the other view.

        Args:
            boxes: [2B, N, 4], cxcywh in units of the canvas; see `clnet.networks.views`.
            content: of the images.

        Returns:
            −g [2B, heads, N, N]: of each box of the image (row) with each of the partner's (column).
        """
        area = boxes[..., 2:].clamp(min=1e-4).log().sum(-1, keepdim=True)
        with without_autocast(boxes.device):
            own = torch.cat([self.places(boxes, content), area], dim=-1) / self.spreads  # [2B, N, 3]
            gaps = (own[:, :, None] - swap_views(own)[:, None]).square()  # [2B, N, N, 3]
            return -(gaps @ F.softplus(self.strengths).T).permute(0, 3, 1, 2)

    def places(self, boxes: Tensor, content: Content) -> Tensor:
        """The place u [2B, N, 2] of each box, its depth and its row, in the frame that both views share."""
        known = to_pairs(measures(boxes, content))  # [B, 2, N, 4]
        return to_images(known @ self.matrices.transpose(1, 2))


def measures(boxes: Tensor, content: Content) -> Tensor:
    """What places are computed from: m [2B, N, 4] of boxes [2B, N, 4], in units of the canvas's width."""
    left, top, right, bottom = content.extents[:, None].unbind(-1)  # [2B, 1] each
    x, y = boxes[..., 0], boxes[..., 1]
    parts = [
        x - left,
        (y - (top + bottom) / 2) * content.aspect,
        (right - left).expand_as(x),
        torch.ones_like(x),
    ]
    return torch.stack(parts, dim=-1)


class GeometricInterAttention(nn.Module):
    """The paper's inter-attention, biased by geometry, with "nothing there" among what can be read.

    ``E^c* = E^c + M(E^c + P^c, [E^m + P^m, ∅], [E^m, ∅])`` with −g_ij added to the logits of every head, and
    nothing to those of ∅, a learned embedding.

    Args:
        width: D.
        heads: of the attention.
        dropout: of the attention and its residual.
        frame: of `ViewGeometry`.
    """

    def __init__(self, width: int, heads: int, dropout: float, frame: CommonFrame) -> None:
        super().__init__()
        self.attention = ResidualAttention(width, heads, dropout)
        self.geometry = ViewGeometry(heads, frame)
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
