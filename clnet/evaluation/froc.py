"""R@t: the recall at t false positives per image (FPI), and the FROC curve that it is read from.

A score threshold gives one point: the share of lesions that are hit by a detection that reaches it, and the
false positives that reach it for each image, negative images included. R@t is the best recall among the
thresholds whose FPI is at most t; there is no interpolation, and detections of equal score pass together.

Since recall falls as the threshold rises, one threshold matters for each t: just above the highest score at
which FPI would pass t, *the barred score*, which some false positive has. R@t is the share of units that are
found strictly above it. This holds under any weights of the images, so that a bootstrap is a matter of sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clnet.evaluation.hits import DUPLICATE, FALSE_POSITIVE, Hits, ImageResult, find_hits, find_overlaps

RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""The t of R@t that are reported."""
MEAN_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Those of the paper's tables; the mean recall is over them."""
IOU_THRESHOLDS = (0.2, 0.5)
"""0.2 is the rule of the literature that the paper compares with; 0.5 asks for a better box."""
MISSED = -np.inf

_CHUNK = 4_000_000  # numbers held at a time under many weights


@dataclass(frozen=True, eq=False)
class Froc:
    """What the FROC curve at one IoU threshold is made of.

    Attributes:
        images: how many.
        false_positives: [F] float64, their scores, falling.
        false_positive_image: [F] int, the image of each.
        found_at: [L] float64, the score of the detection that hits each lesion box; `MISSED` if none does.
    """

    images: int
    false_positives: NDArray[np.float64]
    false_positive_image: NDArray[np.int64]
    found_at: NDArray[np.float64]


def froc(hits: Hits, count_duplicates: bool = False) -> Froc:
    """Gather what the curve needs.

    Args:
        hits: at one IoU threshold.
        count_duplicates: whether a further detection on a lesion that is already hit is a false positive;
            otherwise it is neither that nor a hit.
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


def cutoff_scores(
    curve: Froc, rates: Sequence[float], group: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scores that a detection must exceed so that FPI stays at most t.

    Args:
        curve: of all images.
        rates: [T] the t.
        group: [images] int, the group (patient) of each image.
        weights: [R, G] how often each group counts; a row is one resample of a bootstrap.

    Returns:
        [R, T] float64; -inf where all detections together stay at or below t.
    """
    fp_group = group[curve.false_positive_image]
    images = weights @ np.bincount(group, minlength=weights.shape[1])  # [R]
    # Of a million detections only the top of the list matters: as many as reach the highest rate, and some
    # more. For resamples that run off that list it is taken longer.
    top = min(len(fp_group), int(1.3 * max(rates) * curve.images) + 100)
    barred = np.full((len(weights), len(rates)), -np.inf)
    todo = np.arange(len(weights))
    while len(todo):
        short = []
        for rows in np.array_split(todo, -(-len(todo) * max(top, 1) // _CHUNK)):
            per_image = np.cumsum(weights[np.ix_(rows, fp_group[:top])], axis=1) / images[rows, None]
            for row, rising in zip(rows.tolist(), per_image, strict=True):
                passed = np.searchsorted(rising, rates, side="right")  # how many false positives may pass
                inside = passed < top
                barred[row, inside] = curve.false_positives[passed[inside]]
                if not inside.all() and top < len(fp_group):
                    short.append(row)
        todo, top = np.array(short, np.int64), min(len(fp_group), 4 * top)
    return barred


def recalls(
    found_at: NDArray[np.float64],
    group: NDArray[np.int64],
    weights: NDArray[np.float64],
    barred: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The weighted share of units that are found above the barred scores.

    Args:
        found_at: [U] the highest score at which each unit is found.
        group: [U] int, its group.
        weights: [R, G] as in `cutoff_scores`.
        barred: [R, T] of `cutoff_scores`.

    Returns:
        [R, T] in [0, 1]; nan where no unit has weight.
    """
    falling = np.argsort(-found_at, kind="stable")
    ordered, ordered_group = -found_at[falling], group[falling]
    result = np.full(barred.shape, np.nan)
    for rows in np.array_split(np.arange(len(weights)), -(-len(weights) * max(len(group), 1) // _CHUNK)):
        found = np.cumsum(weights[np.ix_(rows, ordered_group)], axis=1)
        found = np.concatenate([np.zeros((len(rows), 1)), found], axis=1)  # [r, U + 1]
        above = np.searchsorted(ordered, -barred[rows], side="left")  # [r, T] units found above
        total = found[:, -1:]
        share = np.take_along_axis(found, above, axis=1)
        result[rows] = np.divide(share, total, out=np.full_like(share, np.nan), where=total > 0)
    return result


def recall_table(
    results: Sequence[ImageResult],
    rates: Sequence[float] = RATES,
    ious: Iterable[float] = IOU_THRESHOLDS,
    count_duplicates: bool = False,
) -> dict[float, dict[float, float]]:
    """R@t of lesion boxes over single images, ``table[iou][t]`` in [0, 1]; nan without lesions."""
    overlaps = find_overlaps(results)
    each = np.arange(len(results))
    once = np.ones((1, len(results)))
    table = {}
    for iou in ious:
        curve = froc(find_hits(overlaps, iou), count_duplicates)
        barred = cutoff_scores(curve, rates, each, once)
        recall = recalls(curve.found_at, overlaps.lesion_image, once, barred)[0]
        table[iou] = dict(zip(rates, recall.tolist(), strict=True))
    return table
