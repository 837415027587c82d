"""The reference of deformable attention against a slow, plain computation, and its gradients."""

import math

import torch

from clnet.ops.reference import reference_attention

SHAPES = [(3, 4), (2, 2)]


def bilinear(level: torch.Tensor, x: float, y: float) -> torch.Tensor:
    """The value of a map [rows, columns, C] at (x, y); (0, 0) is the first cell, and cells are 0 outside."""
    rows, columns, _ = level.shape
    column, row = x, y
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
    sizes = torch.tensor([(columns, rows) for rows, columns in SHAPES])
    centres = random(batch, queries, len(SHAPES), 2) * sizes - 0.5
    offsets = random(batch, queries, heads, len(SHAPES), points, 2) * 2 - 1  # some outside
    weights = random(batch, queries, heads, len(SHAPES) * points).softmax(-1)
    return value, centres, offsets, weights.view(batch, queries, heads, len(SHAPES), points)


def test_the_reference_sums_interpolated_values_by_weight():
    value, centres, offsets, weights = random_inputs()
    found = reference_attention(value, SHAPES, centres, offsets, weights)
    for b in range(2):
        for q in range(3):
            for h in range(2):
                expected, start = torch.zeros(2, dtype=torch.float64), 0
                for level, (rows, columns) in enumerate(SHAPES):
                    cells = value[b, start : start + rows * columns, h].view(rows, columns, 2)
                    start += rows * columns
                    for p in range(2):
                        x, y = (centres[b, q, level] + offsets[b, q, h, level, p]).tolist()
                        expected += weights[b, q, h, level, p] * bilinear(cells, x, y)
                torch.testing.assert_close(found[b, q, 2 * h : 2 * h + 2], expected)


def test_its_gradients_are_right():
    inputs = [tensor.requires_grad_() for tensor in random_inputs()]
    assert torch.autograd.gradcheck(lambda value, *rest: reference_attention(value, SHAPES, *rest), inputs)
