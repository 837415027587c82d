"""Which detection hits which lesion.

Detections are taken by falling score (equal scores: in their order in the list). Each hits, among the lesions
of its image that it overlaps with at least the IoU threshold and that nothing has hit yet, the one that it
overlaps most. A detection that overlaps enough, but only with lesions that are already hit, is a duplicate.
Every other detection is a false positive.

All images are handled at once, as flat arrays: D detections and L lesion boxes, one image after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FALSE_POSITIVE = -1
DUPLICATE = -2


class ImageResult(NamedTuple):
    """One image: what was found and what is there. Boxes are xyxy, in any one unit for both."""

    boxes: NDArray[np.floating]
    """[n, 4] of the detections."""
    scores: NDArray[np.floating]
    """[n], finite; higher is surer."""
    lesions: NDArray[np.floating]
    """[m, 4] boxes of the lesions."""


@dataclass(frozen=True, eq=False)
class Overlaps:
    """All detections and lesions of a set of images, and where they overlap.

    Attributes:
        images: how many, those without detections or lesions too.
        scores: [D] float64.
        image: [D] int, the image of each detection.
        lesion_image: [L] int, the image of each lesion box.
        detection, lesion, iou: [K], each detection and lesion of one image whose IoU is above 0.
    """

    images: int
    scores: NDArray[np.float64]
    image: NDArray[np.int64]
    lesion_image: NDArray[np.int64]
    detection: NDArray[np.int64]
    lesion: NDArray[np.int64]
    iou: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hits:
    """The outcome of every detection at one IoU threshold.

    Attributes:
        overlaps: what it was decided from.
        lesion: [D] int, the lesion box that the detection hits, `FALSE_POSITIVE` or `DUPLICATE`.
    """

    overlaps: Overlaps
    lesion: NDArray[np.int64]


def find_overlaps(results: Sequence[ImageResult]) -> Overlaps:
    """Overlaps between detections and lesions, image by image."""
    detections = np.array([len(result.scores) for result in results], np.int64)
    lesions = np.array([len(result.lesions) for result in results], np.int64)
    image = np.repeat(np.arange(len(results)), detections)
    # Each detection stands beside each lesion of its image: [K] index pairs without a loop over images.
    beside = lesions[image]
    detection = np.repeat(np.arange(len(image)), beside)
    nth = np.arange(len(detection)) - np.repeat(np.cumsum(beside) - beside, beside)
    lesion = (np.cumsum(lesions) - lesions)[image[detection]] + nth
    iou = _iou(
        _concatenate([result.boxes for result in results], (0, 4))[detection],
        _concatenate([result.lesions for result in results], (0, 4))[lesion],
    )
    overlapping = iou > 0
    return Overlaps(
        images=len(results),
        scores=_concatenate([result.scores for result in results], (0,)),
        image=image,
        lesion_image=np.repeat(np.arange(len(results)), lesions),
        detection=detection[overlapping],
        lesion=lesion[overlapping],
        iou=iou[overlapping],
    )


def find_hits(overlaps: Overlaps, iou: float) -> Hits:
    """Decide what each detection hits where an IoU of at least `iou` (above 0) is asked for."""
    outcome = np.full(len(overlaps.scores), FALSE_POSITIVE, np.int64)
    enough = overlaps.iou >= iou
    detection, lesion = overlaps.detection[enough], overlaps.lesion[enough]
    outcome[detection] = DUPLICATE
    order = np.lexsort((lesion, -overlaps.iou[enough], detection, -overlaps.scores[detection]))
    free = np.ones(len(overlaps.lesion_image), bool).tolist()
    for candidate, target in zip(detection[order].tolist(), lesion[order].tolist(), strict=True):
        if free[target] and outcome[candidate] == DUPLICATE:
            free[target] = False
            outcome[candidate] = target
    return Hits(overlaps, outcome)


# In float64, so that an IoU of exactly 1/5 reaches 0.2; MONAI's `box_iou` works in float32, adds
# an epsilon, and takes one image at a time.
def _iou(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """IoU [K] of xyxy boxes [K, 4] with others [K, 4], row by row; 0 where a box has no area."""
    low = np.maximum(boxes[:, :2], others[:, :2])
    high = np.minimum(boxes[:, 2:], others[:, 2:])
    intersection = (high - low).clip(min=0).prod(1)
    union = (boxes[:, 2:] - boxes[:, :2]).prod(1) + (others[:, 2:] - others[:, :2]).prod(1) - intersection
    return np.divide(intersection, union, out=np.zeros_like(union), where=union > 0)


def _concatenate(arrays: Sequence[NDArray[np.floating]], empty: tuple[int, ...]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(empty), *arrays]).astype(np.float64)
