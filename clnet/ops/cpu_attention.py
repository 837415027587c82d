"""Deformable attention on CPU in one pass: a PyTorch operator over kernels that numba compiles.

It can be differentiated and is known to `torch.compile`.
"""

import functools
import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from clnet.ops.reference import Shapes

FEW_SAMPLES = 10_000
"""Below this, a second thread costs more than it brings."""


def attend(value: Tensor, shapes: Shapes, centres: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    """See `clnet.ops.deformable_attention.deformable_attention`; all tensors float32, or all float64."""
    return fused_attention(value, [size for shape in shapes for size in shape], centres, offsets, weights)


@functools.cache
def prepare(dtype: torch.dtype) -> Any:
    """The kernels, from numba's cache on disk or compiled now for this type of number.

    Raises:
        Exception: of any kind, where numba is missing or does not work.
    """
    from clnet.ops.cpu_kernels import make_kernels  # imports numba, which may be missing

    nothing, shapes = torch.empty(0, dtype=dtype).numpy(), torch.tensor([1, 1]).numpy()
    inputs = (nothing, shapes, nothing, nothing, nothing)

    def compile_both(cache: bool) -> Any:
        kernels = make_kernels(cache)
        kernels.forward(inputs, nothing, (1, 1, 1, 1, 1), 0, 0)
        kernels.backward(inputs, nothing, (nothing, nothing, nothing), (1, 1, 1, 1, 1), 0, 0)
        return kernels

    try:
        return compile_both(cache=True)
    except Exception:
        # The cache may have no folder it can write to, or hold what somebody's full disk left of it.
        return compile_both(cache=False)


@torch.library.custom_op("clnet::deformable_attention", mutates_args=(), device_types="cpu")
def fused_attention(
    value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """See `attend`; shapes are rows and columns of each level, one after the other."""
    _check(value, shapes, centres, offsets, weights)
    batch, queries, heads, _, points, _ = offsets.shape
    out = value.new_empty(batch, queries, heads * value.shape[-1])
    kernels = prepare(value.dtype)
    inputs = _flat(value, torch.tensor(shapes), centres, offsets, weights)
    sizes = (heads, value.shape[-1], points, value.shape[1], queries)
    _in_threads(
        kernels.forward, (inputs, *_flat(out), sizes), batch * queries, weights.numel() >= FEW_SAMPLES
    )
    return out


@torch.library.custom_op("clnet::deformable_attention_backward", mutates_args=(), device_types="cpu")
def fused_attention_backward(
    grad: Tensor, value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of value, offsets and weights, given the output's [B, Q, heads · C]."""
    _check(value, shapes, centres, offsets, weights)
    batch, queries, heads, _, points, _ = offsets.shape
    contiguous = torch.contiguous_format
    grads = (
        torch.zeros_like(value, memory_format=contiguous),
        torch.empty_like(offsets, memory_format=contiguous),
        torch.empty_like(weights, memory_format=contiguous),
    )
    kernels = prepare(value.dtype)
    inputs = _flat(value, torch.tensor(shapes), centres, offsets, weights)
    sizes = (heads, value.shape[-1], points, value.shape[1], queries)
    # By heads, not by queries: two queries may read the same place, two heads never do. What each thread
    # adds up does not depend on how many there are.
    arrays = (inputs, *_flat(grad), _flat(*grads), sizes)
    _in_threads(kernels.backward, arrays, batch * heads, weights.numel() >= FEW_SAMPLES)
    return grads


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
        grad_centres = grad_offsets.sum((2, 4)).sum_to_size(centres.shape)
    return grad_value, None, grad_centres, grad_offsets, grad_weights


fused_attention.register_autograd(_differentiate, setup_context=_remember)


def _check(value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor) -> None:
    """The kernels read and write memory by these shapes: all must agree."""
    batch, cells, heads, _ = value.shape
    _, queries, _, levels, points, _ = offsets.shape
    if not (
        len(shapes) == 2 * levels
        and min(shapes) > 0
        and cells == sum(rows * columns for rows, columns in zip(shapes[::2], shapes[1::2], strict=True))
        and centres.shape in ((batch, queries, levels, 2), (1, queries, levels, 2))
        and offsets.shape == (batch, queries, heads, levels, points, 2)
        and weights.shape == (batch, queries, heads, levels, points)
        and value.dtype == centres.dtype == offsets.dtype == weights.dtype
    ):
        found = ", ".join(f"{tuple(tensor.shape)}" for tensor in (value, centres, offsets, weights))
        raise ValueError(
            f"deformable attention: value, centres, offsets and weights {found} do not fit levels {shapes}"
        )


def _flat(*tensors: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.contiguous().view(-1).numpy() for tensor in tensors)


def _in_threads(kernel: Any, arguments: tuple[Any, ...], total: int, many: bool) -> None:
    """Run a kernel on 0 to total; if there is much to do, in as many parts as torch has threads."""
    threads = max(1, min(torch.get_num_threads(), total)) if many else 1
    ends = [total * index // threads for index in range(threads + 1)]
    first, *others = itertools.pairwise(ends)
    running = [_pool(threads - 1).submit(kernel, *arguments, *part) for part in others]
    kernel(*arguments, *first)
    for part in running:
        part.result()


@functools.cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, "clnet-kernels")


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
