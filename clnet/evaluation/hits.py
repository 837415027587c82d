"""Which detection hits which lesion.

Detections are taken in descending order of score (equal scores: in list order). Each hits, among the lesions
of its image whose IoU with it reaches the threshold and that are not hit yet, the one with the largest IoU.
A detection that reaches the threshold only with lesions that are already hit is a duplicate. Every other
detection is a false positive.

All images are processed at once, as flat arrays: D detections and L lesion boxes, image after image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FALSE_POSITIVE = -1
DUPLICATE = -2


class ImageResult(NamedTuple):
    """The detections and lesions of one image. Boxes are xyxy, all in the same unit."""

    boxes: NDArray[np.floating]
    """[n, 4], the detections."""
    scores: NDArray[np.floating]
    """[n], finite."""
    lesions: NDArray[np.floating]
    """[m, 4], the lesion boxes."""


@dataclass(frozen=True, eq=False)
class Overlaps:
    """All detections and lesion boxes of a set of images, and their overlaps.

    Attributes:
        images: the number of images, including those without detections or lesions.
        scores: [D] float64.
        image: [D] int, the image of each detection.
        lesion_image: [L] int, the image of each lesion box.
        detection, lesion, iou: [K], each detection and lesion box of the same image with IoU > 0.
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
        overlaps: what the outcomes were decided from.
        lesion: [D] int, the lesion box that the detection hits, `FALSE_POSITIVE` or `DUPLICATE`.
    """

    overlaps: Overlaps
    lesion: NDArray[np.int64]


def find_overlaps(results: Sequence[ImageResult]) -> Overlaps:
    """Overlaps between the detections and lesions of each image."""
    detections = np.array([len(result.scores) for result in results], np.int64)
    lesions = np.array([len(result.lesions) for result in results], np.int64)
    image = np.repeat(np.arange(len(results)), detections)
    # Every detection with every lesion of its image: [K] index pairs without a loop over images.
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
    """Decide what each detection hits at the IoU threshold `iou`, above 0."""
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
