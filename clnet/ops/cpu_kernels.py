"""Deformable attention's inner loops, compiled by numba: sampling and weighting in one pass.

Importing this module needs numba. All arrays are flat, in the layout of `deformable_attention`'s arguments.
Places count in cells: 0 is the centre of the first one.
"""
# mypy: ignore-errors
# What numba compiles has numba's types.

from typing import Any, NamedTuple

import numpy as np
from numba import njit

# Sums may be reordered and fused. Not a number must stay what it is: comparisons with it are relied upon.
OPTIONS = {"nogil": True, "fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}
inlined = njit(forceinline=True, **OPTIONS)


class Kernels(NamedTuple):
    """Both take, beside arrays, sizes and a range to work on.

    Inputs are (value, shapes, centres, offsets, weights), sizes (heads, channels, points, cells, queries).
    """

    forward: Any
    """(inputs, out, sizes, first, last): writes rows of out from first to last, each a query of an image."""
    backward: Any
    """(inputs, grad, (grad_value, grad_offsets, grad_weights), sizes, first, last): for heads from first to
    last, counted through all images, adds to grad_value and writes the others. A head's sums run in the order
    of queries, whichever other heads are computed along with it."""


@inlined
def inside(x: Any, y: Any, rows: Any, columns: Any) -> Any:
    """Whether any cell is nearer than 1 to the place; false if it is not a number."""
    return x >= -1 and y >= -1 and x < type(x)(columns) and y < type(y)(rows)


@inlined
def neighbours(place: Any, size: Any) -> Any:
    """The two cells around a place in [-1, size), the part that each contributes, and the parts' slopes.

    A cell outside the map contributes nothing: it is replaced by the one inside, its part and slope are 0.
    """
    low = np.intp(place) if place >= 0 else -1
    part = place - type(place)(low)
    zero, one = type(place)(0), type(place)(1)
    low_exists, high_exists = low >= 0, low + 1 < size
    return (
        low if low_exists else 0,
        low + 1 if high_exists else low,
        one - part if low_exists else zero,
        part if high_exists else zero,
        -one if low_exists else zero,
        one if high_exists else zero,
    )


@inlined
def read(total: Any, weight: Any, value: Any, x: Any, y: Any, level: Any) -> None:
    """Add the weighted value at a place of a level, (rows, columns, start, stride) in value, to the total."""
    rows, columns, start, stride = level
    left, right, left_part, right_part, _, _ = neighbours(x, columns)
    top, bottom, top_part, bottom_part, _, _ = neighbours(y, rows)
    upper, lower = start + top * columns * stride, start + bottom * columns * stride
    top_part *= weight
    bottom_part *= weight
    add_four(
        total,
        (top_part * left_part, top_part * right_part, bottom_part * left_part, bottom_part * right_part),
        value[upper + left * stride :],
        value[upper + right * stride :],
        value[lower + left * stride :],
        value[lower + right * stride :],
    )


@inlined
def add_four(total: Any, scales: Any, first: Any, second: Any, third: Any, fourth: Any) -> None:
    """Add four vectors, each with its scale, to the total."""
    a, b, c, d = scales
    for channel in range(total.size):
        total[channel] += a * first[channel] + b * second[channel] + c * third[channel] + d * fourth[channel]


@inlined
def dot(left: Any, right: Any) -> Any:
    """The sum of products."""
    total = left.dtype.type(0)
    for channel in range(left.size):
        total += left[channel] * right[channel]
    return total


@inlined
def add_scaled(total: Any, scale: Any, vector: Any) -> None:
    """Add the scaled vector to the total."""
    for channel in range(vector.size):
        total[channel] += scale * vector[channel]


@inlined
def read_backward(grad: Any, weight: Any, value: Any, grad_value: Any, x: Any, y: Any, level: Any) -> Any:
    """The gradients of x, y and weight, given the total's; adds to the value's."""
    rows, columns, start, stride = level
    left, right, left_part, right_part, left_slope, right_slope = neighbours(x, columns)
    top, bottom, top_part, bottom_part, top_slope, bottom_slope = neighbours(y, rows)
    upper, lower = start + top * columns * stride, start + bottom * columns * stride
    upper_left, upper_right = upper + left * stride, upper + right * stride
    lower_left, lower_right = lower + left * stride, lower + right * stride

    at_upper_left = dot(grad, value[upper_left:])
    at_upper_right = dot(grad, value[upper_right:])
    at_lower_left = dot(grad, value[lower_left:])
    at_lower_right = dot(grad, value[lower_right:])
    above = left_part * at_upper_left + right_part * at_upper_right
    below = left_part * at_lower_left + right_part * at_lower_right
    along = top_part * (left_slope * at_upper_left + right_slope * at_upper_right)
    along += bottom_part * (left_slope * at_lower_left + right_slope * at_lower_right)

    add_scaled(grad_value[upper_left:], weight * top_part * left_part, grad)
    add_scaled(grad_value[upper_right:], weight * top_part * right_part, grad)
    add_scaled(grad_value[lower_left:], weight * bottom_part * left_part, grad)
    add_scaled(grad_value[lower_right:], weight * bottom_part * right_part, grad)
    return (
        weight * along,
        weight * (top_slope * above + bottom_slope * below),
        top_part * above + bottom_part * below,
    )


def forward(inputs: Any, out: Any, sizes: Any, first: int, last: int) -> None:
    """See `Kernels.forward`."""
    value, shapes, centres, offsets, weights = inputs
    heads, channels, points, cells, queries = sizes
    levels, stride = shapes.size // 2, heads * channels
    shared_centres = centres.size == queries * levels * 2
    for row in range(first, last):
        image, query = row // queries, row % queries
        for head in range(heads):
            total = out[(row * heads + head) * channels : (row * heads + head + 1) * channels]
            total[:] = 0
            sample = (row * heads + head) * levels * points
            start = image * cells * stride + head * channels
            for level in range(levels):
                rows, columns = shapes[2 * level], shapes[2 * level + 1]
                centre = 2 * ((query if shared_centres else row) * levels + level)
                for _ in range(points):
                    x = centres[centre] + offsets[2 * sample]
                    y = centres[centre + 1] + offsets[2 * sample + 1]
                    weight = weights[sample]
                    if inside(x, y, rows, columns):
                        read(total, weight, value, x, y, (rows, columns, start, stride))
                    elif x != x or y != y or weight != weight:
                        # A network that has lost its numbers must not look sound.
                        total[:] = np.nan
                    sample += 1
                start += rows * columns * stride


def backward(inputs: Any, grad: Any, grads: Any, sizes: Any, first: int, last: int) -> None:
    """See `Kernels.backward`."""
    value, shapes, centres, offsets, weights = inputs
    grad_value, grad_offsets, grad_weights = grads
    heads, channels, points, cells, queries = sizes
    levels, stride = shapes.size // 2, heads * channels
    shared_centres = centres.size == queries * levels * 2
    for image in range(first // heads, (last + heads - 1) // heads):
        first_head, last_head = max(first - image * heads, 0), min(last - image * heads, heads)
        for query in range(queries):
            row = image * queries + query
            for head in range(first_head, last_head):
                total_grad = grad[(row * heads + head) * channels : (row * heads + head + 1) * channels]
                sample = (row * heads + head) * levels * points
                start = image * cells * stride + head * channels
                for level in range(levels):
                    rows, columns = shapes[2 * level], shapes[2 * level + 1]
                    centre = 2 * ((query if shared_centres else row) * levels + level)
                    for _ in range(points):
                        x = centres[centre] + offsets[2 * sample]
                        y = centres[centre + 1] + offsets[2 * sample + 1]
                        weight = weights[sample]
                        if inside(x, y, rows, columns):
                            place = (rows, columns, start, stride)
                            x_grad, y_grad, weight_grad = read_backward(
                                total_grad, weight, value, grad_value, x, y, place
                            )
                        else:
                            lost = x != x or y != y or weight != weight
                            x_grad = y_grad = weight_grad = value.dtype.type(np.nan if lost else 0)
                        grad_offsets[2 * sample] = x_grad
                        grad_offsets[2 * sample + 1] = y_grad
                        grad_weights[sample] = weight_grad
                        sample += 1
                    start += rows * columns * stride


def make_kernels(cache: bool) -> Kernels:
    """The kernels, with or without numba's cache on disk; each type of number is compiled when first used."""
    compiled = njit(cache=cache, **OPTIONS)
    return Kernels(compiled(forward), compiled(backward))
