"""Geometry between views: its formula, its symmetries, and what attention makes of it."""

import math

import numpy as np
import pytest
import torch

from clnet.networks import CommonFrame, NetworkSettingError
from clnet.networks.geometry import Content, GeometricInterAttention, ViewGeometry, find_content

WIDTH, HEADS, N = 32, 4, 5
STRAIGHT = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
"""The matrix by which depth is x from the left edge of the content, and row y from its middle."""
SPREADS = [0.1, 0.2, 0.4]
FRAME = CommonFrame(STRAIGHT, STRAIGHT, SPREADS)
WHOLE = Content(torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(2, 4), 2.0)


def boxes(breasts=2, n=N):
    return torch.cat([torch.rand(2 * breasts, n, 2), torch.rand(2 * breasts, n, 2) * 0.3 + 0.02], dim=-1)


def content(breasts=2, aspect=2.0):
    start, size = torch.rand(2 * breasts, 2) * 0.2, torch.rand(2 * breasts, 2) * 0.6 + 0.2
    return Content(torch.cat([start, start + size], dim=-1), aspect)


def geometry(heads=HEADS):
    """With random matrices."""
    return ViewGeometry(heads, CommonFrame(*torch.randn(2, 2, 4).tolist(), SPREADS))


def place_by_hand(matrix, box, extents, aspect):
    x, y, _, _ = box
    left, top, right, bottom = extents
    known = [x - left, (y - (top + bottom) / 2) * aspect, right - left, 1]
    return [sum(factor * value for factor, value in zip(row, known, strict=True)) for row in matrix]


@torch.no_grad()
def test_boxes_are_compared_by_the_formula():
    torch.manual_seed(0)
    compare, seen, where = geometry(), boxes(), content()
    with torch.no_grad():
        compare.strengths.copy_(torch.randn(HEADS, 3))
    found, places = compare(seen, where), compare.places(seen, where)
    assert found.shape == (4, HEADS, N, N)
    strengths = np.log1p(np.exp(compare.strengths.numpy()))  # softplus
    b, c, matrices = seen.double().numpy(), where.extents.double().numpy(), compare.matrices.double().numpy()
    place = [
        [place_by_hand(matrices[image % 2], box, c[image], where.aspect) for box in b[image]]
        for image in range(4)
    ]
    np.testing.assert_allclose(places, place, atol=1e-5)
    for image, partner in ((0, 1), (1, 0), (2, 3), (3, 2)):
        for head, (depth_strength, row_strength, area_strength) in enumerate(strengths):
            for i in range(N):
                for j in range(N):
                    (depth, row), (other_depth, other_row) = place[image][i], place[partner][j]
                    areas = np.prod(b[image, i, 2:]), np.prod(b[partner, j, 2:])
                    g = depth_strength * ((depth - other_depth) / 0.1) ** 2
                    g += row_strength * ((row - other_row) / 0.2) ** 2
                    g += area_strength * (np.log(areas[0] / areas[1]) / 0.4) ** 2
                    assert found[image, head, i, j].item() == pytest.approx(-g, rel=1e-4, abs=1e-4)


@torch.no_grad()
def test_what_cc_says_of_mlo_mlo_says_of_cc():
    torch.manual_seed(0)
    found = geometry()(boxes(), content())
    torch.testing.assert_close(found[0::2], found[1::2].transpose(-1, -2))


@torch.no_grad()
def test_nothing_speaks_against_a_mass_of_equal_place_and_size_and_each_spread_apart_as_much():
    compare = ViewGeometry(1, FRAME)
    mass = torch.tensor([0.4, 0.3, 0.1, 0.2])
    same = torch.tensor([0.4, 0.3, 0.2, 0.1])  # as large, of another form
    assert compare(torch.stack([mass[None], same[None]]), WHOLE).abs().max() < 1e-6
    # One spread each: deeper by 0.1, lower by 0.2 widths of a canvas twice as high, e^0.4 times as large.
    # Each adds its strength, which begins at 0.5 for one head.
    deeper = torch.tensor([0.5, 0.3, 0.1, 0.2])
    lower = torch.tensor([0.4, 0.4, 0.1, 0.2])
    larger = torch.tensor([0.4, 0.3, 0.1, 0.2 * math.exp(0.4)])
    for other in (deeper, lower, larger):
        found = compare(torch.stack([mass[None], other[None]]), WHOLE)
        assert found.flatten().tolist() == pytest.approx([-0.5, -0.5], abs=1e-4)


