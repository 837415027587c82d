"""Dropout that on CPU keeps no mask: what is dropped follows from a seed, in the backward pass once more."""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clnet.networks.kernel_runs import compile_cached, in_threads

FEW_NUMBERS = 100_000
"""Below this, a second thread costs more than it brings."""


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`; single precision on CPU is several times as fast and needs less memory."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        if self.training and 0 < self.p < 1 and _takes_fused_path(x):
            return fused_dropout(x, self.p, torch.randint(2**63 - 1, ()))
        return super().forward(x)


@torch.library.custom_op("clnet::dropout", mutates_args=(), device_types="cpu")
def fused_dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Drop numbers with probability p, and divide the others by 1 − p; the same ones for the same seed.

    Args:
        x: float32, any shape; what is dropped depends on the place in it, not on strides or threads.
        p: in (0, 1), exact to 2⁻³².
        seed: int64 [], not negative.
    """
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    high, low = divmod(int(seed), 2**32)
    settings = (np.uint32(low), np.uint32(high), np.uint32(p * 2**32), np.float32(1 / (1 - p)))
    arrays = (x.contiguous().view(-1).numpy(), out.view(-1).numpy())
    in_threads(compiled_kernel(), (*arrays, *settings), x.numel(), x.numel() >= FEW_NUMBERS)
    return out


@fused_dropout.register_fake
def _(x: Tensor, p: float, seed: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _remember(ctx: Any, inputs: tuple[Tensor, float, Tensor], output: Tensor) -> None:
    _, ctx.p, seed = inputs
    ctx.save_for_backward(seed)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return fused_dropout(grad, ctx.p, *ctx.saved_tensors), None, None


fused_dropout.register_autograd(_differentiate, setup_context=_remember)


@functools.cache
def compiled_kernel() -> Any:
    """The kernel, from numba's cache on disk or compiled now; None without numba."""

    def compile_it(cache: bool) -> Any:
        from numba import njit

        kernel = njit(cache=cache, nogil=True, error_model="numpy")(_drop)
        nothing = np.empty(0, np.float32)
        kernel(nothing, nothing, np.uint32(0), np.uint32(0), np.uint32(0), np.float32(1), 0, 0)
        return kernel

    try:
        return compile_cached(compile_it)
    except Exception:
        return None  # of any kind, on machines that we do not know; `attention_path` says it aloud


def _drop(
    x: Any, out: Any, low: Any, high: Any, threshold: Any, scale: Any, first: int, last: int
) -> None:  # pragma: no cover  # numba compiles it
    """Write out from first to last. A hash of the place, once with each half of the seed, decides."""
    part, out_part = x[first:last], out[first:last]
    for index in range(part.size):
        bits = np.uint32(first + index)
        for key in (low, high):
            bits = np.uint32(bits ^ key)
            bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))
            bits = np.uint32(bits * np.uint32(0x7FEB352D))
            bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(15)))
            bits = np.uint32(bits * np.uint32(0x846CA68B))
            bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))
        out_part[index] = part[index] * (scale if bits >= threshold else np.float32(0))


def _takes_fused_path(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and _kernel_works()


@torch.compiler.assume_constant_result
def _kernel_works() -> bool:
    return compiled_kernel() is not None
