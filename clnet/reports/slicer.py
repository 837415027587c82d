"""Where 3D Slicer shows a box of a mammogram.

A mammogram has no position in the patient. Slicer puts the centre of its first pixel at the origin, x along a
row towards L and y down a column towards P, at the distance of the detector's pixels, in one slice of 1 mm.
"""

import torch
from torch import Tensor

from clnet.boxes import xyxy_to_cxcywh


def slicer_boxes(boxes: Tensor, spacing: tuple[float, float] | None) -> Tensor:
    """Centre and size along L, P and S in millimetres [n, 6] of boxes [n, 4], xyxy in pixels.

    Args:
        boxes: half-open, see `clnet.boxes`.
        spacing: millimetres between rows and between columns; without, Slicer takes 1.
    """
    between_rows, between_columns = spacing or (1.0, 1.0)
    scale = boxes.new_tensor([between_columns, between_rows])
    centre_and_size = xyxy_to_cxcywh(boxes)
    centre, size = centre_and_size[:, :2], centre_and_size[:, 2:]
    depth = boxes.new_ones(len(boxes), 1)
    return torch.cat([(centre - 0.5) * scale, 0 * depth, size * scale, depth], dim=1)
