"""The pairs in the viewer of a report: which ones, and the data of each.

Nothing here names a patient: pairs are numbered by their place in the section, lesions within their breast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.error_types import Error
from clnet.evaluation.hits import (
    DUPLICATE,
    FALSE_POSITIVE,
    ImageResult,
    Matching,
    find_hits,
    find_overlaps,
    least_overlap,
)
from clnet.evaluation.links import linked_lesion, match_to_lesions
from clnet.findings.types import Findings

MISSED = ("found_in_one_view", "missed_in_both_views", "missed_in_its_only_view")
"""The worst types of error."""


def worst_first(pairs: Sequence[Pair], errors: Sequence[Error], most: int) -> list[int]:
    """The indices of the pairs to show: those with most missed lesions first, then with most other errors.

    Ties are broken by the highest score of an error, then by the number of lesions.

    Args:
        pairs: the section.
        errors: all errors in it.
        most: the maximum number of pairs.
    """
    missed = dict.fromkeys((pair.pair_id for pair in pairs), 0)
    other, surest = dict(missed), dict.fromkeys(missed, -np.inf)
    for error in errors:
        counts = missed if error.type in MISSED else other
        counts[error.pair_id] += 1
        if error.score is not None:
            surest[error.pair_id] = max(surest[error.pair_id], error.score)

    def badness(number: int) -> tuple[float, ...]:
        pair = pairs[number]
        lesions = sum(len(view.lesion_ids) for view in pair.views.values())
        return -missed[pair.pair_id], -other[pair.pair_id], -surest[pair.pair_id], -lesions, number

    return sorted(range(len(pairs)), key=badness)[:most]


def shown_pairs(
    pairs: Sequence[Pair],
    numbers: Sequence[int],
    findings: Findings,
    errors: Sequence[Error],
    iou: float,
    matching: Matching,
) -> Iterator[dict[str, Any]]:
    """What the viewer draws, pair by pair, without the pictures.

    Args:
        pairs: the section.
        numbers: the indices of the pairs to show.
        findings: the findings about the section.
        errors: all errors in it.
        iou: the IoU threshold of a hit.
        matching: which detection hits which lesion.

    Yields:
        ``number`` (from 1), ``laterality``, ``errors``; ``views`` by name, each None or with ``rows``,
        ``columns``, ``lesions``, ``boxes``, ``scores``, ``outcomes``; ``links``, each with ``right``: True,
        False, or None in a breast with one view, where there is nothing to link.
    """
    cohort = build_cohort([pairs[number] for number in numbers], findings)
    hits = find_hits(find_overlaps(cohort.results), iou, matching)
    matched = match_to_lesions(cohort, hits.overlaps, least_overlap(iou, matching))
    in_both_views = cohort.in_both_views
    lesions_of = cohort.lesions_of_pairs()
    outcomes = cohort.split_by_image(hits.lesion)
    seen: list[dict[str, tuple[ImageResult, NDArray[np.int64]]]] = [{} for _ in numbers]
    images = zip(cohort.image_pair, cohort.image_view, cohort.results, outcomes, strict=True)
    for place, view, result, outcome in images:
        seen[place][VIEW_NAMES[view]] = result, outcome
    errors_of: dict[str, list[Error]] = {}
    for error in errors:
        errors_of.setdefault(error.pair_id, []).append(error)

    for place, (pair, found) in enumerate(zip(cohort.pairs, cohort.findings, strict=True)):
        number_of = {cohort.lesion_ids[lesion]: n for n, lesion in enumerate(lesions_of[place], start=1)}
        has_both_views = len(pair.views) == len(VIEW_NAMES)
        yield {
            "number": numbers[place] + 1,
            "laterality": pair.laterality,
            "views": {
                name: _view(pair.views[name], *seen[place][name], number_of) if name in pair.views else None
                for name in VIEW_NAMES
            },
            "links": [
                {
                    "cc": link.cc,
                    "mlo": link.mlo,
                    "score": link.score,
                    "attention": link.attention and link.attention._asdict(),
                    "right": linked_lesion(link, matched[place], in_both_views) is not None
                    if has_both_views
                    else None,
                }
                for link in found.links
            ],
            "errors": [_error(error, number_of) for error in errors_of.get(pair.pair_id, ())],
        }


def _view(
    view: View, result: ImageResult, outcomes: NDArray[np.int64], number_of: dict[str, int]
) -> dict[str, Any]:
    size = view.size
    if size is None:  # until the picture is read: as far as the boxes reach
        corners = np.concatenate([np.ones((1, 4)), result.boxes, result.lesions]).max(0)
        size = int(np.ceil(corners[3])), int(np.ceil(corners[2]))
    return {
        "rows": size[0],
        "columns": size[1],
        "lesions": [
            {"number": number_of[lesion_id], "box": box}
            for lesion_id, box in zip(view.lesion_ids, _rounded(view.boxes), strict=True)
        ],
        "boxes": _rounded(result.boxes),
        "scores": result.scores.tolist(),
        "outcomes": [
            {FALSE_POSITIVE: "false_positive", DUPLICATE: "duplicate"}.get(outcome, "hit")
            for outcome in outcomes.tolist()
        ],
    }


def _error(error: Error, number_of: dict[str, int]) -> dict[str, Any]:
    content = asdict(error)
    del content["pair_id"]
    lesion_id = content.pop("lesion_id")
    return {**content, "lesion": None if lesion_id is None else number_of[lesion_id]}


def _rounded(boxes: NDArray[np.floating]) -> list[list[float]]:
    return np.round(boxes.astype(np.float64), 1).tolist()
