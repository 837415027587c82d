"""Which detection hits which lesion, by one of two rules.

`by_score`: detections are taken in descending order of score (equal scores: in list order). Each hits, among
the lesions of its image whose IoU with it reaches the threshold and that are not hit yet, the one with the
largest IoU.

`one_to_one`: at every score threshold, as many detections as possible hit a lesion of their own whose IoU
with them exceeds the IoU threshold (Hungarian matching). One matching serves all score thresholds: sets of
detections that can be matched together are the independent sets of a matroid, so the set with the best scores
contains a largest set of the detections above each score.

By either rule a detection that overlaps lesions enough, but hits none, is a duplicate. Every other detection
without a hit is a false positive.

All images are processed at once, as flat arrays: D detections and L lesion boxes, image after image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Matching = Literal["by_score", "one_to_one"]

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


def find_hits(overlaps: Overlaps, iou: float, matching: Matching = "by_score") -> Hits:
    """Decide what each detection hits at the IoU threshold `iou`, above 0."""
    outcome = np.full(len(overlaps.scores), FALSE_POSITIVE, np.int64)
    enough = overlaps.iou >= least_overlap(iou, matching)
    outcome[overlaps.detection[enough]] = DUPLICATE
    if matching == "by_score":
        _match_by_score(overlaps, enough, outcome)
    else:
        _match_one_to_one(overlaps, enough, outcome)
    return Hits(overlaps, outcome)


def least_overlap(iou: float, matching: Matching) -> float:
    """The least IoU of a hit: the threshold itself, or the next number where it must be exceeded."""
    return iou if matching == "by_score" else float(np.nextafter(iou, np.inf))


def _match_by_score(overlaps: Overlaps, enough: NDArray[np.bool_], outcome: NDArray[np.int64]) -> None:
    detection, lesion = overlaps.detection[enough], overlaps.lesion[enough]
    order = np.lexsort((lesion, -overlaps.iou[enough], detection, -overlaps.scores[detection]))
    free = np.ones(len(overlaps.lesion_image), bool).tolist()
    for candidate, target in zip(detection[order].tolist(), lesion[order].tolist(), strict=True):
        if free[target] and outcome[candidate] == DUPLICATE:
            free[target] = False
            outcome[candidate] = target


def _match_one_to_one(overlaps: Overlaps, enough: NDArray[np.bool_], outcome: NDArray[np.int64]) -> None:
    detection, lesion, iou = overlaps.detection[enough], overlaps.lesion[enough], overlaps.iou[enough]
    image = overlaps.image[detection]
    for those in np.split(np.arange(len(image)), np.flatnonzero(np.diff(image)) + 1):
        detections, row = np.unique(detection[those], return_inverse=True)
        lesions, column = np.unique(lesion[those], return_inverse=True)
        # A better detection outweighs every worse one that could take its place in a matching; the overlaps,
        # which sum to less than 1, only choose between lesions.
        rank = np.empty(len(detections))
        rank[np.argsort(-overlaps.scores[detections], kind="stable")] = np.arange(len(detections), 0, -1)
        weight = np.zeros((len(detections), len(lesions)))
        weight[row, column] = rank[row] + iou[those] / (len(lesions) + 1)
        for chosen, target in zip(*linear_sum_assignment(weight, maximize=True), strict=True):
            if weight[chosen, target] > 0:
                outcome[detections[chosen]] = lesions[target]


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
