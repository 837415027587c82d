"""The numbers of a table: means over seeds, intervals over patients, differences over the same of both.

An interval says how far other patients would move a number, not how far another seed of the training would:
for that there are the single seeds, and `Numbers.seeds_resampled`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from ablations.kept import KeptRun
from ablations.settings import SETTINGS
from ablations.tables import Row, Table
from numpy.typing import NDArray

from clnet.evaluation.bootstrap import draw_patients, finite_or_none, interval
from clnet.evaluation.record import iou_key
from clnet.evaluation.resampled import Statistics, difference, statistics

Runs = Mapping[tuple[str, int], KeptRun]
BySeed = dict[int, dict[float, Statistics]]
Pick = Callable[[Statistics], NDArray[np.float64]]

LINK_MEASURES: dict[str, Pick] = {
    "precision": lambda found: found.links["precision"],
    "recall": lambda found: found.links["recall"],
    "accuracy": lambda found: found.links["accuracy"],
    "accuracy_of_several": lambda found: found.links_of_several["accuracy"],
}


class Numbers:
    """Computes each statistic once: a run may appear in several tables.

    Args:
        runs: by setting and seed.
        resamples: of patients.
    """

    def __init__(self, runs: Runs, resamples: int = 2000) -> None:
        of_data: dict[str, set[str]] = {}
        for (name, _), run in runs.items():
            of_data.setdefault(SETTINGS[name].data, set()).add(run.content["data_fingerprint"])
        if any(len(fingerprints) > 1 for fingerprints in of_data.values()):
            raise ValueError("the kept runs are of different phantoms; delete those of one of them")
        self.runs = runs
        self.resamples = resamples
        self._known: dict[tuple[str, int, str, str | None], dict[float, Statistics]] = {}

    def seeds(self, row: Row, section: str) -> BySeed:
        """The statistics of a row, by seed and IoU."""
        return {
            seed: self._statistics(name, seed, section, row.view)
            for name, seed in sorted(self.runs)
            if name == row.setting
        }

    def _statistics(self, name: str, seed: int, section: str, view: str | None) -> dict[float, Statistics]:
        key = (name, seed, section, view)
        if key not in self._known:
            outcome = self.runs[name, seed].outcomes[section]
            record = outcome.of_view(view) if view else outcome.record
            self._known[key] = statistics(record, draw_patients(record.patients, self.resamples, seed=0))
        return self._known[key]

    def row(self, table: Table, row: Row) -> dict[str, Any] | None:
        """All numbers of a row; None if none of its runs is there."""
        ours = self.seeds(row, table.section)
        if not ours:
            return None
        theirs = self.seeds(Row((), table.reference, view=row.view), table.section)
        content: dict[str, Any] = {"seeds": sorted(ours)}
        for iou in next(iter(ours.values())):
            at = {seed: found[iou] for seed, found in ours.items()}
            content[iou_key(iou)] = {
                "recall": _each(_recalls(at), lambda pick, at=at: _mean(at, pick)),
                "links": _each(_link_measures(at), lambda pick, at=at: _mean(at, pick)) or None,
                "minus_reference": None
                if row.setting == table.reference
                else _contrast(at, {seed: found[iou] for seed, found in theirs.items()}),
            }
        return content

    def false_positives(self, table: Table, row: Row) -> dict[str, dict[str, float]]:
        """What `describe_false_positives` told of a row, by seed; of runs that were looked at."""
        return {
            str(seed): run.content["sections"][table.section]["false_positives"]
            for (name, seed), run in sorted(self.runs.items())
            if name == row.setting and "false_positives" in run.content["sections"][table.section]
        }

    def contrast(
        self, table: Table, ours: str, theirs: str, view: str | None = None
    ) -> dict[str, Any] | None:
        """One setting minus another, by IoU; None where a run of either is missing."""
        both = [self.seeds(Row((), name, view=view), table.section) for name in (ours, theirs)]
        if not all(both):
            return None
        found = {
            iou_key(iou): _contrast(*({seed: one[iou] for seed, one in side.items()} for side in both))
            for iou in next(iter(both[0].values()))
        }
        return None if None in found.values() else found

    def seeds_resampled(
        self, table: Table, ours: str, theirs: str, iou: float, rate: str
    ) -> dict[str, float | None] | None:
        """The difference in R@t over all seeds of either setting, its interval over patients and seeds.

        Each resample draws seeds beside patients, for each setting by itself: a seed has nothing in common
        between two settings. None where a setting has no two seeds.
        """
        rng = np.random.default_rng(0)
        means = []
        for name in (ours, theirs):
            by_seed = np.array(
                [found[iou].recall[rate] for found in self.seeds(Row((), name), table.section).values()]
            )  # [seeds, 1 + resamples]
            if len(by_seed) < 2:
                return None
            drawn = rng.integers(len(by_seed), size=by_seed.T.shape)
            drawn[0] = np.arange(len(by_seed))  # the sample itself
            means.append(np.take_along_axis(by_seed.T, drawn, axis=1).mean(axis=1))
        return interval(means[0] - means[1])


def _recalls(at: Mapping[int, Statistics]) -> dict[str, Pick]:
    rates = next(iter(at.values())).recall
    return {rate: lambda found, rate=rate: found.recall[rate] for rate in rates}  # type: ignore[misc]


def _link_measures(*sides: Mapping[int, Statistics]) -> dict[str, Pick]:
    return LINK_MEASURES if all(found.links for at in sides for found in at.values()) else {}


def _each(picks: Mapping[str, Pick], number: Callable[[Pick], dict[str, Any]]) -> dict[str, Any]:
    return {name: number(pick) for name, pick in picks.items()}


def _mean(at: Mapping[int, Statistics], pick: Pick) -> dict[str, Any]:
    """Mean over seeds with its interval, and the seeds one by one."""
    return {
        **interval(_average(at, pick, sorted(at))),
        "by_seed": {str(seed): finite_or_none(pick(found)[0]) for seed, found in sorted(at.items())},
    }


def _contrast(ours: Mapping[int, Statistics], theirs: Mapping[int, Statistics]) -> dict[str, Any] | None:
    """The difference of the means over the seeds that both have; None if they have none."""
    seeds = sorted(set(ours) & set(theirs))
    if not seeds:
        return None

    def minus(pick: Pick) -> dict[str, Any]:
        of_seed = {str(seed): pick(ours[seed])[0] - pick(theirs[seed])[0] for seed in seeds}
        return {
            **difference(_average(ours, pick, seeds), _average(theirs, pick, seeds)),
            "by_seed": {seed: finite_or_none(value) for seed, value in of_seed.items()},
        }

    return {
        "seeds": seeds,
        "recall": _each(_recalls(ours), minus),
        "links": _each(_link_measures(ours, theirs), minus) or None,
    }


def _average(at: Mapping[int, Statistics], pick: Pick, seeds: Sequence[int]) -> NDArray[np.float64]:
    return np.mean([pick(at[seed]) for seed in seeds], axis=0)
