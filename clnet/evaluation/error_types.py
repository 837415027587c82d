"""The type of each error at one operating point.

The first two types are those of the paper's error analysis. A detection above the operating point that hits
nothing has exactly one type, the first of `duplicate`, `poor_localisation`,
`false_positive_linked_to_lesion`, `false_pair` and `lone_false_positive` that fits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES
from clnet.evaluation.cohort import Cohort
from clnet.evaluation.hits import DUPLICATE, Hits
from clnet.evaluation.links import NO_LESION, MatchedLesions, correctly_linked, match_to_lesions
from clnet.findings.types import Link

ERROR_TYPES = {
    "false_positive_linked_to_lesion": "a false positive, linked to a box on a lesion in the other view",
    "found_in_one_view": "a lesion in both views, found in one and missed in the other",
    "missed_in_both_views": "a lesion in both views, missed in both",
    "missed_in_its_only_view": "a lesion in one view, missed there",
    "false_pair": "a false positive, linked to a box on no lesion in the other view",
    "lone_false_positive": "a false positive without a link to the other view",
    "duplicate": "a further detection on a lesion that is already hit",
    "poor_localisation": "a detection that overlaps a lesion, but not enough",
    "crossed_link": "a link between boxes on two different lesions",
    "missing_link": "a lesion found in both views, but not linked across them",
}
POOR_OVERLAP = 0.1
"""The minimum IoU with a lesion for a false positive to count as poorly localised."""


@dataclass(frozen=True)
class Error:
    """One error.

    Attributes:
        type: a key of `ERROR_TYPES`.
        pair_id: the pair.
        view: "cc" or "mlo" if the error is in one view.
        cc, mlo: the indices of the detections involved, in the findings.
        lesion_id: the lesion that was missed or not linked.
        score: the score of the wrong detection or link.
    """

    type: str
    pair_id: str
    view: str | None = None
    cc: int | None = None
    mlo: int | None = None
    lesion_id: str | None = None
    score: float | None = None


def find_errors(
    cohort: Cohort, hits: Hits, iou: float, cutoff_score: float, link_score: float
) -> list[Error]:
    """All errors of a cohort, pair by pair.

    Args:
        cohort: the pairs and their findings.
        hits: at that IoU threshold.
        iou: the threshold.
        cutoff_score: only detections above it count.
        link_score: only links of at least this score count.
    """
    matched = match_to_lesions(cohort, hits.overlaps, iou)
    links = [[link for link in pair.links if link.score >= link_score] for pair in cohort.findings]
    errors = [
        *_lesion_errors(cohort, hits, cutoff_score, links, matched),
        *_detection_errors(cohort, hits, cutoff_score, links, matched),
        *_crossed_links(cohort, links, matched),
    ]
    place = {pair.pair_id: number for number, pair in enumerate(cohort.pairs)}
    kinds = list(ERROR_TYPES)
    return sorted(errors, key=lambda error: (place[error.pair_id], kinds.index(error.type)))


def _lesion_errors(
    cohort: Cohort, hits: Hits, cutoff_score: float, links: list[list[Link]], matched: MatchedLesions
) -> Iterator[Error]:
    first = _first_detections(cohort)
    index_of_hit: list[int | None] = [None] * len(cohort.box_lesion)
    for detection in np.flatnonzero((hits.lesion >= 0) & (hits.overlaps.scores > cutoff_score)).tolist():
        index_of_hit[hits.lesion[detection]] = detection - int(first[hits.overlaps.image[detection]])
    in_both_views = cohort.in_both_views
    right = [correctly_linked(*of_pair, in_both_views)[0] for of_pair in zip(links, matched, strict=True)]
    names_links = any(pair.links for pair in cohort.findings)
    for lesion, boxes in enumerate(cohort.box_of_lesion().tolist()):
        pair = int(cohort.lesion_pair[lesion])
        pair_id, lesion_id = cohort.pairs[pair].pair_id, cohort.lesion_ids[lesion]
        cc, mlo = (index_of_hit[box] if box >= 0 else None for box in boxes)
        if min(boxes) < 0:
            if cc is None and mlo is None:
                yield Error("missed_in_its_only_view", pair_id, VIEW_NAMES[boxes[0] < 0], lesion_id=lesion_id)
        elif cc is None and mlo is None:
            yield Error("missed_in_both_views", pair_id, lesion_id=lesion_id)
        elif cc is None or mlo is None:
            yield Error("found_in_one_view", pair_id, VIEW_NAMES[cc is not None], cc, mlo, lesion_id)
        elif names_links and lesion not in right[pair]:
            yield Error("missing_link", pair_id, None, cc, mlo, lesion_id)


def _detection_errors(
    cohort: Cohort, hits: Hits, cutoff_score: float, links: list[list[Link]], matched: MatchedLesions
) -> Iterator[Error]:
    overlaps = hits.overlaps
    first = _first_detections(cohort)
    best_iou = np.zeros(len(overlaps.scores))
    np.maximum.at(best_iou, overlaps.detection, overlaps.iou)
    for detection in np.flatnonzero((hits.lesion < 0) & (overlaps.scores > cutoff_score)).tolist():
        image = int(overlaps.image[detection])
        pair, view = int(cohort.image_pair[image]), int(cohort.image_view[image])
        index = detection - int(first[image])
        partner = None
        if hits.lesion[detection] == DUPLICATE:
            kind = "duplicate"
        elif best_iou[detection] >= POOR_OVERLAP:
            kind = "poor_localisation"
        else:
            partner = _partner(links[pair], view, index)
            if partner is None:
                kind = "lone_false_positive"
            elif matched[pair][1 - view][partner] == NO_LESION:
                kind = "false_pair"
            else:
                kind = "false_positive_linked_to_lesion"
        cc, mlo = (index, partner) if view == 0 else (partner, index)
        pair_id, score = cohort.pairs[pair].pair_id, float(overlaps.scores[detection])
        yield Error(kind, pair_id, VIEW_NAMES[view], cc, mlo, score=score)


def _crossed_links(cohort: Cohort, links: list[list[Link]], matched: MatchedLesions) -> Iterator[Error]:
    for pair, links_, (matched_cc, matched_mlo) in zip(cohort.pairs, links, matched, strict=True):
        for link in links_:
            if link.cc is None or link.mlo is None:
                continue
            on = matched_cc[link.cc], matched_mlo[link.mlo]
            if NO_LESION not in on and on[0] != on[1]:
                yield Error("crossed_link", pair.pair_id, cc=link.cc, mlo=link.mlo, score=link.score)


def _partner(links: list[Link], view: int, index: int) -> int | None:
    """The index of the box in the other view that the highest-scoring link joins to a box, if any."""
    joined = [
        (link.score, ends[1 - view])
        for link in links
        if (ends := (link.cc, link.mlo))[view] == index and ends[1 - view] is not None
    ]
    return max(joined)[1] if joined else None


def _first_detections(cohort: Cohort) -> NDArray[np.int64]:
    """[I] the index of each image's first detection among all detections."""
    counts = np.array([len(result.scores) for result in cohort.results], np.int64)
    return np.cumsum(counts) - counts
