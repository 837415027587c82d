"""Boxes where 3D Slicer shows them, by hand."""

import torch

from clnet.reports.slicer import slicer_boxes


def test_a_box_is_placed_by_pixel_centres_with_x_along_columns():
    # Columns 2 to 5 and rows 10 to 19, whose centres are at 2…5 and 10…19 times the spacing.
    boxes = torch.tensor([[2.0, 10.0, 6.0, 20.0]])
    expected = [3.5 * 0.5, 14.5 * 0.25, 0.0, 4 * 0.5, 10 * 0.25, 1.0]
    assert slicer_boxes(boxes, (0.25, 0.5)).tolist() == [expected]


def test_without_a_spacing_a_pixel_is_a_millimetre():
    assert slicer_boxes(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), None).tolist() == [[0, 0, 0, 1, 1, 1]]


def test_no_boxes_are_no_boxes():
    assert slicer_boxes(torch.zeros(0, 4), (1.0, 1.0)).shape == (0, 6)
