"""The picture of findings shows each lesion in its colour, linked, and the truth in white."""

import numpy as np
from PIL import ImageColor

from clnet.data.pictures import ALARM, COLOURS, PAPER
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, Link, PairFindings
from clnet.reports.picture import findings_picture

BLACK = {"cc": np.zeros((200, 100), np.float32), "mlo": np.zeros((200, 100), np.float32)}
LINKED = PairFindings(
    "p", Detections([[20, 40, 60, 80]], [0.9]), Detections([[30, 50, 70, 90]], [0.8]), (Link(0, 0, 0.9),)
)


def drawn(found, min_score=0.5, images=BLACK, **options):
    return findings_picture(images, merge_into_lesions(found, min_score), "", height=200, **options)


def columns_of(picture, colour):
    """Which columns of the picture hold a colour."""
    pixels = np.asarray(picture)
    return np.flatnonzero((pixels == ImageColor.getrgb(colour)).all(-1).any(0))


def test_a_linked_lesion_is_drawn_from_view_to_view():
    columns = columns_of(drawn(LINKED), COLOURS[0])
    # CC from 0 to 100, then a gap of 10 and MLO: box edges at 20 and 60, at 140 and 180, the link between.
    assert columns.min() == 20
    assert columns.max() >= 180
    assert np.diff(columns[(columns >= 60) & (columns <= 140)]).max() < 20


def test_a_warning_has_a_line_of_its_own_above_the_views():
    plain, warned = drawn(LINKED), drawn(LINKED, warning="of two breasts")
    assert len(columns_of(plain, ALARM)) == 0
    assert len(columns_of(warned, ALARM)) > 0
    added = warned.height - plain.height
    assert added > 0
    top = warned.height - 200  # where the views begin
    np.testing.assert_array_equal(np.asarray(warned)[top:], np.asarray(plain)[top - added :])


def test_without_a_link_nothing_is_drawn_between_the_views():
    apart = PairFindings("p", LINKED.cc, LINKED.mlo)
    picture = drawn(apart)
    assert columns_of(picture, COLOURS[0]).max() < 110
    assert columns_of(picture, COLOURS[1]).min() >= 140


def test_what_was_marked_is_white_and_what_is_unsure_is_left_out():
    picture = drawn(LINKED, 0.95, truth={"cc": [[10, 10, 90, 90]]})
    assert len(columns_of(picture, COLOURS[0])) == 0
    assert (columns_of(picture, "#ffffff").min(), columns_of(picture, "#ffffff").max()) == (10, 90)


def test_a_missing_view_is_said_to_be_missing():
    alone = PairFindings("p", cc=LINKED.cc)
    picture = drawn(alone, images={"cc": BLACK["cc"], "mlo": None})
    assert picture.width == 100 + 10 + 100


def test_a_label_stays_in_its_view_and_off_its_box():
    at_the_chest_wall = Detections([[60, 40, 98, 80]], [0.9])
    picture = drawn(PairFindings("p", at_the_chest_wall, at_the_chest_wall))
    for left in (0, 110):
        view = np.asarray(picture)[-200:, left : left + 100].max(-1)
        box = view[40:81, 60:99].copy()
        box[1:-1, 1:-1] = 0
        assert (view[40:81, 60:99] == box).all()  # its edges, and nothing in it
        assert view[:, 99:].max() == 0
        assert np.flatnonzero(view.max(0) > 60).min() < 40  # the label, left of it
    assert (np.asarray(picture)[-200:, 100:110] == ImageColor.getrgb(PAPER)).all()


def test_a_label_beside_which_there_is_no_room_stands_on_its_box():
    wide = PairFindings("p", None, Detections([[2, 40, 98, 80]], [0.9]))
    picture = drawn(wide, images={"cc": None, "mlo": BLACK["mlo"]})
    inside = np.asarray(picture)[-200:, 110:].max(-1)[42:79, 4:96]
    assert inside.max() > 60  # letters, which would else be cut at the edge of the picture


def test_boxes_are_drawn_at_their_place_in_reduced_images():
    reduced = {name: image[::2, ::2] for name, image in BLACK.items()}
    picture = drawn(LINKED, images=reduced, stored_rows={"cc": 200, "mlo": 200})
    assert (np.asarray(picture) == np.asarray(drawn(LINKED))).all()


def test_a_label_is_not_written_over_another_box():
    alone = PairFindings("p", Detections([[80, 40, 120, 80]], [0.9]))
    wide = {"cc": np.zeros((200, 200), np.float32), "mlo": None}
    for truth, on_the_left in (({}, False), ({"cc": [[122, 40, 190, 80]]}, True)):  # where the label would go
        columns = columns_of(drawn(alone, images=wide, truth=truth, letter=20), COLOURS[0])
        assert (columns.min() < 80) == on_the_left
        assert (columns.max() > 120) == (not on_the_left)


def test_a_label_goes_above_its_box_if_others_are_on_both_sides():
    middle = PairFindings("p", Detections([[80, 60, 120, 100]], [0.9]))
    wide = {"cc": np.zeros((200, 200), np.float32), "mlo": None}
    beside = {"cc": [[10, 60, 78, 100], [122, 60, 190, 100]]}
    found = drawn(middle, images=wide, truth=beside, letter=14)
    view = np.asarray(found)[-200:, :200].astype(int)
    rows = np.flatnonzero((view == ImageColor.getrgb(COLOURS[0])).all(-1).any(1))
    assert 40 <= rows.min() < 59 and rows.max() == 100  # the label, and the lower edge of the box


def test_labels_of_neighbours_do_not_cover_each_other():
    neighbours = Detections([[180, 60, 200, 80], [180, 84, 200, 104]], [0.9, 0.8])
    wide = {"cc": np.zeros((200, 400), np.float32), "mlo": None}
    view = np.asarray(drawn(PairFindings("p", neighbours), images=wide, letter=30))[-200:, :400]
    first, second = (
        np.flatnonzero((view == ImageColor.getrgb(colour)).all(-1).any(0)) for colour in COLOURS[:2]
    )
    assert (first.min(), second.max()) == (180, 200)
    assert first.max() > 280 and second.min() < 120


def test_a_link_does_not_cross_the_label_of_its_box():
    middle = Detections([[80, 90, 120, 110]], [0.9])
    wide = dict.fromkeys(("cc", "mlo"), np.zeros((200, 200), np.float32))
    picture = drawn(PairFindings("p", middle, middle, (Link(0, 0, 0.9),)), images=wide, letter=20)
    coloured = (np.asarray(picture)[-200:] == ImageColor.getrgb(COLOURS[0])).all(-1)
    cc, mlo = coloured[:, :200], coloured[:, 210:]
    assert np.flatnonzero(cc.any(0)).min() < 80  # the label, left of its box, as the link goes right
    assert np.ptp(np.flatnonzero(cc[:, 121:].any(1))) < 4  # the link alone
    assert np.ptp(np.flatnonzero(mlo[:, :79].any(1))) < 4
    assert np.flatnonzero(mlo.any(0)).max() > 130  # the label, right of its box


def test_lines_are_as_wide_as_the_letters_ask_for():
    widths = []
    for letter in (14, 28):
        picture = np.asarray(drawn(LINKED, letter=letter))[-200:, :100]
        left_edge = (picture[70, :40] == ImageColor.getrgb(COLOURS[0])).all(-1)  # below the label
        widths.append(int(left_edge.sum()))
    assert widths == [2, 4]
