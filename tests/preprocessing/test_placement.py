import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clnet.errors import ClnetError
from clnet.preprocessing.placement import Placement

# What preprocessing and augmentation can do: from 8-fold enlargement to 5000 pixels on 96, mirrored or not.
scales = st.floats(1 / 52, 8).flatmap(lambda scale: st.sampled_from([scale, -scale]))
shifts = st.floats(-5000, 5000)
placements = st.builds(Placement, scales, shifts, scales, shifts)


@st.composite
def boxes(draw):
    """Boxes inside a 5000-pixel image."""
    edges = st.tuples(st.floats(0, 4999, width=32), st.floats(0.5, 5000, width=32))
    corners = draw(st.lists(st.tuples(edges, edges), min_size=0, max_size=5))
    return np.array([[min(x), min(y), max(x), max(y)] for x, y in corners], dtype=np.float32).reshape(-1, 4)


def model_shift(placement, extent=5000):
    """The same placement, shifted so that the image begins at 0 as on a canvas."""
    begin = placement.apply(np.array([[0.0, 0.0, extent, extent]]))[0]
    return placement.then(Placement(x_shift=-begin[0], y_shift=-begin[1]))


@given(placements, boxes())
def test_a_float32_box_comes_back_within_a_thousandth_of_a_pixel(placement, original):
    placement = model_shift(placement)
    for given_boxes in (original, torch.from_numpy(original)):
        back = placement.invert(placement.apply(given_boxes))
        assert type(back) is type(given_boxes)
        assert back.dtype == given_boxes.dtype
        np.testing.assert_allclose(np.asarray(back), original, rtol=0, atol=1e-3)


@given(placements, boxes())
def test_a_float32_box_is_mapped_in_float64_and_rounded_once(placement, original):
    expected = placement.apply(original.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(placement.apply(original), expected)
    np.testing.assert_array_equal(placement.apply(torch.from_numpy(original)).numpy(), expected)


@given(placements, boxes())
def test_edges_stay_in_order_even_when_mirrored(placement, original):
    mapped = placement.apply(original.astype(np.float64))
    assert (mapped[:, :2] <= mapped[:, 2:]).all()


@given(placements, placements, boxes())
def test_a_chain_is_one_placement(first, second, original):
    original = original.astype(np.float64)
    np.testing.assert_allclose(
        first.then(second).apply(original), second.apply(first.apply(original)), rtol=1e-9, atol=1e-6
    )


@given(placements)
def test_it_survives_json_to_the_bit(placement):
    assert Placement.from_dict(json.loads(json.dumps(placement.to_dict()))) == placement


def test_a_crop_a_resize_and_a_mirror_do_what_hands_compute():
    # Crop at (100, 40), halve, mirror in a 300 pixel wide result.
    placement = (
        Placement(x_shift=-100, y_shift=-40)
        .then(Placement(x_scale=0.5, y_scale=0.5))
        .then(Placement(x_scale=-1, x_shift=300))
    )
    mapped = placement.apply(torch.tensor([[100.0, 40.0, 140.0, 60.0]]))
    assert mapped.tolist() == [[280.0, 0.0, 300.0, 10.0]]


def test_no_boxes_stay_no_boxes():
    assert Placement(x_scale=-2.0).apply(torch.zeros(0, 4)).shape == (0, 4)


@pytest.mark.parametrize("numbers", [{"x_scale": 0.0}, {"y_shift": float("nan")}, {"x_shift": float("inf")}])
def test_a_map_without_a_way_back_is_refused(numbers):
    with pytest.raises(ClnetError, match=next(iter(numbers))):
        Placement(**numbers)


def test_a_dictionary_with_other_keys_is_refused():
    with pytest.raises(ClnetError, match="x_shift"):
        Placement.from_dict({"x_scale": 1.0})
