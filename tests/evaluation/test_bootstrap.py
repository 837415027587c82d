"""Intervals and p-values over patients."""

import numpy as np
import pytest
from scipy import stats

from clnet.evaluation.bootstrap import draw_patients, interval, p_value, ratio


def test_a_resample_draws_as_many_patients_as_there_are():
    weights = draw_patients(40, 500, seed=0)
    assert weights.shape == (501, 40)
    assert (weights[0] == 1).all()
    assert (weights.sum(1) == 40).all()
    assert weights[1:].mean() == 1
    assert weights[1:].var() == pytest.approx(1 - 1 / 40, rel=0.05)  # of a count among 40 equal chances
    np.testing.assert_array_equal(weights, draw_patients(40, 500, seed=0))


def test_an_interval_is_the_percentile_interval_of_scipy():
    rng = np.random.default_rng(0)
    lesions = rng.integers(0, 4, 150)
    found = rng.binomial(lesions, 0.7)
    weights = draw_patients(150, 9000, seed=1)
    ours = interval(ratio(weights @ found, weights @ lesions))
    theirs = stats.bootstrap(
        (found, lesions),
        lambda found, lesions, axis: found.sum(axis) / lesions.sum(axis),
        paired=True,
        method="percentile",
        n_resamples=9000,
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert ours["value"] == found.sum() / lesions.sum()
    assert ours["low"] == pytest.approx(theirs.low, abs=0.005)
    assert ours["high"] == pytest.approx(theirs.high, abs=0.005)


def test_without_a_value_there_is_no_interval():
    assert interval(np.array([np.nan, 0.5, 0.6])) == {"value": None, "low": None, "high": None}
    assert interval(np.array([0.5, np.nan, np.nan])) == {"value": 0.5, "low": None, "high": None}


def test_resamples_without_a_value_are_left_out_of_the_interval():
    assert interval(np.array([0.5, np.nan, 0.5, 0.5])) == {"value": 0.5, "low": 0.5, "high": 0.5}


def test_p_is_twice_the_rarer_side():
    below, above = [-0.1] * 20, [0.2] * 979
    assert p_value(np.array([0.2, *below, *above])) == pytest.approx(2 * 21 / 1000)
    assert p_value(-np.array([0.2, *below, *above])) == pytest.approx(2 * 21 / 1000)


def test_p_is_never_zero_and_never_above_one():
    assert p_value(np.full(1000, 0.3)) == pytest.approx(2 / 1000)
    assert p_value(np.zeros(1000)) == 1
    assert p_value(np.array([np.nan, 0.1])) is None
