"""Each kind of error in a breast that shows it."""

from pathlib import Path

import pytest

from clnet.data.pair import Pair, View
from clnet.evaluation.cohort import build_cohort
from clnet.evaluation.error_types import ERROR_TYPES, Error, find_errors
from clnet.evaluation.hits import find_hits, find_overlaps
from clnet.findings.types import Detections, Findings, Link, PairFindings

A, B, NOTHING = (0, 0, 10, 10), (50, 50, 60, 60), (90, 90, 95, 95)
NEAR_A = (0, 0, 3, 10)  # IoU 0.3
SOUGHT = {"cc": {"1": A}, "mlo": {"1": A}}


def errors(lesions, cc, mlo, links=(), cutoffs=0.3):
    """`lesions` is {view: {id: box}}, `cc` and `mlo` are [(box, score), …]."""
    views = {name: View(Path(name), list(boxes.values()), tuple(boxes)) for name, boxes in lesions.items()}
    detections = [Detections([box for box, _ in view], [score for _, score in view]) for view in (cc, mlo)]
    findings = Findings("m", (PairFindings("p", *detections, tuple(links)),))
    cohort = build_cohort([Pair("p", "patient", "L", **views)], findings)
    hits = find_hits(find_overlaps(cohort.results), 0.5)
    return find_errors(cohort, hits, 0.5, cutoffs, 0.5)


CASES = [
    (SOUGHT, [(A, 0.9)], [(A, 0.8)], [Link(0, 0, 0.9)], []),
    (
        {"cc": {}, "mlo": {"1": A}},
        [(B, 0.9)],
        [(A, 0.8)],
        [Link(0, 0, 0.9)],
        [Error("false_positive_linked_to_lesion", "p", "cc", 0, 0, score=0.9)],
    ),
    (SOUGHT, [], [(A, 0.8)], [Link(None, 0, 0.9)], [Error("found_in_one_view", "p", "cc", None, 0, "1")]),
    (SOUGHT, [(A, 0.9)], [], [], [Error("found_in_one_view", "p", "mlo", 0, None, "1")]),
    (SOUGHT, [(A, 0.2)], [(A, 0.3)], [], [Error("missed_in_both_views", "p", lesion_id="1")]),
    (
        {"cc": {}, "mlo": {"1": A}},
        [],
        [],
        [],
        [Error("missed_in_its_only_view", "p", "mlo", lesion_id="1")],
    ),
    (
        {"cc": {}, "mlo": {}},
        [(A, 0.9)],
        [(B, 0.2), (B, 0.8)],
        [Link(0, 0, 0.9)],
        [
            Error("false_pair", "p", "cc", 0, 0, score=0.9),
            Error("lone_false_positive", "p", "mlo", None, 1, score=0.8),
        ],
    ),
    (
        SOUGHT,
        [(A, 0.9), (A, 0.8)],
        [(A, 0.9)],
        [Link(0, 0, 0.9)],
        [Error("duplicate", "p", "cc", 1, score=0.8)],
    ),
    (
        {"cc": {"1": A}, "mlo": {}},
        [(NEAR_A, 0.9), (A, 0.8)],
        [],
        [],
        [Error("poor_localisation", "p", "cc", 0, score=0.9)],
    ),
    (
        {"cc": {"1": A, "2": B}, "mlo": {"1": A, "2": B}},
        [(A, 0.9), (B, 0.9)],
        [(A, 0.9), (B, 0.9)],
        [Link(0, 1, 0.7), Link(1, 1, 0.9)],
        [
            Error("crossed_link", "p", cc=0, mlo=1, score=0.7),
            Error("missing_link", "p", None, 0, 0, "1"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("lesions", "cc", "mlo", "links", "expected"),
    CASES,
    ids=[
        "all right",
        "false positive linked to a lesion",
        "found in mlo only",
        "found in cc only",
        "missed in both: below and at the cutoff score",
        "missed in its only view",
        "false pair, and a false positive beside it",
        "duplicate",
        "poor localisation",
        "crossed and missing link",
    ],
)
def test_each_kind(lesions, cc, mlo, links, expected):
    assert errors(lesions, cc, mlo, links) == expected


def test_where_no_link_is_named_none_is_missing():
    assert errors(SOUGHT, [(A, 0.9)], [(A, 0.9)]) == []
    (unsure,) = errors(SOUGHT, [(A, 0.9)], [(A, 0.9)], [Link(0, 0, 0.1)])
    assert unsure.type == "missing_link"


def test_the_surest_link_tells_the_partner():
    found = errors(
        {"cc": {}, "mlo": {"1": A}},
        [(NOTHING, 0.9)],
        [(A, 0.8), (B, 0.1)],
        [Link(0, 1, 0.6), Link(0, 0, 0.8), Link(0, None, 0.95)],
    )
    assert [(error.type, error.mlo) for error in found] == [("false_positive_linked_to_lesion", 0)]


def test_the_cases_show_every_kind():
    assert {error.type for *_, expected in CASES for error in expected} == set(ERROR_TYPES)
