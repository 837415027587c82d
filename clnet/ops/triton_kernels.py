"""Deformable attention's inner loops for GPUs, compiled by Triton: sampling and weighting in one pass.

Importing this module needs Triton, which PyTorch's builds for GPUs bring along. Arrays are contiguous, in the
layout of `deformable_attention`'s arguments. A program computes some queries of one head of one image; they
read the same maps, so that the cache serves many of them.

Each sample's own gradients are sums over channels and belong to one program. The value's are sums over all
samples that read a cell: they are added atomically, in float32, in whatever order the GPU takes, so that the
last bits differ between two runs, as they do for `grid_sample`.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, D417
# What Triton compiles has Triton's types.

import triton
import triton.language as tl


@triton.jit
def neighbours(places):
    """The cell before each place, and the parts that it and the next one contribute."""
    low = tl.floor(places)
    return low.to(tl.int32), 1 - (places - low), places - low


@triton.jit
def sampled(centres, offsets, weights, centre, sample, exists, rows, columns, number: tl.constexpr):
    """Where and how much queries read: x, y, the weight, and whether any cell is nearer than 1.

    Places outside become (0, 0). If they are not numbers, or the weight is none, so becomes what is read
    there: a network that has lost its numbers must not look sound.
    """
    x = tl.load(centres + 2 * centre, exists, 0).to(number)
    y = tl.load(centres + 2 * centre + 1, exists, 0).to(number)
    x += tl.load(offsets + 2 * sample, exists, 0).to(number)
    y += tl.load(offsets + 2 * sample + 1, exists, 0).to(number)
    weight = tl.load(weights + sample, exists, 0).to(number)
    inside = exists & (x >= -1) & (y >= -1) & (x < columns) & (y < rows)
    lost = (x != x) | (y != y) | (weight != weight)
    weight = tl.where(inside, weight, tl.where(lost, float("nan"), 0.0))
    return tl.where(inside, x, 0), tl.where(inside, y, 0), weight, inside


@triton.jit
def cell(row, column, rows, columns, start, stride, channel, inside):
    """Where the channels of cells begin in the value of an image, and whether there are such cells."""
    there = inside & (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    place = (start + row * columns + column)[:, None] * stride + channel[None, :]
    return place, there[:, None]


@triton.jit
def forward(
    out, value, shapes, centres, offsets, weights,
    heads, queries, cells, centres_per_image,
    levels: tl.constexpr, points: tl.constexpr, channels: tl.constexpr,
    queries_block: tl.constexpr, channels_block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    """Write `out` [B, Q, heads · channels]; see `clnet.ops.deformable_attention`.

    Args:
        shapes: int32 [levels, 2], rows and columns.
        centres_per_image: 0 if all images share their centres, else Q.
        queries_block: queries per program.
        channels_block: the power of 2 that holds the channels.
        number: the type in which sums are made.
    """
    query = tl.program_id(0) * queries_block + tl.arange(0, queries_block)
    image, head = (tl.program_id(1) // heads).to(tl.int64), tl.program_id(1) % heads
    channel = tl.arange(0, channels_block)
    exists, stride = query < queries, heads * channels
    row_of_out = (image * queries + query) * heads + head
    value += image * cells * stride + head * channels
    total = tl.zeros([queries_block, channels_block], number)
    start = 0
    for level in range(levels):
        rows, columns = tl.load(shapes + 2 * level), tl.load(shapes + 2 * level + 1)
        centre = (image * centres_per_image + query) * levels + level
        for point in range(points):
            sample = (row_of_out * levels + level) * points + point
            x, y, weight, inside = sampled(
                centres, offsets, weights, centre, sample, exists, rows, columns, number
            )
            left, left_part, right_part = neighbours(x)
            top, top_part, bottom_part = neighbours(y)
            for corner in tl.static_range(4):
                part = (left_part if corner % 2 == 0 else right_part) * (
                    top_part if corner < 2 else bottom_part
                )
                place, there = cell(
                    top + corner // 2, left + corner % 2, rows, columns, start, stride, channel, inside
                )
                read = tl.load(value + place, there & (channel < channels)[None, :], 0).to(number)
                total += (weight * part)[:, None] * read
        start += rows * columns
    place = row_of_out[:, None] * channels + channel[None, :]
    tl.store(out + place, total.to(out.dtype.element_ty), exists[:, None] & (channel < channels)[None, :])


@triton.jit
def backward(
    grad, value, shapes, centres, offsets, weights, grad_value, grad_offsets, grad_weights,
    heads, queries, cells, centres_per_image,
    levels: tl.constexpr, points: tl.constexpr, channels: tl.constexpr,
    queries_block: tl.constexpr, channels_block: tl.constexpr, number: tl.constexpr,
):  # fmt: skip
    """Add to `grad_value`, of type `number`, and write the other gradients; arguments as in `forward`."""
    query = tl.program_id(0) * queries_block + tl.arange(0, queries_block)
    image, head = (tl.program_id(1) // heads).to(tl.int64), tl.program_id(1) % heads
    channel = tl.arange(0, channels_block)
    exists, stride = query < queries, heads * channels
    row_of_out = (image * queries + query) * heads + head
    value += image * cells * stride + head * channels
    grad_value += image * cells * stride + head * channels
    total_grad = tl.load(
        grad + row_of_out[:, None] * channels + channel[None, :],
        exists[:, None] & (channel < channels)[None, :],
        0,
    ).to(number)
    start = 0
    for level in range(levels):
        rows, columns = tl.load(shapes + 2 * level), tl.load(shapes + 2 * level + 1)
        centre = (image * centres_per_image + query) * levels + level
        for point in range(points):
            sample = (row_of_out * levels + level) * points + point
            x, y, weight, inside = sampled(
                centres, offsets, weights, centre, sample, exists, rows, columns, number
            )
            left, left_part, right_part = neighbours(x)
            top, top_part, bottom_part = neighbours(y)
            along_x = tl.zeros([queries_block], number)
            along_y = tl.zeros([queries_block], number)
            whole = tl.zeros([queries_block], number)
            for corner in tl.static_range(4):
                x_part = left_part if corner % 2 == 0 else right_part
                y_part = top_part if corner < 2 else bottom_part
                place, there = cell(
                    top + corner // 2, left + corner % 2, rows, columns, start, stride, channel, inside
                )
                there &= (channel < channels)[None, :]
                read = tl.load(value + place, there, 0).to(number)
                seen = tl.sum(total_grad * read, 1)
                along_x += seen * (y_part if corner % 2 == 1 else -y_part)
                along_y += seen * (x_part if corner >= 2 else -x_part)
                whole += seen * x_part * y_part
                change = (weight * x_part * y_part)[:, None] * total_grad
                tl.atomic_add(grad_value + place, change, there, sem="relaxed")
            lost = weight != weight
            place = grad_offsets + 2 * sample
            tl.store(place, (weight * along_x).to(grad_offsets.dtype.element_ty), exists)
            tl.store(place + 1, (weight * along_y).to(grad_offsets.dtype.element_ty), exists)
            whole = tl.where(lost, weight, whole)
            tl.store(grad_weights + sample, whole.to(grad_weights.dtype.element_ty), exists)
        start += rows * columns
