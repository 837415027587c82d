"""The numbers of the tables, with intervals over patients and seeds.

An interval is to say how far other patients *and* another training would move a number. So each resample
draws patients, the same for all runs, and for each setting by itself as many of its seeds, with replacement.
A setting of one seed has an interval over patients alone, and is told apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ablations.kept import KeptRun
from ablations.outcome import Outcome
from ablations.settings import SETTINGS
from numpy.typing import NDArray

from clnet.evaluation.bootstrap import draw_patients, finite_or_none, interval, p_value
from clnet.evaluation.froc import RATES, operating_points, recalls_at
from clnet.evaluation.links import link_statistics
from clnet.evaluation.record import iou_key

Measures = dict[str, NDArray[np.float64]]
"""Statistics [1 + resamples] by name: IoU, then what, such as ``iou=0.2/both views/recall/0.25``."""


def measures(outcome: Outcome, weights: NDArray[np.float64]) -> Measures:
    """All measures of a run.

    Args:
        outcome: of the run.
        weights: [1 + resamples, patients] from `draw_patients`.
    """
    record = outcome.record
    found: Measures = {}
    views = np.bincount(record.image_pair)
    in_two_views = views[record.image_pair[record.box_image]] == 2
    for iou, curve in record.curves.items():
        key = iou_key(iou)
        points = operating_points(curve, RATES, record.image_patient, weights)
        boxes, patient = record.units("image", iou)
        groups = {"": np.full(len(boxes), True), "both views/": in_two_views, "one view/": ~in_two_views}
        for name, labels in outcome.groups.items():
            groups |= {f"{name}/{label}/": labels == label for label in sorted(set(labels.tolist()) - {""})}
        for name, those in groups.items():
            recalls = recalls_at(boxes[those], patient[those], weights, points).T
            found |= {
                f"{key}/{name}recall/{rate:g}": recall for rate, recall in zip(RATES, recalls, strict=True)
            }
        if iou in record.links:
            links = record.links[iou]
            for name, breasts in {
                "links": np.full(len(views), True),
                "links of several": record.lesions_of_pair() > 1,
                "links of single pairs": record.has_single_pair(),
            }.items():
                statistics = link_statistics(links.where(breasts), record.pair_patient, weights)
                found |= {f"{key}/{name}/{measure}": values for measure, values in statistics.items()}
    return found


class Numbers:
    """The numbers of settings and of their differences.

    Args:
        runs: by setting and seed.
        section: of the data sets.
        resamples: of patients and seeds.
    """

    def __init__(
        self, runs: Mapping[tuple[str, int], KeptRun], section: str = "test", resamples: int = 2000
    ) -> None:
        of_data: dict[str, set[str]] = {}
        self._by_seed: dict[str, dict[int, Measures]] = {}
        for (name, seed), run in sorted(runs.items()):
            outcome = run.outcome(section)
            of_data.setdefault(SETTINGS[name].data, set()).add(outcome.cohort)
            weights = draw_patients(outcome.record.patients, resamples, seed=0)
            self._by_seed.setdefault(name, {})[seed] = measures(outcome, weights)
        if any(len(cohorts) > 1 for cohorts in of_data.values()):
            raise ValueError("the kept runs are of different pairs; delete those of one of them")
        self.resamples = resamples

    def seeds(self, setting: str) -> list[int]:
        """The seeds of a setting that were run."""
        return sorted(self._by_seed.get(setting, {}))

    def names(self, setting: str) -> list[str]:
        """The measures that all runs of a setting have."""
        of_runs = list(self._by_seed[setting].values())
        return [name for name in of_runs[0] if all(name in run for run in of_runs)]

    def row(self, setting: str) -> dict[str, dict[str, Any]]:
        """Mean over seeds, interval and single seeds of each measure."""
        return {
            name: {
                **interval(self._mean(setting, name)),
                "by_seed": {
                    str(seed): finite_or_none(run[name][0]) for seed, run in self._by_seed[setting].items()
                },
            }
            for name in self.names(setting)
        }

    def difference(self, ours: str, theirs: str) -> dict[str, dict[str, Any]] | None:
        """One setting minus another; None where a run of either is missing."""
        if not (self.seeds(ours) and self.seeds(theirs)):
            return None
        content = {}
        for name in self.names(ours):
            if name in self.names(theirs):
                minus = self._mean(ours, name) - self._mean(theirs, name)
                content[name] = {**interval(minus), "p": p_value(minus)}
        return content

    def _mean(self, setting: str, name: str) -> NDArray[np.float64]:
        """The mean over seeds of a measure, [1 + resamples]: over all, then over those drawn."""
        by_seed = np.stack([run[name] for run in self._by_seed[setting].values()], axis=1)  # [1 + R, seeds]
        # Settings have nothing in common that a seed decides, so each draws its own.
        chance = np.random.default_rng(list(setting.encode()))
        drawn = chance.integers(by_seed.shape[1], size=by_seed.shape)
        drawn[0] = np.arange(by_seed.shape[1])
        mean: NDArray[np.float64] = np.take_along_axis(by_seed, drawn, axis=1).mean(axis=1)
        return mean


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number by Holm's method: at most 1, in the order given."""
    order = np.argsort(p_values)
    stepped = np.sort(p_values) * (len(p_values) - np.arange(len(p_values)))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return corrected.tolist()
