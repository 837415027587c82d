"""Deformable attention: one function, computed by the fused kernel of the device or by the reference.

The environment variable ``CLNET_ATTENTION``, or `choose_attention`, decides: ``auto`` (the default) takes the
fused kernel where it works, ``fused`` takes it or raises an error, ``reference`` is plain PyTorch. Devices
without a kernel in `KERNELS`, and exports, always take the reference.
"""

import functools
import logging
import os
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from clnet.errors import ClnetError
from clnet.ops import cpu_attention, triton_attention
from clnet.ops.attention_operator import attend, computed_type
from clnet.ops.reference import Shapes, reference_attention

AttentionPath = Literal["auto", "fused", "reference"]
VARIABLE = "CLNET_ATTENTION"

logger = logging.getLogger(__name__)
_chosen: list[AttentionPath] = []


class AttentionKernel(Protocol):
    """A module that registers the kernels of `clnet.ops.attention_operator` for one type of device."""

    def prepare(self, dtype: torch.dtype) -> object:
        """Compile for sums in numbers of this type; raises any exception if the kernels do not work here."""


KERNELS: dict[str, AttentionKernel] = {"cpu": cpu_attention, "cuda": triton_attention}
"""By the type of device."""


class AttentionPathError(ClnetError):
    """Attention cannot be computed in the chosen way, or there is no such choice."""


def deformable_attention(
    value: Tensor, shapes: Shapes, centres: Tensor, offsets: Tensor, weights: Tensor
) -> Tensor:
    """Sum the values that bilinear interpolation finds at the sampling places, weighted.

    Places count in cells of each level's map, so that (0, 0) is the centre of its first cell. Outside the map
    the value is 0. Half precision is computed in float32: a bfloat16 place beyond 128 has no fraction.

    Args:
        value: [B, S, heads, C], the features of all levels, flattened row by row, level after level.
        shapes: (rows, columns) of each of the L levels; S is the sum of their products.
        centres: [B or 1, Q, L, 2], (x, y).
        offsets: [B, Q, heads, L, points, 2], (x, y) of each sampling place from its centre.
        weights: [B, Q, heads, L, points].

    Returns:
        [B, Q, heads · C], of value's type.
    """
    dtype = computed_type(value)
    if _takes_kernel(value.device.type, dtype):
        return attend(value, shapes, centres, offsets, weights)
    read = reference_attention(
        value.to(dtype), shapes, centres.to(dtype), offsets.to(dtype), weights.to(dtype)
    )
    return read.to(value.dtype)


def choose_attention(path: AttentionPath) -> None:
    """Choose how deformable attention is computed from now on, whatever the environment says."""
    _chosen[:] = [_checked(path, "choose_attention")]
    _kernel_works.cache_clear()


def _takes_kernel(device: str, dtype: torch.dtype) -> bool:
    # A network that is exported to another runtime must not use an operator that only we know.
    if torch.jit.is_tracing() or torch.compiler.is_exporting():  # type: ignore[attr-defined, no-untyped-call]
        return False
    return device in KERNELS and _constant_for_the_compiler(device, dtype)


@torch.compiler.assume_constant_result
def _constant_for_the_compiler(device: str, dtype: torch.dtype) -> bool:
    return _kernel_works(device, dtype)


@functools.cache
def _kernel_works(device: str, dtype: torch.dtype) -> bool:
    path = _chosen[0] if _chosen else _checked(os.environ.get(VARIABLE, "auto"), VARIABLE)
    if path == "reference":
        _log_once(logging.INFO, "deformable attention: the reference path, as chosen")
        return False
    try:
        KERNELS[device].prepare(dtype)
    except Exception as error:
        # Whatever a compiler raises on a machine that we do not know, the reference works there.
        if path == "fused":
            raise AttentionPathError(
                f"{VARIABLE}: the fused kernel for {device} does not work here: {error!r}"
            ) from error
        _log_once(
            logging.WARNING,
            f"deformable attention: the reference path, which is slower. The fused kernel for {device} does "
            f"not work here: {error!r}",
        )
        return False
    _log_once(logging.INFO, f"deformable attention: the fused path on {device}")
    return True


@functools.cache
def _log_once(level: int, message: str) -> None:
    logger.log(level, message)


def _checked(path: str, where: str) -> AttentionPath:
    if path not in get_args(AttentionPath):
        raise AttentionPathError(f"{where}: {path!r} is not one of {', '.join(get_args(AttentionPath))}")
    return path  # type: ignore[return-value]  # one of the literals, as was just checked
