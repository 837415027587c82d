"""How well lesions are linked across the views of a breast.

A box *lies on* the lesion that it overlaps most, if that is enough. A link of two boxes is right if both
lie on one lesion; a link to the dustbin is right if its box lies on a lesion that has no box in the other
view. A lesion is linked rightly once: further right links are neither right nor wrong, as with detections.
Breasts of which one view is missing pose no question of linking and are left out.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES
from clnet.evaluation.bootstrap import ratio
from clnet.evaluation.cohort import Cohort
from clnet.evaluation.hits import Overlaps
from clnet.findings.types import Link

NOWHERE = -1
Under = tuple[tuple[NDArray[np.int64], ...], ...]
"""``[pair][view]`` [n] int: the lesion that each detection lies on, or `NOWHERE`."""


class LinkCounts(NamedTuple):
    """What the links of each breast come to; all [P] int."""

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]
    lesions: NDArray[np.int64]
    """To be linked, to each other or to the dustbin."""
    detected: NDArray[np.int64]
    """Lesions that are in both views and found in both."""
    detected_right: NDArray[np.int64]
    """Of these, the rightly linked."""


def match_to_lesions(cohort: Cohort, overlaps: Overlaps, iou: float) -> Under:
    """The lesion that each detection lies on; nothing for a view that is missing."""
    under = np.full(len(overlaps.scores), NOWHERE)
    enough = overlaps.iou >= iou
    # Written from the smallest overlap to the largest, so that the largest stays; of equal ones the first.
    order = np.lexsort((-overlaps.lesion[enough], overlaps.iou[enough]))
    under[overlaps.detection[enough][order]] = cohort.box_lesion[overlaps.lesion[enough][order]]
    views = [[np.zeros(0, np.int64)] * len(VIEW_NAMES) for _ in cohort.pairs]
    ends = np.cumsum([len(result.scores) for result in cohort.results])
    for pair, view, part in zip(
        cohort.image_pair, cohort.image_view, np.split(under, ends[:-1]), strict=True
    ):
        views[pair][view] = part
    return tuple(map(tuple, views))


def linked_lesion(
    link: Link, under: tuple[NDArray[np.int64], ...], in_both_views: NDArray[np.bool_]
) -> int | None:
    """The lesion that a link joins rightly; None if the link is wrong.

    Args:
        link: of one breast.
        under: of this pair, of `match_to_lesions`.
        in_both_views: [U] whether a lesion has a box in both views.
    """
    lesions = {int(under[view][index]) for view, index in enumerate((link.cc, link.mlo)) if index is not None}
    lesion = lesions.pop()
    to_dustbin = link.cc is None or link.mlo is None
    is_wrong = lesions or lesion == NOWHERE or to_dustbin == bool(in_both_views[lesion])
    return None if is_wrong else lesion


def rightly_linked(
    links: Iterable[Link], under: tuple[NDArray[np.int64], ...], in_both_views: NDArray[np.bool_]
) -> tuple[set[int], int]:
    """The lesions of one breast that are rightly linked, and how many links are wrong.

    Args:
        links: those that count.
        under: see `linked_lesion`.
        in_both_views: see `linked_lesion`.
    """
    lesions = [linked_lesion(link, under, in_both_views) for link in links]
    return {lesion for lesion in lesions if lesion is not None}, lesions.count(None)


def count_links(
    cohort: Cohort, overlaps: Overlaps, iou: float, least_score: float, found: NDArray[np.bool_]
) -> LinkCounts:
    """Count right and wrong links in each breast.

    Args:
        cohort: the pairs and their findings.
        overlaps: of its images.
        iou: that is enough.
        least_score: of the links that count.
        found: [L] whether each lesion box is found at the operating point.
    """
    in_both_views = cohort.in_both_views
    found_in_both = in_both_views & (np.bincount(cohort.box_lesion, found, len(in_both_views)) == 2)
    under = match_to_lesions(cohort, overlaps, iou)
    lesions_of = cohort.lesions_of_pairs()
    counts = np.zeros((len(cohort.pairs), len(LinkCounts._fields)), np.int64)
    for number, pair in enumerate(cohort.pairs):
        if len(pair.views) < len(VIEW_NAMES):
            continue
        kept = [link for link in cohort.findings[number].links if link.score >= least_score]
        right, wrong = rightly_linked(kept, under[number], in_both_views)
        detected = {lesion for lesion in lesions_of[number] if found_in_both[lesion]}
        counts[number] = len(right), wrong, len(lesions_of[number]), len(detected), len(detected & right)
    return LinkCounts(*counts.T)


def link_statistics(
    counts: LinkCounts, pair_patient: NDArray[np.int64], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Precision, recall, f1 and accuracy given that both boxes are detected, each [R].

    Args:
        counts: [P] each.
        pair_patient: [P] int, the patient of each pair.
        weights: [R, patients].
    """
    patients = weights.shape[1]
    right, wrong, lesions, detected, detected_right = (
        weights @ np.bincount(pair_patient, count, patients) for count in counts
    )
    return {
        "precision": ratio(right, right + wrong),
        "recall": ratio(right, lesions),
        "f1": ratio(2 * right, right + wrong + lesions),
        "accuracy": ratio(detected_right, detected),
    }
