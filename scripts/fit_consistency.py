"""Fits how well two views fit together, and measures it: `consistency` of a config.

    python scripts/fit_consistency.py DATASET --size 512 256 --measure validation

The strangers are breasts with the MLO view of another patient, of the same side. m, w and t are fitted on the
training section; the threshold of the warning is that which 5 % of the breasts of the validation section fall
below. Printed are the settings, see clnet/findings/consistency.py, and on the section to measure the area
under the ROC curve and the share of strangers below the threshold, with 95 % intervals from a bootstrap over
patients.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from disturbances import wrong_partner
from monai.transforms.compose import Compose
from numpy.typing import NDArray
from page_text import percent, table
from scipy.linalg import eigh

from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair, View
from clnet.evaluation.bootstrap import draw_patients, interval, ratio
from clnet.findings.consistency import MEASURES, PairConsistency, measure_view
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird

Numbers = NDArray[np.float64]
FALSE_ALARMS = 0.05
RESAMPLES = 2000
ROUNDS = 3  # of strangers to fit to: in each, every MLO view has another partner
PARTS = {
    "all measures": MEASURES,
    "depth alone": ("depth",),
    "depth, height and area": ("depth", "height", "area"),
    "grey alone": tuple(name for name in MEASURES if "grey" in name),
}


class Known(NamedTuple):
    """Differences f(CC) − f(MLO), and whose breasts they are."""

    differences: Numbers
    """[n, 8]."""
    patients: list[str]


def strangers(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with the MLO view of another patient; those that find none are left out."""
    swapped = wrong_partner(pairs, 1.0, Path())
    return [new for old, new in zip(pairs, swapped, strict=True) if new is not old]


def differences(pairs: Sequence[Pair], size: tuple[int, int]) -> Known:
    """Preprocess pairs for a canvas of `size` (rows, columns), and compare their views."""
    transform = Compose([LoadPaird(), PreprocessPaird(size), FinishPaird()])
    known = []
    for pair in pairs:
        bare = replace(pair, cc=_unmarked(pair.views["cc"]), mlo=_unmarked(pair.views["mlo"]), links={})
        cc, mlo = transform(bare.to_item())["image"].numpy()
        known.append(measure_view(cc) - measure_view(mlo))
    return Known(np.array(known), [pair.patient_id for pair in pairs])


def _unmarked(view: View) -> View:
    return View(view.image, pixel_size=view.pixel_size)


def fit(same: Numbers, other: Numbers, names: Sequence[str], directions: int) -> PairConsistency:
    """Fit m, w and t to differences [n, 8] of breasts and of strangers.

    Args:
        same: of breasts.
        other: of strangers.
        names: of the measures to use; the others get a weight of 0.
        directions: how many to keep, those along which strangers differ most.
    """
    used = [MEASURES.index(name) for name in names]
    offsets = same.mean(0)
    spreads = [(part - offsets)[:, used].T @ (part - offsets)[:, used] / len(part) for part in (same, other)]
    ratios, vectors = eigh(spreads[1], spreads[0])  # vectors give `same` a variance of 1
    best = np.argsort(-ratios)[:directions]
    rows = np.zeros((len(best), len(MEASURES)))
    rows[:, used] = vectors[:, best].T
    return PairConsistency(offsets.round(3).tolist(), rows.round(2).tolist(), ratios[best].round(2).tolist())


def measure(model: PairConsistency, same: Known, other: Known, threshold: float) -> dict[str, Any]:
    """The area under the ROC curve, sensitivity and false alarms, each with its interval."""
    patients = sorted({*same.patients, *other.patients})
    weights = draw_patients(len(patients), RESAMPLES, seed=0)
    scores = [np.array([model.score(d) for d in known.differences]) for known in (same, other)]
    of_same, of_other = (
        weights[:, [patients.index(patient) for patient in known.patients]] for known in (same, other)
    )
    above = (scores[0][:, None] > scores[1]) + 0.5 * (scores[0][:, None] == scores[1])
    pairs = of_same.sum(1) * of_other.sum(1)
    below = [part * (score < threshold) for part, score in zip((of_same, of_other), scores, strict=True)]
    return {
        "area": interval(ratio(((of_same @ above) * of_other).sum(1), pairs)),
        "sensitivity": interval(ratio(below[1].sum(1), of_other.sum(1))),
        "false_alarms": interval(ratio(below[0].sum(1), of_same.sum(1))),
    }


def threshold_of(model: PairConsistency, same: Known) -> float:
    """The score that `FALSE_ALARMS` of these breasts fall below."""
    scores = [model.score(d) for d in same.differences]
    return float(f"{np.quantile(scores, FALSE_ALARMS):.3g}")


def known_of(pairs: Sequence[Pair], size: tuple[int, int], rounds: int = 1) -> tuple[Known, Known]:
    """What is known of the pairs of a section with two views, and of strangers made of them."""
    both = [pair for pair in pairs if len(pair.views) == 2]
    rng = np.random.default_rng(0)
    orders = [range(len(both)), *(rng.permutation(len(both)).tolist() for _ in range(rounds - 1))]
    made = [pair for order in orders for pair in strangers([both[index] for index in order])]
    return differences(both, size), differences(made, size)


def settings_of(model: PairConsistency, threshold: float) -> str:
    """The settings as a config has them."""
    rows = ",\n    ".join(str(row) for row in model.directions.tolist())
    return (
        f"consistency:\n  _target_: clnet.findings.consistency.PairConsistency\n"
        f"  offsets: {model.offsets.tolist()}\n  directions: [\n    {rows}]\n"
        f"  ratios: {model.ratios.tolist()}\nmin_consistency: {threshold}"
    )


def main() -> None:
    """Print the settings, and what they are worth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET", help="a datalist, or a folder with one")
    parser.add_argument("--size", type=int, nargs=2, required=True, metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--measure", default="test", metavar="SECTION", help="(default: %(default)s)")
    parser.add_argument("--directions", type=int, default=4, metavar="K", help="kept (default: %(default)s)")
    options = parser.parse_args()
    datalist, size = read_datalist(options.dataset), tuple(options.size)
    same, other = known_of(datalist["training"], size, ROUNDS)
    validation, _ = known_of(datalist["validation"], size)
    measured = known_of(datalist[options.measure], size)
    lines = []
    for part, names in PARTS.items():
        model = fit(same.differences, other.differences, names, options.directions)
        threshold = threshold_of(model, validation)
        found = measure(model, *measured, threshold)
        lines.append([part, *(percent(found[key]) for key in ("area", "sensitivity", "false_alarms"))])
        if names == MEASURES:
            print(settings_of(model, threshold))
    heads = ["from", "area under the ROC curve", "strangers warned of", "false alarms"]
    print(
        f"\nFitted to {len(same.patients)} breasts; {options.measure}: {len(measured[0].patients)} breasts, "
        f"{len(measured[1].patients)} strangers; in %, with 95% intervals\n\n{table(heads, lines)}"
    )


if __name__ == "__main__":
    main()
