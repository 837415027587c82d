"""Find the breast in a mammogram: digital, with exact zeros around it, or film, with anything around it.

The search runs on a reduced copy, about 256 pixels on its long side, in four steps:

1. cut off white film borders;
2. take the most common dark value as the background, and what is clearly brighter as the foreground;
3. open the foreground with a disc wider than a letter, a scratch or the glow along the edge of a film, and
   keep the largest component: the breast, without labels that are near it or touch it;
4. grow that component back into the foreground by the height of a nipple, and add a margin.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

ChestSide = Literal["left", "right"]
Mask = NDArray[np.bool_]

USUAL_CHEST_SIDE: dict[str, ChestSide] = {"L": "left", "R": "right"}

SEARCH_SIZE = 256  # pixels on the long side of the reduced copy
SAMPLES = 4  # per axis, averaged into one of its pixels: enough to reduce noise
MAX_BORDER = 0.12  # of a side; a wider white edge is tissue
BINS = 64  # of the histogram of brightness
MIN_PEAK = 0.06  # of all pixels are in one bin if there is a background; tissue spreads over many bins
MIN_CONTRAST = 0.04  # of the way from background to tissue, where foreground begins: skin is faint
MAX_CONTRAST = 0.15  # however noisy the background: too much of it is better than a part of the breast
DISC = 0.07  # radius of the opening, of the short side; letters and glow are thinner
GROWTH = 0.04  # foreground this close to the opened component belongs to the breast, of the short side
MARGIN = 0.02  # around the breast, of the long side
MIN_BREAST = 0.02  # of the area of the image
PERCENTILES = (1.0, 99.5)  # of the brightness inside the breast; they become 0 and 1


@dataclass(frozen=True)
class BreastRegion:
    """Where the breast is in an image.

    Attributes:
        box: (x_min, y_min, x_max, y_max), whole pixels of the original image, half-open.
        chest_side: the side of the image with the chest wall.
        brightness: the percentiles of the brightness inside the breast that become 0 and 1.
        warnings: what a user should know. If no breast was found, the box is the whole image, and a warning
            says so.
    """

    box: tuple[int, int, int, int]
    chest_side: ChestSide
    brightness: tuple[float, float]
    warnings: tuple[str, ...] = ()


def find_breast(pixels: NDArray[Any], laterality: str | None = None) -> BreastRegion:
    """Find the breast in pixels [H, W] (rows first, bright where dense).

    The laterality ("L" or "R", if known) is a cross-check: in an image for presentation, the chest wall of a
    left breast is on the left. If the pixels disagree, they are followed, with a warning; the laterality
    decides only if they are inconclusive.
    """
    expected = USUAL_CHEST_SIDE.get(laterality or "")
    small, factor = _reduced(pixels)
    top, bottom, left, right = _inside_borders(small)
    mask = np.zeros(small.shape, dtype=bool)
    mask[top:bottom, left:right] = _largest_component(_foreground(small[top:bottom, left:right]))
    if mask.mean() < MIN_BREAST:
        low, high = np.percentile(small, PERCENTILES)
        return BreastRegion(
            box=(0, 0, pixels.shape[1], pixels.shape[0]),
            chest_side=expected or "left",
            brightness=(float(low), float(high)),
            warnings=("no breast found in the pixels: the whole image is used",),
        )

    warnings = []
    chest_side = _chest_side(mask)
    if chest_side is None:
        chest_side = expected or "left"
        warnings.append(f"the pixels do not show the side of the chest wall: {chest_side} is assumed")
    elif expected and chest_side != expected:
        warnings.append(
            f"the chest wall is on the {chest_side}, but laterality {laterality} implies {expected}: the "
            "pixels are followed"
        )
    low, high = np.percentile(small[mask], PERCENTILES)
    return BreastRegion(
        box=_box_around(mask, (top, bottom, left, right), factor, pixels.shape),
        chest_side=chest_side,
        brightness=(float(low), float(high)),
        warnings=tuple(warnings),
    )


def _reduced(pixels: NDArray[Any]) -> tuple[NDArray[np.float32], int]:
    """A copy [h, w] of about SEARCH_SIZE, and the original pixels per pixel of the copy along each axis."""
    factor = max(1, round(max(pixels.shape) / SEARCH_SIZE))
    # Some of the pixels are enough for a mean, and much faster to read than all of them.
    step = max(1, factor // SAMPLES)
    block = factor // step
    sparse = pixels[::step, ::step]
    rows, columns = (max(1, size // block) for size in sparse.shape)
    sparse = sparse[: rows * block, : columns * block].astype(np.float32)
    block_rows, block_columns = sparse.shape[0] // rows, sparse.shape[1] // columns
    small = sparse.reshape(rows, block_rows, columns, block_columns).mean(axis=(1, 3))
    return small, step * block


def _inside_borders(small: NDArray[np.float32]) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of the image without white film borders."""
    low, high = np.percentile(small, (0.1, 99.9))
    white = small >= low + 0.8 * (high - low)
    rows, columns = small.shape
    white_rows, white_columns = white.mean(axis=1) > 0.9, white.mean(axis=0) > 0.9
    return (
        _border(white_rows),
        rows - _border(white_rows[::-1]),
        _border(white_columns),
        columns - _border(white_columns[::-1]),
    )


