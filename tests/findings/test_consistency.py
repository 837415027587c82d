"""How well two views fit together: what is measured of drawn views, and the score, by scipy's densities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from clnet.findings.consistency import (
    MEASURES,
    ConsistencyError,
    PairConsistency,
    measure_view,
    mismatch_warning,
)


def along(measure, ratio):
    """A score that looks at one measure, with a variance of 1 in breasts."""
    return PairConsistency([0.0] * 8, [np.eye(8)[MEASURES.index(measure)].tolist()], [ratio])


def block(rows=60, columns=40, top=10, height=40, depth=20, grey=(0.2, 0.4, 0.6, 0.8)):
    """A view whose breast is a rectangle of four stripes, from the chest wall on."""
    image = np.zeros((rows, columns), np.float32)
    image[top : top + height, :depth] = np.repeat(grey, depth // 4)
    return image


def test_of_a_view_depth_height_area_and_grey_by_depth_are_measured():
    measured = dict(zip(MEASURES, measure_view(block()), strict=True))
    assert np.exp(measured["depth"]) == pytest.approx(20)
    assert np.exp(measured["height"]) == pytest.approx(40)
    assert np.exp(2 * measured["area"]) == pytest.approx(20 * 40)
    assert [measured[f"grey {k}"] for k in (1, 2, 3, 4)] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert measured["spread of grey"] == pytest.approx(np.sqrt(0.05))


def test_a_label_beside_the_breast_is_not_measured():
    labelled = block()
    labelled[2:6, 30:38] = 1
    np.testing.assert_array_equal(measure_view(labelled), measure_view(block()))


def test_the_common_scale_of_two_views_does_not_matter():
    cc, mlo = block(), block(height=30, depth=16)
    larger = [np.kron(view, np.ones((2, 2), np.float32)) for view in (cc, mlo)]
    apart, larger_apart = (measure_view(a) - measure_view(b) for a, b in ((cc, mlo), larger))
    np.testing.assert_allclose(larger_apart, apart, atol=1e-6)


def test_neither_does_the_size_of_the_canvas():
    image = block(rows=64, top=0, height=60)
    large = np.kron(image, np.ones((8, 8), np.float32))  # 512 rows, measured in blocks of 4 × 4 pixels
    gaps = measure_view(large) - measure_view(image)
    np.testing.assert_allclose(gaps, [np.log(2)] * 3 + [0] * 5, atol=1e-6)


def test_a_blank_view_is_measured_as_well():
    assert np.isfinite(measure_view(np.zeros((50, 30), np.float32))).all()


@pytest.mark.parametrize("difference", [0.0, 0.7, -2.5, 9.0])
def test_the_score_is_the_probability_of_one_breast_at_even_odds(difference):
    differences = np.zeros(8)
    differences[0] = difference
    same, other = norm.pdf(difference, 0, 1), norm.pdf(difference, 0, 5)
    assert along("depth", 25.0).score(differences) == pytest.approx(same / (same + other))


def test_directions_may_be_any_along_which_breasts_and_strangers_are_uncorrelated():
    rng = np.random.default_rng(0)
    mixing, offsets, ratios = rng.normal(size=(8, 8)), rng.normal(size=8), rng.uniform(0.5, 20, 8)
    same, other = mixing @ mixing.T, mixing @ np.diag(ratios) @ mixing.T
    model = PairConsistency(offsets.tolist(), np.linalg.inv(mixing).tolist(), ratios.tolist())
    for differences in offsets + rng.normal(size=(5, 8)):
        odds = np.exp(
            multivariate_normal.logpdf(differences, offsets, same)
            - multivariate_normal.logpdf(differences, offsets, other)
        )
        assert model.score(differences) == pytest.approx(odds / (1 + odds))


def test_views_far_apart_score_0_and_nothing_overflows():
    assert along("depth", 1000.0).score(np.full(8, 1e6)) == pytest.approx(0, abs=1e-300)


def test_two_views_are_compared_cc_minus_mlo():
    model = PairConsistency([np.log(2), *[0.0] * 7], [[10.0, *[0.0] * 7]], [100.0])
    deep, shallow = block(depth=40), block(depth=20)
    assert model(deep, shallow) > 0.9 > 0.1 > model(shallow, deep)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (([0.0] * 7, [[0.0] * 8], [2.0]), "offsets has shape"),
        (([0.0] * 8, [[0.0] * 8], [2.0, 3.0]), "directions has shape"),
        (([0.0] * 8, [[0.0] * 8], [0.0]), "ratios are"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(settings, words):
    with pytest.raises(ConsistencyError, match=words):
        PairConsistency(*settings)


def test_a_warning_names_score_and_threshold_and_comes_below_the_threshold_only():
    assert mismatch_warning(0.0213, 0.2) == (
        "the two views may not be of one breast (consistency 0.021, below 0.200)"
    )
    assert mismatch_warning(0.2, 0.2) == mismatch_warning(None, 0.2) == ""
