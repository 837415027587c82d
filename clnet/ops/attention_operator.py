"""Deformable attention in one pass, as a PyTorch operator; each type of device registers its kernels.

It can be differentiated once, and is known to `torch.compile`. Tensors may be of any floating-point types;
kernels compute in float32, or in float64 for a value of float64.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clnet.ops.reference import Shapes


def attend(value: Tensor, shapes: Shapes, centres: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    """See `clnet.ops.deformable_attention.deformable_attention`."""
    return fused_attention(value, [size for shape in shapes for size in shape], centres, offsets, weights)


@torch.library.custom_op("clnet::deformable_attention", mutates_args=(), device_types=())
def fused_attention(
    value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """See `attend`; shapes are rows and columns of each level, one after the other."""
    raise NotImplementedError(value.device.type)


@torch.library.custom_op("clnet::deformable_attention_backward", mutates_args=(), device_types=())
def fused_attention_backward(
    grad: Tensor, value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of value, offsets and weights, given the output's [B, Q, heads · C]."""
    raise NotImplementedError(value.device.type)


def computed_type(value: Tensor) -> torch.dtype:
    """The type of number in which kernels compute."""
    return torch.promote_types(value.dtype, torch.float32)


def check_shapes(
    value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> None:
    """Kernels read and write memory by these shapes: all must agree."""
    batch, cells, heads, _ = value.shape
    _, queries, _, levels, points, _ = offsets.shape
    if not (
        len(shapes) == 2 * levels
        and min(shapes) > 0
        and cells == sum(rows * columns for rows, columns in zip(shapes[::2], shapes[1::2], strict=True))
        and centres.shape in ((batch, queries, levels, 2), (1, queries, levels, 2))
        and offsets.shape == (batch, queries, heads, levels, points, 2)
        and weights.shape == (batch, queries, heads, levels, points)
    ):
        found = ", ".join(f"{tuple(tensor.shape)}" for tensor in (value, centres, offsets, weights))
        raise ValueError(
            f"deformable attention: value, centres, offsets and weights {found} do not fit levels {shapes}"
        )


@fused_attention.register_fake
def _(value: Tensor, shapes: Any, centres: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    return value.new_empty(offsets.shape[0], offsets.shape[1], value.shape[2] * value.shape[3])


@fused_attention_backward.register_fake
def _(
    grad: Tensor, value: Tensor, shapes: Any, centres: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return value.new_empty(value.shape), offsets.new_empty(offsets.shape), weights.new_empty(weights.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    value, ctx.shapes, centres, offsets, weights = inputs
    ctx.save_for_backward(value, centres, offsets, weights)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, Tensor, Tensor]:
    value, centres, offsets, weights = ctx.saved_tensors
    grad_value, grad_offsets, grad_weights = fused_attention_backward(
        grad, value, ctx.shapes, centres, offsets, weights
    )
    grad_centres = None
    if ctx.needs_input_grad[2]:
        grad_centres = grad_offsets.to(centres.dtype).sum((2, 4)).sum_to_size(centres.shape)
    return grad_value, None, grad_centres, grad_offsets, grad_weights


fused_attention.register_autograd(_differentiate, setup_context=_remember)
