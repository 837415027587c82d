"""Deformable attention on CPU in one pass, by kernels that numba compiles."""

import functools
import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from clnet.ops.attention_operator import (
    check_shapes,
    computed_type,
    fused_attention,
    fused_attention_backward,
)

FEW_SAMPLES = 10_000
"""Below this, a second thread costs more than it brings."""


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


@fused_attention.register_kernel("cpu")
def forward(
    value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """See `clnet.ops.attention_operator.fused_attention`."""
    check_shapes(value, shapes, centres, offsets, weights)
    batch, queries, heads, _, points, _ = offsets.shape
    dtype = computed_type(value)
    out = value.new_empty(batch, queries, heads * value.shape[-1], dtype=dtype)
    inputs = _inputs(dtype, value, shapes, centres, offsets, weights)
    sizes = (heads, value.shape[-1], points, value.shape[1], queries)
    many = weights.numel() >= FEW_SAMPLES
    _in_threads(prepare(dtype).forward, (inputs, *_flat(out), sizes), batch * queries, many)
    return out.to(value.dtype)


@fused_attention_backward.register_kernel("cpu")
def backward(
    grad: Tensor, value: Tensor, shapes: Sequence[int], centres: Tensor, offsets: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """See `clnet.ops.attention_operator.fused_attention_backward`."""
    check_shapes(value, shapes, centres, offsets, weights)
    batch, queries, heads, _, points, _ = offsets.shape
    dtype = computed_type(value)
    grads = (
        value.new_zeros(value.shape, dtype=dtype),
        offsets.new_empty(offsets.shape, dtype=dtype),
        weights.new_empty(weights.shape, dtype=dtype),
    )
    inputs = _inputs(dtype, value, shapes, centres, offsets, weights)
    sizes = (heads, value.shape[-1], points, value.shape[1], queries)
    # By heads, not by queries: two queries may read the same place, two heads never do. What each thread
    # adds up does not depend on how many there are.
    arrays = (inputs, *_flat(grad.to(dtype)), _flat(*grads), sizes)
    _in_threads(prepare(dtype).backward, arrays, batch * heads, weights.numel() >= FEW_SAMPLES)
    grad_value, grad_offsets, grad_weights = grads
    return grad_value.to(value.dtype), grad_offsets.to(offsets.dtype), grad_weights.to(weights.dtype)


def _inputs(dtype: torch.dtype, value: Tensor, shapes: Sequence[int], *others: Tensor) -> tuple[Any, ...]:
    (cells,) = _flat(value.to(dtype))
    return cells, torch.tensor(shapes).numpy(), *_flat(*(tensor.to(dtype) for tensor in others))


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
