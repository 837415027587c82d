"""Links against a slow reading of their definition, and by hand."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from random_findings import random_datalist, random_findings
from slow_reference import SlowImage

from clnet.data.pair import Pair, View
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.hits import find_overlaps
from clnet.evaluation.links import LinkCounts, count_links, link_statistics
from clnet.findings.types import Detections, Findings, Link, PairFindings

A, B, NOTHING = (0, 0, 10, 10), (50, 50, 60, 60), (90, 90, 95, 95)


def breast(cc, mlo):
    """From ``{"lesion id": box}`` for each view."""
    views = {
        name: View(Path(name), list(boxes.values()), tuple(boxes))
        for name, boxes in (("cc", cc), ("mlo", mlo))
        if boxes is not None
    }
    return Pair("p", "patient", "L", **views)


def count(pair, cc, mlo, links, found=True, kind="all"):
    detections = [Detections(boxes, np.linspace(0.9, 0.5, len(boxes))) for boxes in (cc, mlo)]
    findings = Findings("m", (PairFindings("p", *detections, tuple(links)),))
    cohort = build_cohort([pair], findings)
    all_found = np.full(len(cohort.box_lesion), found)
    counts = getattr(count_links(cohort, find_overlaps(cohort.results), 0.5, 0.5, all_found), kind)
    return {name: int(values.sum()) for name, values in counts._asdict().items()}


BOTH = breast({"1": A}, {"1": A})


@pytest.mark.parametrize(
    ("links", "right", "wrong"),
    [
        ([Link(0, 0, 0.9)], 1, 0),
        ([Link(0, 0, 0.4)], 0, 0),
        ([Link(0, 1, 0.9)], 0, 1),
        ([Link(1, 1, 0.9)], 0, 1),
        ([Link(0, None, 0.9)], 0, 1),
        ([Link(None, 1, 0.9)], 0, 1),
        ([Link(0, 0, 0.9), Link(0, 0, 0.8)], 1, 0),
        ([Link(0, 0, 0.9), Link(0, None, 0.8)], 1, 1),
        ([], 0, 0),
    ],
    ids=[
        "right",
        "too unsure to count",
        "to a false positive",
        "two false positives",
        "to the dustbin although it is in both views",
        "a false positive to the dustbin",
        "twice right counts once",
        "right, and wrong beside it",
        "no links",
    ],
)
def test_a_lesion_in_both_views(links, right, wrong):
    counts = count(BOTH, [A, NOTHING], [A, NOTHING], links)
    assert (counts["right"], counts["wrong"], counts["lesions"]) == (right, wrong, 1)


def test_a_lesion_in_one_view_belongs_to_the_dustbin():
    single = breast({"1": A}, {})
    assert count(single, [A], [NOTHING], [Link(0, None, 0.9)])["right"] == 1
    assert count(single, [A], [NOTHING], [Link(0, 0, 0.9)])["wrong"] == 1


ONE_AND_BOTH = breast({"1": A, "2": B}, {"2": B})
TO_DUSTBIN = {
    "right": ([Link(0, None, 0.9), Link(1, 0, 0.9)], (1, 0, 1)),
    "said of a lesion in both views": ([Link(1, None, 0.9)], (0, 1, 0)),
    "said of a false positive": ([Link(2, None, 0.9)], (0, 1, 0)),
    "not said": ([Link(0, 0, 0.9)], (0, 0, 0)),
    "too unsure to count": ([Link(0, None, 0.4)], (0, 0, 0)),
}


@pytest.mark.parametrize(("links", "expected"), TO_DUSTBIN.values(), ids=TO_DUSTBIN)
def test_only_in_this_view_is_counted_apart(links, expected):
    counts = count(ONE_AND_BOTH, [A, B, NOTHING], [B], links, kind="to_dustbin")
    assert (counts["right"], counts["wrong"], counts["detected_right"]) == expected
    assert (counts["lesions"], counts["detected"]) == (1, 1)


def test_boxes_on_two_lesions_are_a_wrong_link():
    two = breast({"1": A, "2": B}, {"1": A, "2": B})
    crossed = count(two, [A, B], [A, B], [Link(0, 1, 0.9), Link(1, 0, 0.9)])
    assert (crossed["right"], crossed["wrong"], crossed["detected_right"]) == (0, 2, 0)
    straight = count(two, [A, B], [A, B], [Link(0, 0, 0.9), Link(1, 1, 0.9)])
    assert (straight["right"], straight["wrong"], straight["detected_right"]) == (2, 0, 2)


def test_a_breast_with_one_view_is_left_out():
    findings = Findings("m", (PairFindings("p", Detections([A], [0.9]), None, (Link(0, None, 0.9),)),))
    cohort = build_cohort([breast({"1": A}, None)], findings)
    counts = count_links(cohort, find_overlaps(cohort.results), 0.5, 0.5, np.array([True]))
    assert sum(int(values.sum()) for kind in counts for values in kind) == 0


def test_accuracy_is_over_lesions_that_are_found_in_both_views():
    assert count(BOTH, [A], [A], [Link(0, 0, 0.9)], found=False)["detected"] == 0
    assert count(BOTH, [A], [A], [Link(0, 0, 0.9)])["detected_right"] == 1


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_what_the_definition_says(seed):
    pairs = random_datalist(60, seed)["test"]
    findings = random_findings(pairs, seed=seed)
    cohort = build_cohort(pairs, findings)
    counts, _ = count_links(
        cohort, find_overlaps(cohort.results), 0.2, 0.5, np.ones(len(cohort.box_lesion), bool)
    )
    for number, (pair, found) in enumerate(zip(pairs, findings, strict=True)):
        right, wrong = set(), 0
        if pair.cc and pair.mlo:
            cc, mlo = (
                SlowImage(found.views[v].boxes, found.views[v].scores, pair.views[v].boxes)
                for v in pair.views
            )
            for link in (link for link in found.links if link.score >= 0.5):
                on_cc = None if link.cc is None else cc.lies_on(link.cc, Fraction(1, 5))
                on_mlo = None if link.mlo is None else mlo.lies_on(link.mlo, Fraction(1, 5))
                id_cc = None if on_cc is None else pair.cc.lesion_ids[on_cc]
                id_mlo = None if on_mlo is None else pair.mlo.lesion_ids[on_mlo]
                if link.cc is None:
                    is_right = id_mlo is not None and id_mlo not in pair.cc.lesion_ids
                elif link.mlo is None:
                    is_right = id_cc is not None and id_cc not in pair.mlo.lesion_ids
                else:
                    is_right = id_cc is not None and id_cc == id_mlo
                if is_right:
                    right.add(id_cc or id_mlo)
                else:
                    wrong += 1
        assert (counts.right[number], counts.wrong[number]) == (len(right), wrong), pair.pair_id
    assert counts.right.sum() > 10


def test_precision_recall_and_f1_by_hand():
    """3 right and 1 wrong links, 6 lesions: precision 3/4, recall 1/2, F1 3/5."""
    counts = [np.array(column) for column in ([2, 1], [1, 0], [4, 2], [2, 0], [1, 0])]
    found = link_statistics(LinkCounts(*counts), np.array([0, 1]), np.array([[1.0, 1], [0, 1]]))
    assert {name: values[0] for name, values in found.items()} == pytest.approx(
        {"precision": 0.75, "recall": 0.5, "f1": 0.6, "accuracy": 0.5}
    )
    assert found["precision"][1] == 1
    assert np.isnan(found["accuracy"][1])
