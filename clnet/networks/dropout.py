"""Dropout that on CPU keeps no mask: what is dropped follows from a seed, in the backward pass once more."""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

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


class ReLUDropout(Dropout):
    """`Dropout` of a ReLU: in one pass over memory where Dropout takes its own."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        if self.training and 0 < self.p < 1 and _takes_fused_path(x):
            return fused_relu_dropout(x, self.p, torch.randint(2**63 - 1, ()))
        # Not in place: x is a view of what a linear layer made, and autograd would copy all of it.
        return super().forward(F.relu(x))


@torch.library.custom_op("clnet::dropout", mutates_args=(), device_types="cpu")
def fused_dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Drop numbers with probability p, and divide the others by 1 − p; the same ones for the same seed.

    Args:
        x: float32, any shape; what is dropped depends on the place in it, not on strides or threads.
        p: in (0, 1), exact to 2⁻³².
        seed: int64 [], not negative.
    """
    return _drop_below(-np.inf, x, p, seed)


@torch.library.custom_op("clnet::relu_dropout", mutates_args=(), device_types="cpu")
def fused_relu_dropout(x: Tensor, p: float, seed: Tensor) -> Tensor:
    """`fused_dropout` of a ReLU."""
    return _drop_below(0.0, x, p, seed)


def _drop_below(floor: float, x: Tensor, p: float, seed: Tensor) -> Tensor:
    """Dropout of x, in which numbers below the floor are zero."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    high, low = divmod(int(seed), 2**32)
    bits = (np.uint32(low), np.uint32(high), np.uint32(p * 2**32))
    numbers = (np.float32(1 / (1 - p)), np.float32(floor))
    arrays = (x.contiguous().view(-1).numpy(), out.view(-1).numpy())
    in_threads(compiled_kernel(), (*arrays, *bits, *numbers), x.numel(), x.numel() >= FEW_NUMBERS)
    return out


@fused_dropout.register_fake
@fused_relu_dropout.register_fake
def _(x: Tensor, p: float, seed: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _remember(ctx: Any, inputs: tuple[Tensor, float, Tensor], output: Tensor) -> None:
    _, ctx.p, seed = inputs
    ctx.save_for_backward(seed)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return fused_dropout(grad, ctx.p, *ctx.saved_tensors), None, None


fused_dropout.register_autograd(_differentiate, setup_context=_remember)


def _remember_output(ctx: Any, inputs: tuple[Tensor, float, Tensor], output: Tensor) -> None:
    _, ctx.p, _ = inputs
    ctx.save_for_backward(output)


def _differentiate_by_output(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    """What neither was dropped nor below zero is above zero in the output, and nothing else is."""
    (output,) = ctx.saved_tensors
    return torch.ops.aten.threshold_backward(grad, output, 0).mul_(1 / (1 - ctx.p)), None, None


fused_relu_dropout.register_autograd(_differentiate_by_output, setup_context=_remember_output)


@functools.cache
def compiled_kernel() -> Any:
    """The kernel, from numba's cache on disk or compiled now; None without numba."""

    def compile_it(cache: bool) -> Any:
        kernel, nothing = _make_kernel(cache), np.empty(0, np.float32)
        kernel(nothing, nothing, *[np.uint32(0)] * 3, *[np.float32(1)] * 2, 0, 0)
        return kernel

    try:
        return compile_cached(compile_it)
    except Exception:
        return None  # of any kind, on machines that we do not know; `attention_path` says it aloud


def _mix(bits: Any) -> Any:  # pragma: no cover  # numba compiles it
    """A hash of 32 bits; each bit of the result depends on all."""
    bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))
    bits = np.uint32(bits * np.uint32(0x7FEB352D))
    bits = np.uint32(bits ^ np.uint32(bits >> np.uint32(15)))
    bits = np.uint32(bits * np.uint32(0x846CA68B))
    return np.uint32(bits ^ np.uint32(bits >> np.uint32(16)))


def _make_kernel(cache: bool) -> Any:
    from numba import njit

    # Inlined, and without a loop over the halves of the seed: so the compiler takes several numbers at once.
    mix = njit(inline="always")(_mix)

    @njit(cache=cache, nogil=True, error_model="numpy")
    def drop(
        x: Any, out: Any, low: Any, high: Any, threshold: Any, scale: Any, floor: Any, first: int, last: int
    ) -> None:  # pragma: no cover
        """Write out from first to last. A hash of the place, once with each half of the seed, decides."""
        part, out_part = x[first:last], out[first:last]
        for index in range(part.size):
            bits = mix(np.uint32(mix(np.uint32(np.uint32(first + index) ^ low)) ^ high))
            # A comparison that is false for not a number, which must stay what it is.
            dropped = bits < threshold or part[index] < floor
            out_part[index] = part[index] * (np.float32(0) if dropped else scale)

    return drop


def _takes_fused_path(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and _kernel_works()


@torch.compiler.assume_constant_result
def _kernel_works() -> bool:
    return compiled_kernel() is not None
