"""Boxes from what data sets hold: masks, of the image's size or of another, and points of outlines.

The conventions are those of `clnet.boxes`: xyxy, x along the columns, half-open.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clnet.converters.marked import Box


def box_of_mask(mask: NDArray[Any]) -> Box | None:
    """The box around all pixels of a mask [rows, columns] that are not 0; None if there are none."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


def box_of_points(points: NDArray[Any]) -> Box:
    """The smallest box of whole pixels around the pixels that points (x, y) [n, 2] lie in."""
    (x_min, y_min), (x_max, y_max) = np.floor(points.min(axis=0)), np.floor(points.max(axis=0))
    return float(x_min), float(y_min), float(x_max + 1), float(y_max + 1)


def to_size(box: Box, size: tuple[int, int], new_size: tuple[int, int]) -> Box:
    """A box of an image of `size` (rows, columns) in the same image stretched to `new_size`."""
    y, x = (new / old for old, new in zip(size, new_size, strict=True))
    return box[0] * x, box[1] * y, box[2] * x, box[3] * y


def cut_at_edges(box: Box, size: tuple[int, int]) -> Box | None:
    """The part of a box that lies in an image of `size` (rows, columns); None if there is none."""
    rows, columns = size
    x_min, y_min = max(box[0], 0.0), max(box[1], 0.0)
    x_max, y_max = min(box[2], float(columns)), min(box[3], float(rows))
    return (x_min, y_min, x_max, y_max) if x_min < x_max and y_min < y_max else None