@torch.no_grad()
def test_in_a_straight_frame_both_images_may_be_turned_upside_down_and_one_may_not():
    torch.manual_seed(0)
    compare, seen = ViewGeometry(HEADS, FRAME), boxes()
    images = torch.zeros(4, 1, 40, 20)
    for image, (top, left, bottom, right) in enumerate(
        [(2, 0, 30, 15), (5, 1, 40, 9), (0, 3, 8, 20), (9, 2, 21, 4)]
    ):
        images[image, :, top:bottom, left:right] = 1.0
    turned, turned_boxes = images.clone(), seen.clone()
    expected = compare(seen, find_content(images))
    turned[1] = images[1].flip(-2)
    turned_boxes[1, :, 1] = 1 - seen[1, :, 1]
    one = compare(turned_boxes, find_content(turned))
    turned[0] = images[0].flip(-2)
    turned_boxes[0, :, 1] = 1 - seen[0, :, 1]
    both = compare(turned_boxes, find_content(turned))
    torch.testing.assert_close(both, expected, atol=1e-3, rtol=1e-4)
    assert (one - expected).abs().max() > 0.1


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (([[1, 0, 0]] * 2, STRAIGHT, SPREADS), "frame: cc is .* two rows of four numbers"),
        ((STRAIGHT, STRAIGHT[:1], SPREADS), "frame: mlo is .* two rows of four numbers"),
        ((STRAIGHT, STRAIGHT, [0.1, 0.2]), "frame: spreads are .* three numbers above 0"),
        ((STRAIGHT, STRAIGHT, [0.1, 0.0, 0.2]), "frame: spreads are .* three numbers above 0"),
    ],
)
def test_a_frame_that_is_none_is_refused(frame, message):
    with pytest.raises(NetworkSettingError, match=message):
        CommonFrame(*frame)


def test_content_is_found_where_pixels_are_not_0():
    random = np.random.default_rng(0)
    images = (random.random((12, 1, 24, 16)) < 0.01) * random.random((12, 1, 24, 16))
    images[-1] = 0
    found = find_content(torch.from_numpy(images.astype(np.float32)))
    assert found.aspect == 1.5
    blank = 0
    for image, extents in zip(images[:, 0], found.extents.tolist(), strict=True):
        rows, columns = np.nonzero(image)
        if not len(rows):
            blank += 1
            assert extents == [0, 0, 1, 1], "the whole canvas"
            continue
        expected = [columns.min() / 16, rows.min() / 24, (columns.max() + 1) / 16, (rows.max() + 1) / 24]
        assert extents == pytest.approx(expected)
    assert 1 <= blank < 6


def attending(strength):
    """Inter-attention by straight places, with one strength of geometry for all heads; and random queries."""
    torch.manual_seed(0)
    layer = GeometricInterAttention(WIDTH, HEADS, 0.1, FRAME).eval()
    with torch.no_grad():
        layer.geometry.strengths.fill_(strength)
    return layer, torch.randn(2, 3, WIDTH), torch.randn(2, 3, WIDTH)


def at_depths(cc, mlo):
    """Boxes of one size."""
    placed = torch.full((2, 3, 4), 0.2)
    placed[0, :, 0], placed[1, :, 0] = torch.tensor(cc), torch.tensor(mlo)
    return placed


@torch.no_grad()
def test_inter_attention_follows_its_equation_head_by_head():
    layer, query, position = attending(0.1)
    placed = at_depths([0.1, 0.4, 0.8], [0.3, 0.35, 0.5])
    found = layer(query, position, placed, WHOLE)
    against = -layer.geometry(placed, WHOLE)  # g [2, heads, 3, 3]
    part, size = layer.attention.attention, WIDTH // HEADS
    for view, partner in ((0, 1), (1, 0)):
        source = torch.cat([query[partner], layer.nothing[None]])
        key = torch.cat([query[partner] + position[partner], layer.nothing[None]])
        q, k, v = part.query(query[view] + position[view]), part.key(key), part.value(source)
        heads = []
        for head in range(HEADS):
            channels = slice(head * size, (head + 1) * size)
            logits = q[:, channels] @ k[:, channels].T / size**0.5
            logits[:, :3] -= against[view, head]
            heads.append(logits.softmax(-1) @ v[:, channels])
        expected = layer.attention.residual.norm(query[view] + part.output(torch.cat(heads, dim=-1)))
        torch.testing.assert_close(found[view], expected, atol=1e-5, rtol=0)


@torch.no_grad()
def test_by_strong_geometry_a_query_reads_the_one_at_its_depth_as_if_there_were_no_other():
    layer, query, position = attending(200.0)
    found = layer(query, position, at_depths([0.1, 0.4, 0.8], [0.8, 0.1, 0.4]), WHOLE)
    for view, partners in ((0, [1, 2, 0]), (1, [2, 0, 1])):
        read, at = query[1 - view, partners], position[1 - view, partners]
        source = torch.stack([read, layer.nothing.expand_as(read)], dim=1)  # [3 queries, 2, D]
        source_position = torch.stack([at, torch.zeros_like(at)], dim=1)
        expected, _ = layer.attention(query[view, :, None], source, position[view, :, None], source_position)
        torch.testing.assert_close(found[view], expected[:, 0], atol=1e-5, rtol=0)


@torch.no_grad()
def test_where_all_partners_are_far_a_query_reads_that_nothing_is_there():
    layer, query, position = attending(200.0)
    found = layer(query, position, at_depths([0.2, 0.2, 0.2], [0.9, 0.9, 0.9]), WHOLE)
    attention = layer.attention.attention
    expected = layer.attention.residual.norm(query + attention.output(attention.value(layer.nothing)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
