"""Dropout that on CPU keeps no mask: what is dropped follows from a seed, in the backward pass once more."""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clnet.ops.compiled import compile_cached, in_threads

FEW_NUMBERS = 100_000
"""Below this, a second thread costs more than it brings."""


class AddDropout(nn.Dropout):
    """``x + Dropout(update)``; single precision on CPU is several times as fast and needs less memory."""

    def forward(self, x: Tensor, update: Tensor) -> Tensor:  # type: ignore[override]  # the base has no x
        """Two tensors of one shape to one."""
        if takes_fused_dropout(self, update) and (x.shape, x.dtype) == (update.shape, update.dtype):
            return add_dropout(x, update, self.p, random_seed())
        return x + super().forward(update)


def takes_fused_dropout(dropout: nn.Dropout, x: Tensor) -> bool:
    """Whether something is dropped, and the kernel can do it."""
    fits = x.device.type == "cpu" and x.dtype == torch.float32
    return dropout.training and 0 < dropout.p < 1 and fits and _kernel_works()


def random_seed() -> Tensor:
    """Of torch's generator, int64 []."""
    return torch.randint(2**63 - 1, ())


@torch.library.custom_op("clnet::dropout", mutates_args=(), device_types="cpu")
def fused_dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Drop numbers with probability p, and divide the others by 1 − p; the same ones for the same seed.

    Args:
        x: float32, any shape; what is dropped depends on the place in it, not on strides or threads.
        p: in (0, 1), exact to 2⁻³².
        seed: int64 [], not negative.
    """
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _run(compiled_kernels().drop, (x, out), p, int(seed))
    return out


@torch.library.custom_op("clnet::add_dropout", mutates_args=(), device_types="cpu")
def add_dropout(x: Tensor, update: Tensor, p: float, seed: Tensor) -> Tensor:
    """``x + fused_dropout(update)``, in one pass over memory; both of one shape."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _run(compiled_kernels().drop_and_add, (update, x, out), p, int(seed))
    return out


def relu_dropout(x: Tensor, out: Tensor, p: float, seed: int) -> None:
    """Write the dropout of a ReLU to a contiguous out; autograd does not see it."""
    _run(compiled_kernels().drop, (x, out), p, seed, floor=0.0)


def _run(kernel: Any, tensors: tuple[Tensor, ...], p: float, seed: int, floor: float = -np.inf) -> None:
    """Run a kernel on tensors, the last of which it writes. Numbers below the floor are dropped, too."""
    high, low = divmod(seed, 2**32)
    bits = (np.uint32(low), np.uint32(high), np.uint32(p * 2**32))
    numbers = (np.float32(1 / (1 - p)), np.float32(floor))
    arrays = tuple(tensor.contiguous().view(-1).numpy() for tensor in tensors)
    in_threads(kernel, (*arrays, *bits, *numbers), arrays[0].size, arrays[0].size >= FEW_NUMBERS)


@fused_dropout.register_fake
def _(x: Tensor, p: float, seed: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@add_dropout.register_fake
def _(x: Tensor, update: Tensor, p: float, seed: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *_, ctx.p, seed = inputs
    ctx.save_for_backward(seed)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return fused_dropout(grad, ctx.p, *ctx.saved_tensors), None, None


def _differentiate_sum(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
    return grad, *_differentiate(ctx, grad)


fused_dropout.register_autograd(_differentiate, setup_context=_remember)
add_dropout.register_autograd(_differentiate_sum, setup_context=_remember)


@functools.cache
def compiled_kernels() -> Any:
    """The kernels, from numba's cache on disk or compiled now; None without numba."""

    def compile_them(cache: bool) -> Any:
        from clnet.ops.dropout_kernels import make_kernels  # imports numba, which may be missing

        kernels, nothing = make_kernels(cache), np.empty(0, np.float32)
        numbers = (*[np.uint32(0)] * 3, *[np.float32(1)] * 2, 0, 0)
        kernels.drop(nothing, nothing, *numbers)
        kernels.drop_and_add(nothing, nothing, nothing, *numbers)
        return kernels

    try:
        return compile_cached(compile_them)
    except Exception:
        return None  # of any kind, on machines that we do not know; `attention_path` says it aloud


@torch.compiler.assume_constant_result
def _kernel_works() -> bool:
    return compiled_kernels() is not None
