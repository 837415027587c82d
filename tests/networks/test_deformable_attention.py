"""The core of deformable attention against a slow, plain computation, and its gradients."""

import math

import pytest
import torch

from clnet.networks.deformable_attention import DeformableAttention, deformable_attention
from clnet.networks.positions import sine_positions

SHAPES = [(3, 4), (2, 2)]


def bilinear(level: torch.Tensor, x: float, y: float) -> torch.Tensor:
    """The value of a map [rows, columns, C] at (x, y) in [0, 1]²; cells are 0 outside."""
    rows, columns, _ = level.shape
    column, row = x * columns - 0.5, y * rows - 0.5
    total = torch.zeros_like(level[0, 0])
    for r in (math.floor(row), math.floor(row) + 1):
        for c in (math.floor(column), math.floor(column) + 1):
            if 0 <= r < rows and 0 <= c < columns:
                total = total + level[r, c] * (1 - abs(row - r)) * (1 - abs(column - c))
    return total


def random_inputs(batch=2, queries=3, heads=2, channels=2, points=2):
    generator = torch.Generator().manual_seed(1)
    cells = sum(rows * columns for rows, columns in SHAPES)

    def random(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    value = random(batch, cells, heads, channels)
    locations = random(batch, queries, heads, len(SHAPES), points, 2) * 1.4 - 0.2  # some outside
    weights = random(batch, queries, heads, len(SHAPES) * points).softmax(-1)
    return value, locations, weights.view(batch, queries, heads, len(SHAPES), points)


def test_the_core_sums_interpolated_values_by_weight():
    value, locations, weights = random_inputs()
    found = deformable_attention(value, SHAPES, locations, weights)
    for b in range(2):
        for q in range(3):
            for h in range(2):
                expected, start = torch.zeros(2, dtype=torch.float64), 0
                for level, (rows, columns) in enumerate(SHAPES):
                    cells = value[b, start : start + rows * columns, h].view(rows, columns, 2)
                    start += rows * columns
                    for p in range(2):
                        x, y = locations[b, q, h, level, p].tolist()
                        expected += weights[b, q, h, level, p] * bilinear(cells, x, y)
                torch.testing.assert_close(found[b, q, 2 * h : 2 * h + 2], expected)


def test_gradients_of_the_core_are_right():
    value, locations, weights = (tensor.requires_grad_() for tensor in random_inputs())
    assert torch.autograd.gradcheck(
        lambda v, at, w: deformable_attention(v, SHAPES, at, w), (value, locations, weights)
    )


def test_heads_begin_by_looking_in_directions_of_their_own_a_step_further_each_point():
    attention = DeformableAttention(width=32, heads=4, levels=2, points=3)
    offsets = attention.sampling_offsets(torch.rand(32)).view(4, 2, 3, 2)
    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    for point in range(3):
        for level in range(2):
            torch.testing.assert_close(offsets[:, level, point], directions * (point + 1), atol=1e-6, rtol=0)


@torch.no_grad()
def test_padding_is_not_seen_whatever_it_holds():
    torch.manual_seed(0)
    attention = DeformableAttention(width=32, heads=4, levels=2, points=3)
    torch.nn.init.normal_(attention.value_projection.bias)
    query, references = torch.rand(1, 5, 32), torch.rand(1, 5, 2, 2)
    tokens, padding = torch.rand(1, 16, 32), torch.rand(1, 16) < 0.4
    other = torch.where(padding[..., None], torch.rand(1, 16, 32) * 100, tokens)
    once, again = (attention(query, references, t, SHAPES, padding) for t in (tokens, other))
    assert torch.equal(once, again)
    assert not torch.allclose(once, attention(query, references, tokens, SHAPES))


def test_positions_are_sines_and_cosines_of_y_then_x():
    x, y, width = 0.3, 0.8, 8
    expected = []
    for place in (y, x):
        for pair in range(width // 4):
            angle = 2 * math.pi * place / 10000 ** (2 * pair / (width / 2))
            expected += [math.sin(angle), math.cos(angle)]
    assert sine_positions(torch.tensor([x, y]), width).tolist() == pytest.approx(expected, abs=1e-6)
