"""Where a feature or a box is in the image, as a vector: sines and cosines of its place."""

import math

import torch
from torch import Tensor, nn


def sine_positions(centres: Tensor, width: int) -> Tensor:
    """Encode places in an image, as DETR does.

    Half of the vector speaks of y and half of x, in this order. In each half, channels 2i and 2i + 1 are the
    sine and cosine of ``2π · place / 10000^(2i / (width / 2))``.

    Args:
        centres: [..., 2], (x, y) in units of the valid image, so that the image is [0, 1]².
        width: length of the vector, a multiple of 4.

    Returns:
        [..., width].
    """
    pair = torch.arange(width // 4, device=centres.device, dtype=centres.dtype)
    wavelength = 10000 ** (pair * 4 / width)
    angle = 2 * math.pi * centres.flip(-1)[..., None] / wavelength  # [..., (y, x), width / 4]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-3)


class BoxPosition(nn.Module):
    """Where a box is and how large, as a vector; beyond the paper.

    Zero when training begins, so that a network begins as without it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.zeros(width, 2 * width))

    def forward(self, boxes: Tensor) -> Tensor:
        """[..., 4] (cxcywh in [0, 1]) to [..., D]; boxes are taken as they are and learn nothing by it."""
        centre_and_size = boxes.detach().reshape(*boxes.shape[:-1], 2, 2)
        return sine_positions(centre_and_size, self.width).flatten(-2) @ self.weight.t()
