"""From the two images of a breast to the model's space.

The model sees each view on a canvas of a fixed size [H, W]: the chest wall on the left at x = 0, the breast
box at the top left, zeros to its right and below. Both views share **one scale**, so that a depth from the
chest wall is the same number of model pixels in CC and MLO: the geometry that links a lesion across them.

The full-size pixels are read twice, to find the breast in a reduced copy and to resize its box; everything
else happens on the small result.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from clnet.data.reader import Mammogram
from clnet.preprocessing.breast import PERCENTILES, BreastRegion, find_breast
from clnet.preprocessing.placement import Placement

PixelSize = tuple[float, float]  # (height, width)
SAME_SIZE = 0.01  # relative difference between two sources that rounding explains


@dataclass(frozen=True)
class PlacedView:
    """A view in the model's space.

    Attributes:
        image: float32 [1, H, W] in [0, 1]; 0 is background and padding.
        valid_size: (rows, columns) of the image at the top left of the canvas; the rest is padding.
        placement: from pixels of the stored image to pixels of the canvas.
        breast: the region found in the stored image.
        steps: what was done, in words.
        warnings: what a user should know.
    """

    image: Tensor
    valid_size: tuple[int, int]
    placement: Placement
    breast: BreastRegion
    steps: tuple[str, ...]
    warnings: tuple[str, ...]


def preprocess_views(
    images: Sequence[Mammogram],
    size: tuple[int, int],
    laterality: str | None = None,
    pixel_sizes: Sequence[PixelSize | None] = (),
) -> list[PlacedView]:
    """Find, orient, crop, resize, normalise and pad the views of one breast.

    Args:
        images: CC and MLO, or one of them.
        size: (H, W) of the canvas.
        laterality: of the breast, for an image without it; see `find_breast`.
        pixel_sizes: (height, width) of a pixel of each image, in any unit that all images share, or None. The
            files' own spacings take precedence.
    """
    breasts = [find_breast(image.pixels, image.header.laterality or laterality) for image in images]
    units, warnings = _pixel_units([image.header.spacing_mm for image in images], pixel_sizes)
    # Model pixels per unit: the largest scale at which every breast box fits the canvas, plus a tiny bit, so
    # that rounding does not make the box that fills it a pixel smaller.
    scale = (1 + 1e-12) * min(
        min(size[0] / ((y_max - y_min) * unit_y), size[1] / ((x_max - x_min) * unit_x))
        for (x_min, y_min, x_max, y_max), (unit_y, unit_x) in zip(
            (breast.box for breast in breasts), units, strict=True
        )
    )
    placed = [
        _place(image.pixels, breast, (scale * unit_y, scale * unit_x), size)
        for image, breast, (unit_y, unit_x) in zip(images, breasts, units, strict=True)
    ]
    return [replace(view, warnings=(*view.warnings, *warnings)) for view in placed]


def _pixel_units(
    spacings: Sequence[PixelSize | None], given: Sequence[PixelSize | None]
) -> tuple[list[PixelSize], tuple[str, ...]]:
    """The (height, width) of a pixel of each image in a common unit, and a warning if two sources disagree.

    In mm if the spacings of all files are known; otherwise as given, if given for all; otherwise in pixels.
    """
    in_mm = [spacing for spacing in spacings if spacing]
    as_given = [pixel_size for pixel_size in given if pixel_size]
    has_spacings, has_given = len(in_mm) == len(spacings), len(as_given) == len(spacings)
    if not has_spacings:
        return (as_given if has_given else [(1.0, 1.0)] * len(spacings)), ()
    # The unit of what is given is unknown, so only the proportions of all heights and widths are compared.
    factors = np.divide(as_given, in_mm) if has_given else np.ones(1)
    if factors.max() <= (1 + SAME_SIZE) * factors.min():
        return in_mm, ()
    return in_mm, (
        f"pixel sizes given as {_words(as_given)}, but {_words(in_mm)} mm in the files, which are used",
    )


def _words(sizes: Sequence[PixelSize]) -> str:
    return " and ".join(f"{height:.4g} × {width:.4g}" for height, width in sizes)


def _place(
    pixels: NDArray[np.float32], breast: BreastRegion, scale: tuple[float, float], size: tuple[int, int]
) -> PlacedView:
    """One view on a canvas of `size` (H, W), at a scale of (y, x) model pixels per original pixel."""
    x_min, y_min, x_max, y_max = breast.box
    scale_y, scale_x = scale
    mirrored = breast.chest_side == "right"
    # The grid of the resized image begins at x_start; if it is mirrored, it must end at the chest wall.
    whole_columns = max(1, math.floor((x_max - x_min) * scale_x))
    x_start = max(x_min, x_max - math.ceil(whole_columns / scale_x)) if mirrored else x_min

    resized = resize(torch.from_numpy(pixels[y_min:y_max, x_start:x_max]), scale_y, scale_x)
    placement = Placement(
        x_scale=scale_x, x_shift=-scale_x * x_start, y_scale=scale_y, y_shift=-scale_y * y_min
    )
    if mirrored:
        resized = resized.flip(-1)
        placement = placement.then(Placement(x_scale=-1.0, x_shift=resized.shape[1]))

    rows, columns = min(resized.shape[0], size[0]), min(resized.shape[1], size[1])
    low, high = breast.brightness
    image = torch.zeros(1, *size)
    warnings = breast.warnings
    if high > low:
        image[0, :rows, :columns] = resized[:rows, :columns].sub(low).div_(high - low).clamp_(0, 1)
    else:
        warnings += ("the breast has a single brightness: the view is blank",)
    steps = (
        f"breast at x {x_min} to {x_max}, y {y_min} to {y_max}, chest wall on the {breast.chest_side}",
        f"cropped to it and resized with anti-aliasing by {scale_y:.5g} to {rows} rows and {columns} columns",
        *(("mirrored: chest wall to the left",) if mirrored else ()),
        f"brightness {low:.6g} to {high:.6g} (percentiles {PERCENTILES[0]:g} and {PERCENTILES[1]:g} "
        "of the breast) mapped to 0 to 1 and clipped",
        f"padded with 0 on the right and below to {size[0]} rows and {size[1]} columns",
    )
    return PlacedView(image, (rows, columns), placement, breast, steps, warnings)


def resize(image: Tensor, scale_y: float, scale_x: float) -> Tensor:
    """Resize an image [h, w] with anti-aliasing by exactly these factors: an edge at x moves to scale_x * x.

    The result has the whole pixels that fit: [floor(h * scale_y), floor(w * scale_x)]. An image too small to
    fill one pixel is extended by its last row or column.
    """
    batch = image[None, None]
    rows, columns = math.floor(1 / scale_y) + 1, math.floor(1 / scale_x) + 1  # these fill a pixel
    if image.shape[0] < rows or image.shape[1] < columns:
        missing = (0, max(0, columns - image.shape[1]), 0, max(0, rows - image.shape[0]))
        batch = F.pad(batch, missing, mode="replicate")
    resized = F.interpolate(
        batch,
        scale_factor=(scale_y, scale_x),
        mode="bilinear",
        antialias=True,
        recompute_scale_factor=False,  # the size is rounded, the scale is not
    )
    return resized[0, 0]
