"""How well lesions are linked across the views of a breast.

A box matches the lesion that it overlaps most, if the IoU reaches the threshold. A link between two boxes is
correct if both match the same lesion; a link to the dustbin is correct if its box matches a lesion without a
box in the other view. A lesion is linked correctly once: further correct links count neither as right nor as
wrong, as with detections. Breasts with a missing view have nothing to link and are left out.
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

NO_LESION = -1
MatchedLesions = tuple[tuple[NDArray[np.int64], ...], ...]
"""``[pair][view]`` [n] int: the lesion that each detection matches, or `NO_LESION`."""


class LinkCounts(NamedTuple):
    """Counts per breast; all [P] int."""

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]
    lesions: NDArray[np.int64]
    """Lesions to link, across the views or to the dustbin."""
    detected: NDArray[np.int64]
    """Lesions that are present and found in both views."""
    detected_right: NDArray[np.int64]
    """Of these, the correctly linked ones."""

    def where(self, pairs: NDArray[np.bool_]) -> "LinkCounts":
        """The same with zeros outside the pairs that are True, [P]."""
        return LinkCounts(*(count * pairs for count in self))


def match_to_lesions(cohort: Cohort, overlaps: Overlaps, iou: float) -> MatchedLesions:
    """The lesion that each detection matches; empty for a missing view."""
    matched = np.full(len(overlaps.scores), NO_LESION)
    enough = overlaps.iou >= iou
    # Written in ascending order of overlap, so that the largest remains; of equal ones the first.
    order = np.lexsort((-overlaps.lesion[enough], overlaps.iou[enough]))
    matched[overlaps.detection[enough][order]] = cohort.box_lesion[overlaps.lesion[enough][order]]
    views = [[np.zeros(0, np.int64)] * len(VIEW_NAMES) for _ in cohort.pairs]
    parts = cohort.split_by_image(matched)
    for pair, view, part in zip(cohort.image_pair, cohort.image_view, parts, strict=True):
        views[pair][view] = part
    return tuple(map(tuple, views))


def linked_lesion(
    link: Link, matched: tuple[NDArray[np.int64], ...], in_both_views: NDArray[np.bool_]
) -> int | None:
    """The lesion that a link links correctly; None if the link is wrong.

    Args:
        link: a link of one breast.
        matched: the entry of this pair in `match_to_lesions`.
        in_both_views: [U] whether a lesion has a box in both views.
    """
    lesions = {
        int(matched[view][index]) for view, index in enumerate((link.cc, link.mlo)) if index is not None
    }
    lesion = lesions.pop()
    to_dustbin = link.cc is None or link.mlo is None
    is_wrong = lesions or lesion == NO_LESION or to_dustbin == bool(in_both_views[lesion])
    return None if is_wrong else lesion


def correctly_linked(
    links: Iterable[Link], matched: tuple[NDArray[np.int64], ...], in_both_views: NDArray[np.bool_]
) -> tuple[set[int], int]:
    """The correctly linked lesions of one breast, and the number of wrong links.

    Args:
        links: the links that count.
        matched: see `linked_lesion`.
        in_both_views: see `linked_lesion`.
    """
    lesions = [linked_lesion(link, matched, in_both_views) for link in links]
    return {lesion for lesion in lesions if lesion is not None}, lesions.count(None)


class CountedLinks(NamedTuple):
    """Counts of all links, and of those that say "only in this view"."""

    all: LinkCounts
    to_dustbin: LinkCounts
    """Of links to the dustbin and lesions of one view; a lesion is detected if it is found there."""


def count_links(
    cohort: Cohort, overlaps: Overlaps, iou: float, min_score: float, found: NDArray[np.bool_]
) -> CountedLinks:
    """Count right and wrong links in each breast.

    Args:
        cohort: the pairs and their findings.
        overlaps: the overlaps in its images.
        iou: the threshold.
        min_score: the minimum score of links that count.
        found: [L] whether each lesion box is found at the operating point.
    """
    in_both_views = cohort.in_both_views
    views_found = np.bincount(cohort.box_lesion, found, len(in_both_views))
    matched = match_to_lesions(cohort, overlaps, iou)
    lesions_of = cohort.lesions_of_pairs()
    counts = np.zeros((2, len(cohort.pairs), len(LinkCounts._fields)), np.int64)
    for number, pair in enumerate(cohort.pairs):
        if len(pair.views) < len(VIEW_NAMES):
            continue
        every = [link for link in cohort.findings[number].links if link.score >= min_score]
        alone = [link for link in every if link.cc is None or link.mlo is None]
        of_one_view = [lesion for lesion in lesions_of[number] if not in_both_views[lesion]]
        in_both = [lesion for lesion in lesions_of[number] if in_both_views[lesion]]
        for kind, links, lesions, to_find, times in (
            (0, every, lesions_of[number], in_both, 2),
            (1, alone, of_one_view, of_one_view, 1),
        ):
            right, wrong = correctly_linked(links, matched[number], in_both_views)
            detected = {lesion for lesion in to_find if views_found[lesion] == times}
            counts[kind, number] = len(right), wrong, len(lesions), len(detected), len(detected & right)
    return CountedLinks(*(LinkCounts(*of_kind.T) for of_kind in counts))


def link_statistics(
    counts: LinkCounts, pair_patient: NDArray[np.int64], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Precision, recall, F1, and accuracy over lesions detected in both views, each [R].

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
