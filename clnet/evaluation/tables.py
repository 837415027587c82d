"""Evaluations and comparisons as text for a terminal."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from clnet.evaluation.error_types import ERROR_TYPES
from clnet.evaluation.protocols import find_protocol, protocol_words
from clnet.evaluation.record import UNITS, iou_key, iou_words
from clnet.evaluation.threshold import Threshold

UNIT_NAMES = {
    "image": "lesion box, each view",
    "lesion": "lesion, any view",
    "breast": "breast",
    "case": "case",
}


def metrics_tables(metrics: Mapping[str, Any]) -> str:
    """The headline tables of ``metrics.json``; recalls in %, with the 95% interval."""
    counts, settings = metrics["counts"], metrics["settings"]
    by, protocol = protocol_words(settings), find_protocol(settings["protocol"])
    rates = [f"{rate:g}" for rate in protocol.shown_rates]
    overlaps = {key: iou_words(key, settings["matching"]) for key in metrics["detection"]}
    parts = [
        f"{metrics['model']}: {counts['pairs']} pairs of {counts['patients']} patients, {counts['images']} "
        f"images ({counts['negative_images']} negative), {counts['lesions']} lesions with "
        f"{counts['lesion_boxes']} boxes, {counts['detections']} detections, {counts['links']} links",
        f"Counted by {by}. The rules of {settings['protocol']}: {protocol.description}.",
    ]
    if counts["skipped_views"]:
        parts.append(
            f"warning: the findings do not cover {counts['skipped_views']} of {counts['images']} images; "
            "they count as images without detections"
        )
    for key, detection in metrics["detection"].items():
        rows = [
            [UNIT_NAMES[unit], *(percent(table[rate]) for rate in rates)]
            for unit in UNITS
            for table in [detection["recall" if unit == "image" else f"recall_per_{unit}"]]
        ]
        title = f"Recall, {overlaps[key]}, {by}"
        parts.append(table_text([title, *(f"R@{rate}" for rate in rates)], rows))
    parts.append(
        _links_text(metrics["links"], f"Links of score ≥ {settings['link_score']:g}, {by}", overlaps)
    )
    errors = metrics["errors"]
    rows = [[name, str(count), ERROR_TYPES[name]] for name, count in errors["counts"].items()]
    at = f"{settings['operating_rate']:g} FP/image, {overlaps[iou_key(errors['iou'])]}"
    parts.append(table_text([f"Errors at {at}, {by}", "n", "what it is"], rows, left_columns=(0, 2)))
    subgroups = next(iter(metrics["subgroups"].values()))
    if subgroups:
        shown = [rate for rate in rates if 0.25 <= float(rate) <= 2]
        rows = [
            [f"{name}: {label}", str(group["boxes"]), *(percent(group["recall"][rate]) for rate in shown)]
            for name, labels in subgroups.items()
            for label, group in labels.items()
        ]
        title = f"Subgroup, {overlaps[next(iter(metrics['subgroups']))]}, {by}"
        parts.append(table_text([title, "boxes", *(f"R@{rate}" for rate in shown)], rows))
    parts.append(
        f"In brackets: 95% intervals from {settings['resamples']} bootstrap resamples of patients. Other "
        "detections on a lesion that is already hit are "
        + ("false positives." if settings["count_duplicates"] else "neither hits nor false positives.")
    )
    return "\n\n".join(parts)


def comparison_tables(comparison: Mapping[str, Any]) -> str:
    """The differences of a comparison, in percentage points, with interval and p."""
    parts = []
    for name, by_iou in comparison["runs"].items():
        for key, found in by_iou.items():
            rows = {f"R@{rate}": value for rate, value in found["recall"].items()}
            rows["mean recall"] = found["mean_recall"]
            rows |= {f"links: {measure}": value for measure, value in (found["links"] or {}).items()}
            overlap = iou_words(key, comparison["matching"])
            title = f"{name} − {comparison['reference']}, {overlap}, {comparison['protocol']}"
            table = [
                [row, percent(value, signed=True), "" if value["p"] is None else f"{value['p']:.3f}"]
                for row, value in rows.items()
            ]
            parts.append(table_text([title, "difference (95%)", "p"], table))
    parts.append(
        f"Paired bootstrap over patients, {comparison['resamples']} resamples. The p-values are not "
        "corrected for their number."
    )
    return "\n\n".join(parts)


def threshold_text(threshold: Threshold, metrics: Mapping[str, Any]) -> str:
    """A threshold, and what it was chosen by."""
    settings, data = metrics["settings"], metrics["data"]
    overlap = iou_words(iou_key(threshold.iou), settings["matching"])
    lines = [
        f"min_score {threshold.min_score}"
        if math.isfinite(threshold.min_score)
        else "min_score: none is needed, all detections together have fewer false positives",
        f"on {data['name']}, {data['section']}: {threshold.rate:.3g} false positives per image, recall "
        f"{100 * threshold.recall:.1f}% of lesion boxes, {overlap}, {protocol_words(settings)}",
    ]
    if data["section"] == "test":
        lines.append("warning: a threshold chosen on the test section makes its results there too good")
    return "\n".join(lines)


def table_text(
    header: Sequence[str], rows: Sequence[Sequence[str]], left_columns: Sequence[int] = (0,)
) -> str:
    """Aligned columns, numbers to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = (
            cell.ljust(width) if column in left_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(aligned).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])


def _links_text(links: Mapping[str, Any] | None, title: str, overlaps: Mapping[str, str]) -> str:
    if links is None:
        return "Links: the findings have none."
    measures = ("precision", "recall", "f1", "accuracy")
    rows = [
        [
            f"{overlaps[key]}, {row_name.replace('_', ' ')}",
            str(row["counts"]["lesions"]),
            *(percent(row[measure]) for measure in measures),
        ]
        for key, by_row in links.items()
        for row_name, row in by_row.items()
    ]
    return table_text([title, "lesions", "precision", "recall", "F1", "accuracy if both found"], rows)


def percent(share: Mapping[str, Any], brief: bool = False, signed: bool = False) -> str:
    """A share in % with its interval; without it if `brief`, or if there is none."""
    value, low, high = (share[key] for key in ("value", "low", "high"))
    if value is None:
        return "–"
    sign = "+" if signed else ""
    if brief or low is None:
        return f"{100 * value:{sign}.1f}"
    return f"{100 * value:{sign}.1f} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"
