"""Where a feature is in the image, as a vector: sines and cosines of its place."""

import math

import torch
from torch import Tensor


def sine_positions(centres: Tensor, width: int) -> Tensor:
    """Encode places in an image, as DETR does.

    Half of the vector speaks of y and half of x, in this order. In each half, channels 2i and 2i + 1 are the
    sine and cosine of ``2π · place / 10000^(2i / (width / 2))``.

    Args:
        centres: [..., 2], (x, y) in units of the canvas.
        width: length of the vector, a multiple of 4.

    Returns:
        [..., width].
    """
    pair = torch.arange(width // 4, device=centres.device, dtype=centres.dtype)
    wavelength = 10000 ** (pair * 4 / width)
    angle = 2 * math.pi * centres.flip(-1)[..., None] / wavelength  # [..., (y, x), width / 4]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-3)
