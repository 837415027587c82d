"""The statistics of a run in the sample itself and in each resample of patients.

Statistics computed under the same weights can be subtracted and averaged row by row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clnet.evaluation.bootstrap import interval, p_value
from clnet.evaluation.froc import MEAN_RATES, RATES, operating_points, recalls_at
from clnet.evaluation.links import link_statistics
from clnet.evaluation.record import EvaluationRecord


class Statistics(NamedTuple):
    """Statistics of one run at one IoU; each array is [1 + resamples], see `clnet.evaluation.bootstrap`."""

    recall: dict[str, NDArray[np.float64]]
    """R@t by t, such as "0.25"."""
    mean_recall: NDArray[np.float64]
    links: dict[str, NDArray[np.float64]]
    """Precision, recall, f1 and accuracy; empty if the findings have no links."""
    links_of_several: dict[str, NDArray[np.float64]]
    """The same in breasts with several lesions."""


def statistics(
    record: EvaluationRecord, weights: NDArray[np.float64], interpolate: bool = False
) -> dict[float, Statistics]:
    """The statistics of a run by IoU threshold.

    Args:
        record: the record of the run.
        weights: [1 + resamples, patients] from `draw_patients`.
        interpolate: whether R@t is interpolated between the points of the curve.
    """
    several = record.lesions_of_pair() > 1
    found = {}
    for iou, curve in record.curves.items():
        points = operating_points(curve, RATES, record.image_patient, weights, interpolate)
        recall = dict(zip(RATES, recalls_at(*record.units("image", iou), weights, points).T, strict=True))
        links, links_of_several = {}, {}
        if iou in record.links:
            counts = record.links[iou]
            links = link_statistics(counts, record.pair_patient, weights)
            links_of_several = link_statistics(counts.where(several), record.pair_patient, weights)
        found[iou] = Statistics(
            {f"{rate:g}": values for rate, values in recall.items()},
            np.mean([recall[rate] for rate in MEAN_RATES], axis=0),
            links,
            links_of_several,
        )
    return found


def difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> dict[str, float | None]:
    """Value, low, high and p of a paired difference; both [1 + resamples]."""
    return {**interval(ours - theirs), "p": p_value(ours - theirs)}
