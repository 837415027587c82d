"""The score threshold of reports, chosen by a rate of false positives on an evaluation."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from clnet.errors import ClnetError
from clnet.evaluation.froc import cutoff_scores
from clnet.evaluation.record import read_record


class ThresholdError(ClnetError):
    """A threshold that cannot be chosen; the message says why."""


class Threshold(NamedTuple):
    """A score threshold and what it does on the evaluation that it was chosen on."""

    min_score: float
    """The least score at which false positives stay within the rate; -inf if all detections may pass."""
    rate: float
    """False positives per image from `min_score` on: at most the rate that was asked for."""
    recall: float
    """The share of lesion boxes that are hit from `min_score` on; nan without lesions."""
    iou: float
    """The IoU threshold of a hit."""


def threshold_at_rate(folder: str | Path, rate: float, iou: float | None = None) -> Threshold:
    """The threshold at a rate of false positives per image, by the protocol of the evaluation.

    Args:
        folder: of an evaluation; one on the validation section, as the choice of a threshold is training.
        rate: false positives per image.
        iou: the IoU threshold of a hit, one of the evaluation's; None for its first.
    """
    if not rate > 0:
        raise ThresholdError(f"rate is {rate}; expected a number above 0")
    record = read_record(folder)
    chosen = next(iter(record.curves)) if iou is None else iou
    if chosen not in record.curves:
        known = ", ".join(f"{each:g}" for each in record.curves)
        raise ThresholdError(f"{folder}: was not evaluated at IoU {chosen:g}, but at {known}; change --iou")
    curve = record.curves[chosen]
    everyone = np.ones((1, len(record.pair_keys)))
    cutoff = float(cutoff_scores(curve, [rate], record.image_pair, everyone)[0, 0])
    return Threshold(
        # Reports keep scores of at least the threshold, and the cutoff score itself is a false positive's.
        min_score=float(np.nextafter(cutoff, np.inf)) if np.isfinite(cutoff) else cutoff,
        rate=float((curve.false_positives > cutoff).sum() / curve.images),
        recall=float((curve.found_at > cutoff).mean()) if len(curve.found_at) else float("nan"),
        iou=chosen,
    )
