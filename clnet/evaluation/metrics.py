"""An evaluation: every number in ``metrics.json``."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import Pair
from clnet.evaluation.bootstrap import LEVEL, draw_patients, finite_or_none, interval
from clnet.evaluation.cohort import Cohort, build_cohort
from clnet.evaluation.error_types import ERROR_TYPES, Error, find_errors
from clnet.evaluation.froc import (
    MEAN_RATES,
    RATES,
    OperatingPoints,
    cutoff_scores,
    froc,
    operating_points,
    recalls_at,
)
from clnet.evaluation.hits import find_hits, find_overlaps, least_overlap
from clnet.evaluation.links import CountedLinks, count_links, link_statistics
from clnet.evaluation.protocols import EvaluationSettings, protocol_words
from clnet.evaluation.record import UNITS, EvaluationRecord, iou_key, make_record
from clnet.evaluation.subgroups import groups_of_boxes, groups_of_pairs
from clnet.findings.types import Findings

SCHEMA_VERSION = 1
CURVE_RATES = tuple((2.0 ** (np.arange(49) / 8 - 4)).tolist())
"""FPI from 1/16 to 4 in eight steps per doubling; `RATES` are among them."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The numbers, every error, and the record that comparisons are computed from."""

    metrics: dict[str, Any]
    errors: list[Error]
    record: EvaluationRecord


def evaluate(
    pairs: Sequence[Pair], findings: Findings, settings: EvaluationSettings | None = None
) -> Evaluation:
    """Evaluate findings on the pairs that they are about."""
    settings = settings or EvaluationSettings()
    cohort = build_cohort(pairs, findings)
    overlaps = find_overlaps(cohort.results)
    hits = {iou: find_hits(overlaps, iou, settings.matching) for iou in settings.ious}
    least = {iou: least_overlap(iou, settings.matching) for iou in settings.ious}
    curves = {iou: froc(hits[iou], settings.count_duplicates) for iou in settings.ious}
    everyone = np.ones((1, len(cohort.pairs)))
    operating = {
        iou: float(cutoff_scores(curve, [settings.operating_rate], cohort.image_pair, everyone)[0, 0])
        for iou, curve in curves.items()
    }
    links: dict[float, CountedLinks] = {}
    if any(pair.links for pair in cohort.findings):
        links = {
            iou: count_links(
                cohort, overlaps, least[iou], settings.link_score, curves[iou].found_at > operating[iou]
            )
            for iou in settings.ious
        }
    record = make_record(cohort, curves, {iou: counted.all for iou, counted in links.items()})
    weights = draw_patients(record.patients, settings.resamples, settings.seed)
    points = {
        iou: operating_points(curves[iou], CURVE_RATES, record.image_patient, weights, settings.interpolate)
        for iou in settings.ious
    }
    first = settings.ious[0]
    errors = find_errors(cohort, hits[first], least[first], operating[first], settings.link_score)
    metrics = {
        "schema": SCHEMA_VERSION,
        "model": findings.model,
        "protocol": protocol_words(asdict(settings)),
        "settings": {**asdict(settings), "interval_level": LEVEL},
        "counts": _counts(cohort),
        "detection": {iou_key(iou): _detection(record, iou, points[iou], weights) for iou in settings.ious},
        "links": {iou_key(iou): _links(record, counted, weights) for iou, counted in links.items()} or None,
        "errors": {
            "iou": first,
            "score_above": finite_or_none(operating[first]),
            "counts": _count_types(errors),
            "subgroups": _error_subgroups(cohort, errors),
        },
        "subgroups": {
            iou_key(iou): _subgroups(cohort, record, iou, points[iou], weights) for iou in settings.ious
        },
    }
    return Evaluation(metrics, errors, record)


def _detection(
    record: EvaluationRecord, iou: float, points: OperatingPoints, weights: NDArray[np.float64]
) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for unit in UNITS:
        statistic = recalls_at(*record.units(unit, iou), weights, points)  # [1 + resamples, curve]
        at = {rate: statistic[:, CURVE_RATES.index(rate)] for rate in RATES}
        table = {f"{rate:g}": interval(values) for rate, values in at.items()}
        if unit == "image":
            content["recall"] = table
            content["mean_recall"] = interval(np.mean([at[rate] for rate in MEAN_RATES], axis=0))
            content["score_above"] = {
                f"{rate:g}": finite_or_none(points.cutoffs[0, CURVE_RATES.index(rate)]) for rate in RATES
            }
            intervals = [interval(column) for column in statistic.T]
            content["curve"] = {
                "fpi": list(CURVE_RATES),
                **{name: [each[name] for each in intervals] for name in ("value", "low", "high")},
            }
        else:
            content[f"recall_per_{unit}"] = table
    return content


def _links(record: EvaluationRecord, counted: CountedLinks, weights: NDArray[np.float64]) -> dict[str, Any]:
    rows = {
        "all": counted.all,
        "several_lesions": counted.all.where(record.lesions_of_pair() > 1),
        "single_pair": counted.all.where(record.has_single_pair()),
        "only_in_one_view": counted.to_dustbin,
    }
    return {
        name: {
            **{
                measure: interval(values)
                for measure, values in link_statistics(row, record.pair_patient, weights).items()
            },
            "counts": {field: int(count.sum()) for field, count in zip(row._fields, row, strict=True)},
        }
        for name, row in rows.items()
    }


def _subgroups(
    cohort: Cohort,
    record: EvaluationRecord,
    iou: float,
    points: OperatingPoints,
    weights: NDArray[np.float64],
) -> dict[str, Any]:
    """Recall of the lesion boxes of each subgroup at the thresholds of the whole set."""
    points = points.at([CURVE_RATES.index(rate) for rate in RATES])
    found_at, patient = record.units("image", iou)
    content: dict[str, Any] = {}
    for name, labels in groups_of_boxes(cohort).items():
        content[name] = {}
        for label in sorted({label for label in labels if label is not None}):
            those = np.array([other == label for other in labels])
            statistic = recalls_at(found_at[those], patient[those], weights, points)
            content[name][label] = {
                "boxes": int(those.sum()),
                "recall": {
                    f"{rate:g}": interval(column) for rate, column in zip(RATES, statistic.T, strict=True)
                },
            }
    return content


def _error_subgroups(cohort: Cohort, errors: list[Error]) -> dict[str, Any]:
    """How often each error type occurs among the pairs of each subgroup."""
    place = {pair.pair_id: number for number, pair in enumerate(cohort.pairs)}
    return {
        name: {
            label: {
                "pairs": labels.count(label),
                "counts": _count_types([error for error in errors if labels[place[error.pair_id]] == label]),
            }
            for label in sorted({label for label in labels if label is not None})
        }
        for name, labels in groups_of_pairs(cohort).items()
    }


def _count_types(errors: Sequence[Error]) -> dict[str, int]:
    counted = Counter(error.type for error in errors)
    return {name: counted[name] for name in ERROR_TYPES}


def _counts(cohort: Cohort) -> dict[str, int]:
    return {
        "patients": int(cohort.pair_patient.max()) + 1,
        "pairs": len(cohort.pairs),
        "images": len(cohort.results),
        "negative_images": sum(len(result.lesions) == 0 for result in cohort.results),
        "skipped_views": cohort.skipped_views,
        "lesions": len(cohort.lesion_pair),
        "lesions_in_both_views": int(cohort.in_both_views.sum()),
        "lesion_boxes": len(cohort.box_lesion),
        "detections": sum(len(result.scores) for result in cohort.results),
        "links": sum(len(pair.links) for pair in cohort.findings),
    }
