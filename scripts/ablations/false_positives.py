"""What the false positives of a run show at the operating point of R@0.25: mimics, or duplicates."""

from collections.abc import Sequence

import numpy as np

from clnet.data.pair import VIEW_NAMES, Pair
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.froc import cutoff_scores, froc, recall_table
from clnet.evaluation.hits import FALSE_POSITIVE, ImageResult, find_hits, find_overlaps
from clnet.findings.types import Findings

RATE = 0.25
IOU = 0.5
ON_MIMIC = 0.2
"""A false positive with at least this IoU with a mimic counts as showing it."""


def describe_false_positives(pairs: Sequence[Pair], findings: Findings) -> dict[str, float]:
    """Shares in [0, 1], all at IoU ≥ 0.5 and 0.25 false positives per image.

    Returns:
        recall: R@0.25, with a duplicate box on a mass that is already hit not counted as a false positive.
        recall_duplicates_counted: R@0.25 with such boxes counted as false positives.
        on_mimics: the share of false positives (duplicates left out) that show a mimic of the phantom.
    """
    results = build_cohort(pairs, findings).results
    hits = find_hits(find_overlaps(results), IOU)
    each = np.arange(len(results))
    cutoffs = cutoff_scores(froc(hits), [RATE], each, np.ones((1, len(results))))
    false = (hits.lesion == FALSE_POSITIVE) & (hits.overlaps.scores > cutoffs.item())
    mimics = [pair.attributes["mimics"][view] for pair in pairs for view in VIEW_NAMES if view in pair.views]
    overlaps = find_overlaps(
        [
            ImageResult(result.boxes, result.scores, np.reshape(boxes, (-1, 4)))
            for result, boxes in zip(results, mimics, strict=True)
        ]
    )
    on_mimic = np.zeros(len(false), bool)
    on_mimic[overlaps.detection[overlaps.iou >= ON_MIMIC]] = True
    shares = {
        "recall": recall_table(results, [RATE], [IOU])[IOU][RATE],
        "recall_duplicates_counted": recall_table(results, [RATE], [IOU], count_duplicates=True)[IOU][RATE],
        "on_mimics": float(on_mimic[false].mean()) if false.any() else 0.0,
    }
    return {name: round(share, 4) for name, share in shares.items()}
