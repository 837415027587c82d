"""Deformable attention on GPUs in one pass, by kernels that Triton compiles."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from clnet.ops.attention_operator import (
    check_shapes,
    computed_type,
    fused_attention,
    fused_attention_backward,
)

ELEMENTS = 512
"""Queries times channels of a program."""


@functools.cache
def prepare(dtype: torch.dtype) -> None:
    """Compile for the current GPU, and compute an attention of one sample.

    Raises:
        Exception: of any kind, where Triton is missing or does not work.
    """
    value, centres, offsets, weights = (
        torch.zeros(shape, dtype=dtype, device="cuda")
        for shape in ((1, 1, 1, 16), (1, 1, 1, 2), (1, 1, 1, 1, 1, 2), (1, 1, 1, 1, 1))
    )
    out = forward(value, [1, 1], centres, offsets, weights)
    backward(out, value, [1, 1], centres, offsets, weights)
    torch.cuda.synchronize()


@fused_attention.register_kernel("cuda")
def forward(
    value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """See `clnet.ops.attention_operator.fused_attention`."""
    from clnet.ops import triton_kernels  # imports Triton, which may be missing

    check_shapes(value, shapes, centres, offsets, weights)
    out = value.new_empty(*offsets.shape[:2], value.shape[2] * value.shape[3])
    _launch(triton_kernels.forward, (out,), (), value, shapes, centres, offsets, weights)
    return out


@fused_attention_backward.register_kernel("cuda")
def backward(
    grad: Tensor, value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See `clnet.ops.attention_operator.fused_attention_backward`."""
    from clnet.ops import triton_kernels

    check_shapes(value, shapes, centres, offsets, weights)
    grad_value = value.new_zeros(value.shape, dtype=computed_type(value))
    grad_offsets, grad_weights = offsets.new_empty(offsets.shape), weights.new_empty(weights.shape)
    grads = grad_value, grad_offsets, grad_weights
    _launch(triton_kernels.backward, (grad.contiguous(),), grads, value, shapes, centres, offsets, weights)
    return grad_value.to(value.dtype), grad_offsets, grad_weights


def _launch(
    kernel: Any,
    before: tuple[Tensor, ...],
    after: tuple[Tensor, ...],
    value: Tensor,
    shapes: Sequence[int],
    centres: Tensor,
    offsets: Tensor,
    weights: Tensor,
) -> None:
    """Run a kernel with these tensors before and after the attention's own."""
    import triton
    import triton.language as tl

    batch, queries, heads, levels, points, _ = offsets.shape
    channels = value.shape[-1]
    if batch * queries == 0:
        return
    channels_block = triton.next_power_of_2(channels)
    queries_block = max(1, ELEMENTS // channels_block)
    with torch.cuda.device_of(value):
        kernel[triton.cdiv(queries, queries_block), batch * heads](
            *before,
            value.contiguous(),
            _on_device(tuple(shapes), value.device),
            *(tensor.contiguous() for tensor in (centres, offsets, weights)),
            *after,
            heads,
            queries,
            value.shape[1],
            0 if len(centres) < batch else queries,
            levels=levels,
            points=points,
            channels=channels,
            queries_block=queries_block,
            channels_block=channels_block,
            number=tl.float64 if computed_type(value) == torch.float64 else tl.float32,
        )


@functools.lru_cache(maxsize=256)
def _on_device(shapes: tuple[int, ...], device: torch.device) -> Tensor:
    """Copied once, as each copy would wait for the GPU."""
    return torch.tensor(shapes, dtype=torch.int32, device=device)
