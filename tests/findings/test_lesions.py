"""Detections and links become lesions."""

import numpy as np

from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, Link, PairFindings


def detections(*scores):
    """Detections that lie apart, each in a row of its own."""
    rows = 20 * np.arange(len(scores))
    zero = np.zeros_like(rows)
    return Detections(np.stack([zero, rows, zero + 10, rows + 10], 1), np.array(scores))


def pair(cc, mlo, *links):
    return PairFindings("p", detections(*cc), detections(*mlo), links)


def told(lesions):
    """Of each lesion the indices of its detections, its score and that of its link."""
    return [(*(seen and seen.index for seen in (x.cc, x.mlo)), x.score, x.link_score) for x in lesions]


def test_linked_detections_are_one_lesion_with_the_higher_score():
    found = merge_into_lesions(pair([0.7], [0.9], Link(0, 0, 0.8)), 0.5)
    assert told(found) == [(0, 0, 0.9, 0.8)]
    assert found[0].is_linked
    assert found[0].mlo.box == (0, 0, 10, 10)


def test_a_strong_partner_vouches_for_a_weak_detection():
    assert told(merge_into_lesions(pair([0.7], [0.1], Link(0, 0, 0.8)), 0.5)) == [(0, 0, 0.7, 0.8)]
    assert merge_into_lesions(pair([0.4], [0.1], Link(0, 0, 0.8)), 0.5) == []


def test_detections_without_a_link_stand_alone():
    found = merge_into_lesions(pair([0.7, 0.2], [0.6]), 0.5)
    assert told(found) == [(0, None, 0.7, None), (None, 0, 0.6, None)]
    assert not found[0].is_linked


def test_a_link_to_the_dustbin_says_how_sure_it_is_that_the_other_view_shows_nothing():
    found = merge_into_lesions(pair([0.7], [0.6], Link(0, None, 0.9), Link(None, 0, 0.3)), 0.5)
    assert told(found) == [(0, None, 0.7, 0.9), (None, 0, 0.6, None)]


def test_a_detection_joins_one_lesion_only_that_of_its_surest_link():
    links = Link(0, 0, 0.6), Link(0, 1, 0.9), Link(1, 1, 0.8)
    assert told(merge_into_lesions(pair([0.9, 0.8], [0.7, 0.6], *links), 0.5)) == [
        (0, 1, 0.9, 0.9),
        (1, None, 0.8, None),
        (None, 0, 0.7, None),
    ]


def test_a_detection_that_is_surely_alone_is_not_taken_by_a_weaker_link():
    links = Link(0, None, 0.9), Link(0, 0, 0.6)
    assert told(merge_into_lesions(pair([0.7], [0.6], *links), 0.5)) == [
        (0, None, 0.7, 0.9),
        (None, 0, 0.6, None),
    ]
    weaker = Link(0, None, 0.6), Link(0, 0, 0.9)
    assert told(merge_into_lesions(pair([0.7], [0.6], *weaker), 0.5)) == [(0, 0, 0.7, 0.9)]


def test_an_unsure_link_is_none():
    assert len(merge_into_lesions(pair([0.9], [0.8], Link(0, 0, 0.4)), 0.5)) == 2
    assert len(merge_into_lesions(pair([0.9], [0.8], Link(0, 0, 0.4)), 0.5, min_link_score=0.3)) == 1


def test_a_missing_view_has_no_lesions():
    alone = PairFindings("p", cc=detections(0.9), links=(Link(0, None, 0.7),))
    assert told(merge_into_lesions(alone, 0.5)) == [(0, None, 0.9, 0.7)]


def test_a_detection_that_repeats_a_surer_one_is_that_one():
    cc = Detections([[0, 0, 10, 10], [0, 1, 10, 11], [0, 6, 10, 16]], [0.6, 0.9, 0.5])
    found = merge_into_lesions(PairFindings("p", cc, detections(0.7), (Link(0, 0, 0.8),)), 0.4)
    # The first (IoU 9/11) is the second; the third overlaps the second by a third only.
    assert told(found) == [(1, 0, 0.9, 0.8), (2, None, 0.5, None)]
