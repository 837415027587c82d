"""R@t: the recall at t false positives per image (FPI), and the FROC curve that it is read from.

A score threshold gives one point: the share of lesions hit by a detection that reaches it, and the number of
false positives that reach it per image, negative images included. R@t is the best recall among the thresholds
whose FPI is at most t; detections of equal score pass together.

Recall falls as the threshold rises, so one threshold matters for each t: just above the *cutoff score*, the
highest score (of some false positive) at which FPI would exceed t. R@t is the share of units found strictly
above it. This holds under any weights of the images, so a bootstrap reduces to weighted sums.

A curve may also be read with linear interpolation: from the point of the largest FPI up to t to that of the
smallest FPI above t, each with the best recall at its FPI. Beyond the last point recall stays the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clnet.evaluation.hits import DUPLICATE, FALSE_POSITIVE, Hits, ImageResult, find_hits, find_overlaps

RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""The reported values of t in R@t."""
MEAN_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The values of t in the paper's tables; the mean recall is taken over them."""
IOU_THRESHOLDS = (0.2, 0.5)
"""0.2 is usual in the literature that the paper compares with; 0.5 is stricter."""
MISSED = -np.inf

_CHUNK = 4_000_000  # numbers in memory at a time


@dataclass(frozen=True, eq=False)
class Froc:
    """The data behind the FROC curve at one IoU threshold.

    Attributes:
        images: the number of images.
        false_positives: [F] float64, the scores of the false positives, descending.
        false_positive_image: [F] int, the image of each.
        found_at: [L] float64, the score of the detection that hits each lesion box; `MISSED` if none does.
    """

    images: int
    false_positives: NDArray[np.float64]
    false_positive_image: NDArray[np.int64]
    found_at: NDArray[np.float64]


def froc(hits: Hits, count_duplicates: bool = False) -> Froc:
    """The FROC data of a set of images.

    Args:
        hits: at one IoU threshold.
        count_duplicates: whether another detection on a lesion that is already hit is a false positive;
            if not, it is neither that nor a hit.
    """
    overlaps = hits.overlaps
    found_at = np.full(len(overlaps.lesion_image), MISSED)
    is_hit = hits.lesion >= 0
    found_at[hits.lesion[is_hit]] = overlaps.scores[is_hit]
    wrong = hits.lesion == FALSE_POSITIVE
    if count_duplicates:
        wrong |= hits.lesion == DUPLICATE
    scores = overlaps.scores[wrong]
    falling = np.argsort(-scores, kind="stable")
    return Froc(overlaps.images, scores[falling], overlaps.image[wrong][falling], found_at)


class OperatingPoints(NamedTuple):
    """Where each R@t is read from the curve; all [R, T], for R rows of weights and T values of t."""

    cutoffs: NDArray[np.float64]
    """The scores that a detection must exceed for FPI to stay at most t; -inf if all detections may pass."""
    next_cutoffs: NDArray[np.float64]
    """The same for the next point of the curve, whose FPI is above t."""
    share: NDArray[np.float64]
    """How far t is on the way to the next point, in [0, 1); 0 without interpolation."""

    def at(self, columns: Sequence[int]) -> "OperatingPoints":
        """The points of some of the values of t."""
        return OperatingPoints(*(part[:, columns] for part in self))


