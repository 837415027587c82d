from pathlib import Path

import numpy as np
import pytest

from clnet.data.pair import Pair, PairError, View


def view(name="a.dcm", **lesions):
    boxes = list(lesions.values()) or np.zeros((0, 4))
    return View(Path(name), boxes, tuple(key.lstrip("_") for key in lesions), size=(100, 80))


def pair(**given):
    return Pair(**{"pair_id": "p", "patient_id": "q", "laterality": "L", **given})


def test_a_lesion_in_both_views_is_a_link():
    assert pair(cc=view(_1=(1, 2, 9, 9)), mlo=view(_1=(3, 4, 8, 8), _2=(0, 0, 5, 5))).links == {
        "1": "annotated"
    }


def test_a_link_keeps_its_source():
    both = {"cc": view(_1=(1, 2, 9, 9)), "mlo": view(_1=(3, 4, 8, 8))}
    assert pair(**both, links={"1": "geometric"}).links == {"1": "geometric"}


def test_a_pair_may_miss_one_view():
    assert list(pair(mlo=view()).views) == ["mlo"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pair(), "no cc and no mlo"),
        (lambda: pair(cc=view(), laterality="left"), 'laterality is \'left\'; expected "L" or "R"'),
        (lambda: pair(cc=view(), pair_id=""), "pair_id is ''"),
        (lambda: pair(cc=view(), patient_id=7), "patient_id is 7"),
        (
            lambda: pair(cc=view(_1=(1, 2, 9, 9)), mlo=view(), links={"1": "annotated"}),
            "links has lesion '1', which has no box in mlo",
        ),
        (
            lambda: pair(cc=view(_1=(1, 2, 9, 9)), links={"1": "annotated"}),
            "which has no box in mlo",
        ),
        (
            lambda: pair(cc=view(_1=(1, 2, 9, 9)), mlo=view(_1=(1, 2, 9, 9)), links={"1": "guess"}),
            "source 'guess'; expected one of annotated, single_pair, geometric",
        ),
        (lambda: view(_1=(70, 2, 81, 9)), "outside the image of 80 columns and 100 rows"),
        (lambda: view(_1=(1, 95, 9, 101)), "outside the image"),
        (lambda: view(_1=(-1, 2, 9, 9)), "starts outside"),
        (lambda: view(_1=(9, 2, 9, 9)), "x_min < x_max"),
        (lambda: view(_1=(1, 2, float("nan"), 9)), "finite"),
        (lambda: View(Path("a.dcm"), [[1, 2, 3]], ("1",)), r"shape \[1, 3\]"),
        (lambda: View(Path("a.dcm"), [["x", 2, 3, 4]], ("1",)), "four numbers"),
        (lambda: View(Path("a.dcm"), [[1, 2, 3, 10**400]], ("1",)), "four numbers"),
        (lambda: View(Path("a.dcm"), [[1, 2, 3, 4]], ()), "1 boxes but 0 lesion_ids"),
        (
            lambda: View(Path("a.dcm"), pixel_size=(0.07, 0)),
            r"pixel_size is \(0.07, 0\); expected two positive",
        ),
        (lambda: View(Path("a.dcm"), pixel_size=(0.07,)), "expected two positive numbers"),
        (lambda: View(Path("a.dcm"), pixel_size=(0.07, float("inf"))), "expected two positive numbers"),
        (
            lambda: View(Path("a.dcm"), [[1, 2, 3, 4], [5, 6, 7, 8]], ("1", "1")),
            "2 boxes have lesion id '1'",
        ),
    ],
)
def test_invalid_views_and_pairs_are_refused_with_a_clear_message(make, message):
    with pytest.raises(PairError, match=message):
        make()


def test_the_item_for_the_transforms_gives_a_lesion_the_same_number_in_both_views():
    item = pair(
        cc=view("c.dcm", _b=(1, 2, 9, 9), _a=(3, 3, 9, 9)), mlo=view("m.dcm", _b=(3, 4, 8, 8))
    ).to_item()
    assert (item["cc"], item["mlo"]) == ("c.dcm", "m.dcm")
    assert item["cc_lesion_ids"].tolist() == [1, 0]
    assert item["mlo_lesion_ids"].tolist() == [1]
    assert item["cc_boxes"].dtype == np.float32


def test_the_item_of_a_missing_view_is_empty():
    item = pair(cc=view("c.dcm")).to_item()
    assert item["mlo"] is None
    assert item["mlo_boxes"].shape == (0, 4)
    assert item["mlo_lesion_ids"].shape == (0,)
    assert item["mlo_pixel_size"] is None


def test_the_item_has_the_pixel_size_of_each_view():
    item = pair(cc=View(Path("c.png"), pixel_size=(5, 4.5)), mlo=View(Path("m.png"))).to_item()
    assert (item["cc_pixel_size"], item["mlo_pixel_size"]) == ((5.0, 4.5), None)
