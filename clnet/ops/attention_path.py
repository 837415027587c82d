"""Which way deformable attention is computed: by the fused operator or by the reference.

The environment's ``CLNET_ATTENTION``, or `choose_attention`, chooses for tensors of float32 and float64 on
CPU: ``auto`` (the default) is fused where numba works, ``fused`` is that or an error, ``reference`` is plain
PyTorch. Other devices, other numbers and exports always take the reference.
"""

import functools
import logging
import os
from typing import Literal, get_args

import torch
from torch import Tensor

from clnet.errors import ClnetError
from clnet.ops.cpu_attention import compiled_kernels

AttentionPath = Literal["auto", "fused", "reference"]
VARIABLE = "CLNET_ATTENTION"

logger = logging.getLogger(__name__)
_chosen: list[str] = []


class AttentionPathError(ClnetError):
    """There is no such way to compute attention, or not on this machine."""


def choose_attention(path: AttentionPath) -> None:
    """Choose how deformable attention is computed on CPU from now on, whatever the environment says."""
    _chosen[:] = [_checked(path, "choose_attention")]
    _fused_on_cpu.cache_clear()


def takes_fused_path(*tensors: Tensor) -> bool:
    """Whether these tensors, of which the first is [..., C], go through the fused operator."""
    # A network on its way to another runtime must not use an operator that only we know.
    if torch.jit.is_tracing() or torch.compiler.is_exporting():  # type: ignore[attr-defined, no-untyped-call]
        return False
    dtype = tensors[0].dtype
    return (
        all(tensor.device.type == "cpu" and tensor.dtype == dtype for tensor in tensors)
        and dtype in (torch.float32, torch.float64)
        and _constant_for_the_compiler(tensors[0].shape[-1], dtype)
    )


@torch.compiler.assume_constant_result
def _constant_for_the_compiler(channels: int, dtype: torch.dtype) -> bool:
    return _fused_on_cpu(channels, dtype)


@functools.cache
def _fused_on_cpu(channels: int, dtype: torch.dtype) -> bool:
    path = _chosen[0] if _chosen else _checked(os.environ.get(VARIABLE, "auto"), VARIABLE)
    if path == "reference":
        _say_once(logging.INFO, "deformable attention: the reference path, as chosen")
        return False
    try:
        compiled_kernels(channels, dtype)
    except Exception as error:
        # Whatever a compiler raises on a machine that we do not know, the reference works there.
        if path == "fused":
            raise AttentionPathError(f"{VARIABLE}: the fused path cannot be taken here: {error!r}") from error
        _say_once(
            logging.WARNING,
            "deformable attention: the reference path. The fused one, many times as fast on CPU, needs "
            f"numba, which does not work here: {error!r}",
        )
        return False
    _say_once(logging.INFO, "deformable attention: the fused path on CPU")
    return True


@functools.cache
def _say_once(level: int, message: str) -> None:
    logger.log(level, message)


def _checked(path: str, where: str) -> str:
    if path not in get_args(AttentionPath):
        raise AttentionPathError(f"{where}: {path!r} is not one of {', '.join(get_args(AttentionPath))}")
    return path
