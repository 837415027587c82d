"""The one owner of box conventions.

A box is four numbers. Outside this module it is always one of these two forms:

- **xyxy**, in pixels: ``(x_min, y_min, x_max, y_max)``, x along the columns and y along the rows of the
  image tensor [C, H, W]. Edges are half-open, as in Python slices: the box of a whole image is
  ``(0, 0, W, H)`` and the area is ``(x_max - x_min) * (y_max - y_min)``.
- **cxcywh**, normalised: centre and size divided by ``(W, H)``, so that all four lie in [0, 1]. This is
  what the network speaks.

MONAI's own box transforms take x to be the *first* spatial axis of the tensor (the rows). They are not
used here; MONAI's overlaps (`box_iou`, `box_giou`) do not depend on the order of the axes and are.
"""

import torch
from monai.data.box_utils import box_giou, box_iou
from torch import Tensor

__all__ = [
    "box_giou",
    "box_iou",
    "clip_to_image",
    "cxcywh_to_xyxy",
    "denormalise",
    "normalise",
    "xyxy_to_cxcywh",
]


def xyxy_to_cxcywh(boxes: Tensor) -> Tensor:
    """Corners [..., 4] to centre and size [..., 4], in the same unit."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def cxcywh_to_xyxy(boxes: Tensor) -> Tensor:
    """Centre and size [..., 4] to corners [..., 4], in the same unit."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([centre - half, centre + half], dim=-1)


def normalise(boxes: Tensor, rows: int, columns: int) -> Tensor:
    """Pixel xyxy [..., 4] to normalised cxcywh [..., 4] in an image of that size."""
    return xyxy_to_cxcywh(boxes) / boxes.new_tensor([columns, rows, columns, rows])


def denormalise(boxes: Tensor, rows: int, columns: int) -> Tensor:
    """Normalised cxcywh [..., 4] to pixel xyxy [..., 4] in an image of that size."""
    return cxcywh_to_xyxy(boxes * boxes.new_tensor([columns, rows, columns, rows]))


def clip_to_image(boxes: Tensor, rows: int, columns: int) -> Tensor:
    """Cut pixel xyxy boxes [..., 4] at the edges of an image of that size."""
    limit = boxes.new_tensor([columns, rows, columns, rows])
    return torch.minimum(boxes.clamp(min=0), limit)
