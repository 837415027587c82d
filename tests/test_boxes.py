import torch
from hypothesis import given
from hypothesis import strategies as st

from clnet import boxes

corner = st.floats(0, 4000, allow_nan=False, width=32)
side = st.floats(1, 900, allow_nan=False, width=32)


@st.composite
def pixel_boxes(draw):
    x, y = draw(corner), draw(corner)
    return torch.tensor([x, y, x + draw(side), y + draw(side)], dtype=torch.float64)


def test_the_box_of_a_whole_image_is_centred_and_has_size_one():
    whole = torch.tensor([0.0, 0.0, 200.0, 100.0])
    assert boxes.normalise(whole, rows=100, columns=200).tolist() == [0.5, 0.5, 1.0, 1.0]


def test_x_runs_along_the_columns():
    # A strip along the upper edge: all columns, the first 10 of 100 rows.
    strip = torch.tensor([0.0, 0.0, 200.0, 10.0])
    expected = torch.tensor([0.5, 0.05, 1.0, 0.1])
    torch.testing.assert_close(boxes.normalise(strip, rows=100, columns=200), expected)


@given(pixel_boxes())
def test_normalising_and_back_gives_the_same_box(box):
    there_and_back = boxes.denormalise(boxes.normalise(box, 4500, 2900), 4500, 2900)
    torch.testing.assert_close(there_and_back, box, atol=1e-6, rtol=0)


@given(pixel_boxes())
def test_corners_to_centre_and_back_gives_the_same_box(box):
    torch.testing.assert_close(boxes.cxcywh_to_xyxy(boxes.xyxy_to_cxcywh(box)), box, atol=1e-6, rtol=0)


def test_clipping_cuts_at_the_edges_of_the_image():
    box = torch.tensor([[-5.0, 10.0, 250.0, 130.0]])
    assert boxes.clip_to_image(box, rows=100, columns=200).tolist() == [[0.0, 10.0, 200.0, 100.0]]


def test_overlap_is_intersection_over_union():
    a = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
    b = torch.tensor([[5.0, 0.0, 15.0, 10.0]])
    # 50 shared of 150 covered; the hull is those 150, so the generalised overlap is the same.
    torch.testing.assert_close(boxes.box_iou(a, b), torch.tensor([[1 / 3]]))
    torch.testing.assert_close(boxes.box_giou(a, b), torch.tensor([[1 / 3]]))