def cutoff_scores(
    curve: Froc, rates: Sequence[float], group: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The cutoff scores [R, T] alone, see `operating_points`."""
    return operating_points(curve, rates, group, weights).cutoffs


def operating_points(
    curve: Froc,
    rates: Sequence[float],
    group: NDArray[np.int64],
    weights: NDArray[np.float64],
    interpolate: bool = False,
) -> OperatingPoints:
    """The points of the curve at which FPI is t.

    Args:
        curve: the curve over all images.
        rates: [T] the values of t.
        group: [images] int, the group (patient) of each image.
        weights: [R, G] how often each group counts; one row per bootstrap resample.
        interpolate: whether to interpolate between the points of the curve.
    """
    fp_group = group[curve.false_positive_image]
    images = weights @ np.bincount(group, minlength=weights.shape[1])  # [R]
    # Of a million detections only the top of the list matters: enough to reach the highest rate, and some
    # more. Resamples that run past its end get a longer list.
    top = min(len(fp_group), int(1.3 * max(rates) * curve.images) + 100)
    cutoffs, next_cutoffs = (np.full((len(weights), len(rates)), -np.inf) for _ in range(2))
    share = np.zeros(cutoffs.shape)
    todo = np.arange(len(weights))
    while len(todo):
        short = []
        for rows in np.array_split(todo, -(-len(todo) * max(top, 1) // _CHUNK)):
            per_image = np.cumsum(weights[np.ix_(rows, fp_group[:top])], axis=1) / images[rows, None]
            for row, rising in zip(rows.tolist(), per_image, strict=True):
                passed = np.searchsorted(rising, rates, side="right")  # how many false positives may pass
                inside = passed < top
                cutoffs[row, inside] = curve.false_positives[passed[inside]]
                is_short = not inside.all()
                if interpolate:
                    passed_next, share[row, inside] = _next_point(
                        rising, curve.false_positives[:top], passed[inside], np.asarray(rates)[inside]
                    )
                    is_short |= bool((passed_next == top).any())
                    next_cutoffs[row, inside] = np.append(curve.false_positives[:top], -np.inf)[passed_next]
                if is_short and top < len(fp_group):
                    short.append(row)
        todo, top = np.array(short, np.int64), min(len(fp_group), 4 * top)
    return OperatingPoints(cutoffs, next_cutoffs, share)


def _next_point(
    rising: NDArray[np.float64],
    scores: NDArray[np.float64],
    passed: NDArray[np.int64],
    rates: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many false positives may pass at the next point of the curve, and how far t is on the way to it.

    Args:
        rising: [F] FPI up to and with each false positive.
        scores: [F] their scores, descending.
        passed: [T] how many false positives may pass at t, less than F.
        rates: [T] the values of t.
    """
    # Those of equal score pass together: all of a group, or none.
    first, last = (np.searchsorted(-scores, -scores[passed], side=side) for side in ("left", "right"))
    fpi = np.concatenate([[0.0], rising])
    return np.searchsorted(rising, fpi[last], side="right"), (rates - fpi[first]) / (fpi[last] - fpi[first])


def recalls(
    found_at: NDArray[np.float64],
    group: NDArray[np.int64],
    weights: NDArray[np.float64],
    cutoffs: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The weighted share of units found above the cutoff scores.

    Args:
        found_at: [U] the highest score at which each unit is found.
        group: [U] int, the group of each unit.
        weights: [R, G] as in `cutoff_scores`.
        cutoffs: [R, T] from `cutoff_scores`.

    Returns:
        [R, T] in [0, 1]; nan where no unit has weight.
    """
    falling = np.argsort(-found_at, kind="stable")
    ordered, ordered_group = -found_at[falling], group[falling]
    result = np.full(cutoffs.shape, np.nan)
    for rows in np.array_split(np.arange(len(weights)), -(-len(weights) * max(len(group), 1) // _CHUNK)):
        found = np.cumsum(weights[np.ix_(rows, ordered_group)], axis=1)
        found = np.concatenate([np.zeros((len(rows), 1)), found], axis=1)  # [r, U + 1]
        above = np.searchsorted(ordered, -cutoffs[rows], side="left")  # [r, T] units found above
        total = found[:, -1:]
        share = np.take_along_axis(found, above, axis=1)
        result[rows] = np.divide(share, total, out=np.full_like(share, np.nan), where=total > 0)
    return result


def recalls_at(
    found_at: NDArray[np.float64],
    group: NDArray[np.int64],
    weights: NDArray[np.float64],
    points: OperatingPoints,
) -> NDArray[np.float64]:
    """R@t, [R, T]: `recalls` at the cutoff scores, on the way to those of the next point."""
    here = recalls(found_at, group, weights, points.cutoffs)
    if not points.share.any():
        return here
    return here + points.share * (recalls(found_at, group, weights, points.next_cutoffs) - here)


def recall_table(
    results: Sequence[ImageResult],
    rates: Sequence[float] = RATES,
    ious: Iterable[float] = IOU_THRESHOLDS,
    count_duplicates: bool = False,
) -> dict[float, dict[float, float]]:
    """R@t of lesion boxes, ``table[iou][t]`` in [0, 1]; nan without lesions."""
    overlaps = find_overlaps(results)
    each = np.arange(len(results))
    once = np.ones((1, len(results)))
    table = {}
    for iou in ious:
        curve = froc(find_hits(overlaps, iou), count_duplicates)
        cutoffs = cutoff_scores(curve, rates, each, once)
        recall = recalls(curve.found_at, overlaps.lesion_image, once, cutoffs)[0]
        table[iou] = dict(zip(rates, recall.tolist(), strict=True))
    return table
