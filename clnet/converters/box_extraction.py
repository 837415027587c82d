"""Boxes from masks and outlines, in pixels with the conventions of `clnet.boxes`: xyxy, half-open."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clnet.converters.annotated import Box


def mask_to_box(mask: NDArray[Any]) -> Box | None:
    """The box around the non-zero pixels of a mask [rows, columns]; None if there are none."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


def points_to_box(points: NDArray[Any]) -> Box:
    """The smallest box of whole pixels around the points (x, y) [n, 2]."""
    (x_min, y_min), (x_max, y_max) = np.floor(points.min(axis=0)), np.floor(points.max(axis=0))
    return float(x_min), float(y_min), float(x_max + 1), float(y_max + 1)


def rescale_box(box: Box, size: tuple[int, int], new_size: tuple[int, int]) -> Box:
    """A box in an image of `size` (rows, columns) after the image is resized to `new_size`."""
    y, x = (new / old for old, new in zip(size, new_size, strict=True))
    return box[0] * x, box[1] * y, box[2] * x, box[3] * y


def clip_box(box: Box, size: tuple[int, int]) -> Box | None:
    """The part of a box inside an image of `size` (rows, columns); None if there is none."""
    rows, columns = size
    x_min, y_min = max(box[0], 0.0), max(box[1], 0.0)
    x_max, y_max = min(box[2], float(columns)), min(box[3], float(rows))
    return (x_min, y_min, x_max, y_max) if x_min < x_max and y_min < y_max else None