def _border(white_lines: Mask) -> int:
    """The number of leading lines that are a white border; 0 if the white is too wide for one."""
    widest = int(MAX_BORDER * len(white_lines)) + 1
    lines = np.flatnonzero(~white_lines[: widest + 1])
    return int(lines[0]) if len(lines) else 0


def _foreground(image: NDArray[np.float32]) -> Mask:
    """Where an image [h, w] is clearly brighter than its background; everywhere if it has none."""
    low, high = np.percentile(image, (0.5, 99.5))
    if high <= low:
        return np.zeros(image.shape, dtype=bool)
    counts, edges = np.histogram(image.clip(low, high), bins=BINS)
    centres = (edges[:-1] + edges[1:]) / 2
    split = _otsu(counts, centres)
    peak = int(counts[: split + 1].argmax())
    if counts[peak] < MIN_PEAK * counts.sum():
        return np.ones(image.shape, dtype=bool)
    background, tissue = centres[peak], np.average(centres[split + 1 :], weights=counts[split + 1 :])
    # The standard deviation of the background, if it is Gaussian, from its darker half alone: in the brighter
    # one, fat, which is nearly as dark in processed digital images, would count as noise.
    below = background - image[image <= background]
    noise = 1.4826 * np.median(below) if below.size else 0.0
    contrast = tissue - background
    return image > background + np.clip(3 * noise, MIN_CONTRAST * contrast, MAX_CONTRAST * contrast)


def _otsu(counts: NDArray[np.int64], centres: NDArray[np.floating[Any]]) -> int:
    """The last bin of the darker of two classes (Otsu 1979: maximum variance between classes)."""
    dark = np.cumsum(counts)[:-1]
    bright = counts.sum() - dark
    total = np.cumsum(counts * centres)
    difference = total[:-1] / np.maximum(dark, 1) - (total[-1] - total[:-1]) / np.maximum(bright, 1)
    return int(np.argmax(dark * bright * difference**2))


def _largest_component(foreground: Mask) -> Mask:
    """The breast in a foreground [h, w]: its largest component after opening with a disc, grown back."""
    short = min(foreground.shape)
    disc, growth = max(1.0, DISC * short), GROWTH * short
    # Mirrored at the edges, a half-disc breast becomes a disc, while the glow along an edge stays thin.
    pad = int(disc + growth) + 2
    padded = np.pad(foreground, pad, mode="symmetric")
    centres = ndimage.distance_transform_edt(padded) > disc
    if not centres.any():
        return np.zeros(foreground.shape, dtype=bool)
    components, count = ndimage.label(ndimage.distance_transform_edt(~centres) <= disc)
    inside = components[pad:-pad, pad:-pad]
    areas = np.bincount(inside.ravel(), minlength=count + 1)[1:]
    component = components == areas.argmax() + 1
    grown = padded & (ndimage.distance_transform_edt(~component) <= growth)
    return grown[pad:-pad, pad:-pad]


def _chest_side(mask: Mask) -> ChestSide | None:
    """The side where the breast is tall (the chest wall) rather than short (the nipple).

    None if the two ends are similar. Brightness does not count: dense tissue often lies behind the nipple,
    and fat at the chest wall.
    """
    height = mask.sum(axis=0)
    columns = np.flatnonzero(height)
    outer = max(1, len(columns) // 10)
    left, right = height[columns[:outer]].sum(), height[columns[-outer:]].sum()
    if abs(left - right) <= 0.1 * max(left, right):
        return None
    return "left" if left > right else "right"


def _box_around(
    mask: Mask, inside: tuple[int, int, int, int], factor: int, shape: tuple[int, ...]
) -> tuple[int, int, int, int]:
    """The box around the mask with a margin, within the borders, in pixels of an original of `shape`."""
    top, bottom, left, right = inside
    margin = int(np.ceil(MARGIN * max(mask.shape)))
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    y_min, y_max = max(rows[0] - margin, top), min(rows[-1] + 1 + margin, bottom)
    x_min, x_max = max(columns[0] - margin, left), min(columns[-1] + 1 + margin, right)
    # The reduced copy lacks the last pixels of an image whose size is not a multiple of the factor.
    return (
        int(x_min * factor),
        int(y_min * factor),
        int(shape[1] if x_max == mask.shape[1] else x_max * factor),
        int(shape[0] if y_max == mask.shape[0] else y_max * factor),
    )
