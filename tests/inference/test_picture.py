"""The picture of findings shows each lesion in its colour, linked, and the truth in white."""

import numpy as np
from PIL import ImageColor

from clnet.data.pictures import COLOURS
from clnet.inference.findings import Detections, Link, PairFindings
from clnet.inference.picture import findings_picture

BLACK = {"cc": np.zeros((200, 100), np.float32), "mlo": np.zeros((200, 100), np.float32)}
LINKED = PairFindings(
    "p", Detections([[20, 40, 60, 80]], [0.9]), Detections([[30, 50, 70, 90]], [0.8]), (Link(0, 0, 0.9),)
)


def columns_of(picture, colour):
    """Which columns of the picture hold a colour."""
    pixels = np.asarray(picture)
    return np.flatnonzero((pixels == ImageColor.getrgb(colour)).all(-1).any(0))


def test_a_linked_lesion_is_drawn_from_view_to_view():
    columns = columns_of(findings_picture(BLACK, LINKED, "", 0.5, height=200), COLOURS[0])
    # CC from 0 to 100, then a gap of 10 and MLO: box edges at 20 and 60, at 140 and 180, the link between.
    assert columns.min() == 20
    assert columns.max() >= 180
    assert np.diff(columns[(columns >= 60) & (columns <= 140)]).max() < 20


def test_without_a_link_nothing_is_drawn_between_the_views():
    apart = PairFindings("p", LINKED.cc, LINKED.mlo)
    picture = findings_picture(BLACK, apart, "", 0.5, height=200)
    assert columns_of(picture, COLOURS[0]).max() < 110
    assert columns_of(picture, COLOURS[1]).min() >= 140


def test_what_was_marked_is_white_and_what_is_unsure_is_left_out():
    picture = findings_picture(BLACK, LINKED, "", 0.95, truth={"cc": [[10, 10, 90, 90]]}, height=200)
    assert len(columns_of(picture, COLOURS[0])) == 0
    assert (columns_of(picture, "#ffffff").min(), columns_of(picture, "#ffffff").max()) == (10, 90)


def test_a_missing_view_is_said_to_be_missing():
    alone = PairFindings("p", cc=LINKED.cc)
    picture = findings_picture({"cc": BLACK["cc"], "mlo": None}, alone, "", 0.5, height=200)
    assert picture.width == 100 + 10 + 100
