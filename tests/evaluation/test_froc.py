"""R@t against a slow implementation of its definition, pycocotools, and hand computation."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from coco_reference import coco_files, coco_recalls
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_reference import SlowImage, slow_recalls
from small_images import image, sets

from clnet.boxes import box_iou
from clnet.evaluation.froc import RATES, cutoff_scores, froc, recall_table, recalls
from clnet.evaluation.hits import ImageResult, find_hits, find_overlaps

IOUS = {0.2: Fraction(1, 5), 0.5: Fraction(1, 2)}


def check_against_the_definition(results, count_duplicates):
    table = recall_table(results, count_duplicates=count_duplicates)
    slow = [SlowImage(*result) for result in results]
    units = {(n, lesion): (n, lesion) for n, one in enumerate(slow) for lesion in range(one.lesions)}
    for iou, exact in IOUS.items():
        expected = [math.nan] * len(RATES)
        if units:
            expected = slow_recalls(slow, RATES, exact, units, count_duplicates)
        assert list(table[iou].values()) == pytest.approx(expected, nan_ok=True), iou


@settings(max_examples=150)
@given(sets, st.booleans())
def test_recall_is_what_the_definition_says(results, count_duplicates):
    check_against_the_definition(results, count_duplicates)


@pytest.mark.slow
def test_recall_is_what_the_definition_says_in_thousands_of_random_cases():
    rng = np.random.default_rng(0)

    def grid_boxes(most):
        low = rng.integers(0, 7, (rng.integers(0, most + 1), 2))
        return np.concatenate([low, low + rng.integers(1, 6, low.shape)], 1).astype(float)

    for case in range(3000):
        results = []
        for _ in range(rng.integers(1, 6)):
            found = grid_boxes(6)
            results.append(ImageResult(found, rng.integers(0, 6, len(found)) / 6, grid_boxes(2)))
        check_against_the_definition(results, count_duplicates=bool(case % 2))


@settings(max_examples=300)
@given(sets, st.data())
def test_weighing_an_image_by_two_is_having_it_twice(results, data):
    """The ground that the bootstrap stands on, down to images that are left out."""
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(results), max_size=len(results)).filter(any))
    overlaps = find_overlaps(results)
    curve = froc(find_hits(overlaps, 0.2))
    each, row = np.arange(len(results)), np.array([weights], float)
    cutoffs = cutoff_scores(curve, RATES, each, row)
    weighted = recalls(curve.found_at, overlaps.lesion_image, row, cutoffs)[0]
    repeated = [result for result, weight in zip(results, weights, strict=True) for _ in range(weight)]
    np.testing.assert_allclose(weighted, list(recall_table(repeated)[0.2].values()))


def random_images(rng, count):
    """Like a detector: some boxes near lesions, most not; no two scores or overlaps are equal."""
    for _ in range(count):
        low = rng.uniform(0, 80, (rng.integers(0, 3), 2))
        lesions = np.concatenate([low, low + rng.uniform(10, 25, low.shape)], 1)
        near = np.repeat(lesions, 3, axis=0) + rng.normal(0, 4, (3 * len(lesions), 4))
        low = rng.uniform(0, 80, (rng.integers(0, 8), 2))
        found = np.concatenate([near, np.concatenate([low, low + rng.uniform(10, 25, low.shape)], 1)])
        found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
        yield ImageResult(found, rng.random(len(found)), lesions)


@pytest.mark.parametrize("iou", IOUS)
@pytest.mark.parametrize("seed", range(8))
def test_pycocotools_agrees_where_duplicates_count_as_false_positives(seed, iou):
    results = list(random_images(np.random.default_rng(seed), 40))
    table = recall_table(results, ious=[iou], count_duplicates=True)[iou]
    assert list(table.values()) == pytest.approx(coco_recalls(*coco_files(results), RATES, iou))
    assert table[4.0] > 0.5


def test_the_overlap_is_that_of_monai():
    results = list(random_images(np.random.default_rng(0), 20))
    overlaps = find_overlaps(results)
    detection_start = np.cumsum([0, *(len(r.scores) for r in results)])
    lesion_start = np.cumsum([0, *(len(r.lesions) for r in results)])
    expected = {
        (int(detection_start[n] + d), int(lesion_start[n] + m)): iou
        for n, r in enumerate(results)
        for (d, m), iou in np.ndenumerate(
            box_iou(torch.as_tensor(r.boxes), torch.as_tensor(r.lesions)).numpy().reshape(len(r.boxes), -1)
        )
        if iou > 0
    }
    got = dict(
        zip(
            zip(overlaps.detection.tolist(), overlaps.lesion.tolist(), strict=True), overlaps.iou, strict=True
        )
    )
    assert got.keys() == expected.keys()
    assert len(got) > 50
    assert all(got[key] == pytest.approx(expected[key], abs=1e-5) for key in got)


LESION, ELSEWHERE = (0, 0, 10, 10), (50, 50, 60, 60)


def recall(results, rate, iou=0.5, **options):
    return recall_table(results, [rate], [iou], **options)[iou][rate]


def test_negative_images_count_in_the_rate():
    """One false positive above the hit: 1 FPI with one image, 1/4 with three empty ones more."""
    one = image([(ELSEWHERE, 0.9), (LESION, 0.8)], [LESION])
    assert recall([one], 0.25) == 0
    assert recall([one, *[image([], [])] * 3], 0.25) == 1


def test_a_hit_with_the_score_of_a_barred_false_positive_is_barred_too():
    tied = image([(LESION, 0.8), (ELSEWHERE, 0.8)], [LESION])
    assert recall([tied], 0.5) == 0
    assert recall([tied], 1) == 1


def test_a_further_detection_on_a_hit_lesion_is_neither_unless_asked_for():
    doubled = image([(LESION, 0.9), (LESION, 0.8), (ELSEWHERE, 0.7)], [LESION])
    second = image([(LESION, 0.6)], [LESION])
    assert recall([doubled, second], 0.5) == 1
    assert recall([doubled, second], 0.5, count_duplicates=True) == 0.5


def test_one_detection_hits_one_lesion_the_one_that_it_overlaps_most():
    beside = (4, 0, 14, 10)
    assert recall([image([(LESION, 0.9)], [beside, LESION])], 1, iou=0.2) == 0.5
    hits = find_hits(find_overlaps([image([(LESION, 0.9)], [beside, LESION])]), 0.2)
    assert hits.lesion.tolist() == [1]
    # The second detection overlaps both as well, and takes what is left.
    assert recall([image([(LESION, 0.9), (LESION, 0.8)], [beside, LESION])], 1, iou=0.2) == 1


def test_an_overlap_of_exactly_the_threshold_is_a_hit():
    assert recall([image([((0, 0, 2, 10), 0.9)], [LESION])], 1, iou=0.2) == 1
    assert recall([image([((0, 0, 1, 10), 0.9)], [LESION])], 1, iou=0.2) == 0


def test_a_box_without_area_hits_nothing():
    assert recall([image([((5, 0, 5, 10), 0.9), (LESION, 0.8)], [LESION])], 0.5) == 0


def test_a_rate_that_is_no_binary_number_is_reached_exactly():
    """29 false positives in 100 images are 0.29 FPI, although 0.29 × 100 is below 29 in floating point."""
    negative = [image([(ELSEWHERE, 0.9)], [])] * 29 + [image([], [])] * 70
    assert recall([*negative, image([(LESION, 0.5)], [LESION])], 0.29) == 1
    assert recall([*negative, image([(LESION, 0.5)], [LESION])], 0.28) == 0


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], math.nan),
        ([image([], [])], math.nan),
        ([image([(ELSEWHERE, 0.5)], [])], math.nan),
        ([image([], [LESION])], 0.0),
        ([image([(LESION, 0.5)], [LESION])], 1.0),
    ],
    ids=["no images", "nothing", "all negative", "no detections", "found"],
)
def test_the_edges(results, expected):
    for row in recall_table(results).values():
        assert list(row.values()) == pytest.approx([expected] * 6, nan_ok=True)


def test_a_resample_that_runs_off_the_top_of_the_list_is_still_exact():
    """Nearly all false positives stem from one image; a resample without it has to look far down the list."""
    noisy = image([(ELSEWHERE, 0.9 + n * 1e-6) for n in range(5000)], [])
    quiet = image([(ELSEWHERE, 0.6), (LESION, 0.5), (ELSEWHERE, 0.4)], [LESION])
    results = [noisy, *[quiet] * 3]
    overlaps = find_overlaps(results)
    curve = froc(find_hits(overlaps, 0.5))
    weights = np.array([[0.0, 1, 1, 1], [1, 1, 1, 1]])
    cutoffs = cutoff_scores(curve, [0.5, 1], np.arange(4), weights)
    np.testing.assert_array_equal(cutoffs[0], [0.6, 0.4])
    assert (cutoffs[1] > 0.9).all()
