"""Comparison of runs: paired differences with intervals and p-values.

Every resample draws the same patients for all runs, so whatever makes a patient easy or hard for every run
cancels out of their difference.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clnet.errors import ClnetError
from clnet.evaluation.bootstrap import draw_patients
from clnet.evaluation.figure import draw_froc
from clnet.evaluation.protocols import find_protocol, protocol_words
from clnet.evaluation.record import EvaluationRecord, iou_key, iou_words
from clnet.evaluation.resampled import difference, statistics
from clnet.files import make_folder

SAME_SETTINGS = ("count_duplicates", "matching", "interpolate", "operating_rate", "link_score")
"""Settings that runs must share to be compared, besides their pairs."""


class ComparisonError(ClnetError):
    """Runs that cannot be compared; the message names the runs and what differs."""


class Run(NamedTuple):
    """An evaluated run."""

    name: str
    metrics: dict[str, Any]
    record: EvaluationRecord


def compare(runs: Sequence[Run], resamples: int = 2000, seed: int = 0) -> dict[str, Any]:
    """Every other run minus the first.

    Returns:
        ``{"reference": name, "protocol": words, "runs": {name: {"iou=0.5": {"recall": {"0.25": D, …},
        "mean_recall": D, "links": {"precision": D, …} or None}}}}`` where D is
        ``{"value", "low", "high", "p"}``.
    """
    if len(runs) < 2:
        raise ComparisonError(f"{len(runs)} run given; give two or more")
    reference = runs[0]
    repeated = {run.name for run in runs if [other.name for other in runs].count(run.name) > 1}
    if repeated:
        raise ComparisonError(f"two runs are named {min(repeated)!r}; rename one of their folders")
    for run in runs[1:]:
        _check_same(reference, run)
    weights = draw_patients(reference.record.patients, resamples, seed)
    interpolate = reference.metrics["settings"]["interpolate"]
    of_runs = {run.name: statistics(run.record, weights, interpolate) for run in runs}
    ious = [iou for iou in reference.record.curves if all(iou in run.record.curves for run in runs)]
    if not ious:
        raise ComparisonError("the runs have no IoU threshold in common; evaluate them with the same --iou")

    def minus_reference(run: Run, iou: float) -> dict[str, Any]:
        ours, theirs = of_runs[run.name][iou], of_runs[reference.name][iou]
        return {
            "recall": {rate: difference(ours.recall[rate], theirs.recall[rate]) for rate in ours.recall},
            "mean_recall": difference(ours.mean_recall, theirs.mean_recall),
            "links": {
                name: difference(ours.links[name], theirs.links[name])
                for name in ours.links
                if name in theirs.links
            }
            or None,
        }

    return {
        "reference": reference.name,
        "protocol": protocol_words(reference.metrics["settings"]),
        "matching": reference.metrics["settings"]["matching"],
        "resamples": resamples,
        "runs": {run.name: {iou_key(iou): minus_reference(run, iou) for iou in ious} for run in runs[1:]},
    }


def write_comparison(comparison: Mapping[str, Any], runs: Sequence[Run], output: str | Path) -> None:
    """Write ``comparison.json`` and ``froc.png``, the curves of all runs with their bands, to a folder."""
    output = Path(output)
    make_folder(output)
    settings = runs[0].metrics["settings"]
    panels = {
        f"{iou_words(key, settings['matching'])}, {comparison['protocol']}": {
            run.name: run.metrics["detection"][key]["curve"] for run in runs
        }
        for key in next(iter(comparison["runs"].values()))
    }
    rates = find_protocol(settings["protocol"]).shown_rates
    draw_froc(panels, output / "froc.png", rates, settings["interpolate"])
    content = json.dumps(comparison, ensure_ascii=False, indent=1, allow_nan=False)
    (output / "comparison.json").write_text(content + "\n", encoding="utf-8")


def _check_same(reference: Run, run: Run) -> None:
    for name in SAME_SETTINGS:
        ours, theirs = reference.metrics["settings"][name], run.metrics["settings"][name]
        if ours != theirs:
            raise ComparisonError(
                f"{reference.name} was evaluated with {name} {ours}, {run.name} with {theirs}; "
                "evaluate both with the same settings"
            )
    ours, theirs = reference.record.pair_keys.tolist(), run.record.pair_keys.tolist()
    if ours != theirs:
        only = len(set(ours) ^ set(theirs))
        what = f"{only} pairs are in only one of them" if only else "their pairs are in a different order"
        raise ComparisonError(f"{reference.name} and {run.name}: {what}; evaluate both on the same datalist")
    for name in ("pair_patient", "image_pair", "box_image", "box_lesion"):
        if not np.array_equal(getattr(reference.record, name), getattr(run.record, name)):
            raise ComparisonError(
                f"{reference.name} and {run.name}: the same pairs, but different patients, views or lesions "
                f"({name} differs); evaluate both on the same datalist"
            )
