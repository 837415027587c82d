"""Confidence intervals and p-values from a bootstrap over patients.

Images of one patient are not independent, so whole patients are resampled. A resample is a row of weights:
how often each patient was drawn. The first row is all ones, the sample itself, so a statistic computed row
by row, [1 + resamples, …], has its value in row 0 and its spread in the rest.
"""

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""The confidence level of the intervals."""


def draw_patients(patients: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Weights [1 + resamples, patients]: the sample itself, then the resamples."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(patients, np.full(patients, 1 / patients), size=resamples)
    return np.concatenate([np.ones((1, patients)), drawn])


def interval(statistic: NDArray[np.float64]) -> dict[str, float | None]:
    """Value, low and high of a statistic [1 + resamples]; None where it is undefined (0 of 0).

    The interval spans the 2.5th to the 97.5th percentile of the resamples in which it is defined.
    """
    spread = statistic[1:][np.isfinite(statistic[1:])]
    if not np.isfinite(statistic[0]) or not len(spread):
        return {"value": finite_or_none(statistic[0]), "low": None, "high": None}
    low, high = np.quantile(spread, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"value": finite_or_none(statistic[0]), "low": float(low), "high": float(high)}


def p_value(difference: NDArray[np.float64]) -> float | None:
    """Two-sided p-value of a paired difference [1 + resamples].

    Twice the share of resamples on the rarer side of zero, zero included. One resample is added to each side,
    so that p is never 0: with 2,000 resamples it is at least 0.001.
    """
    if not np.isfinite(difference[0]):
        return None
    known = difference[1:][np.isfinite(difference[1:])]
    rarer = min((known <= 0).sum(), (known >= 0).sum())
    return float(min(1.0, 2 * (1 + rarer) / (1 + len(known))))


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratio of a part to a whole; nan for 0 / 0."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def finite_or_none(number: float) -> float | None:
    """A number that JSON can hold: None if it is not finite."""
    return float(number) if np.isfinite(number) else None
