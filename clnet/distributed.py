"""The few things that are asked of several processes, over `ignite.distributed`.

A process that has not joined others is one of one, and every function here answers accordingly.
"""

import atexit
import gc
import os
from collections.abc import Callable
from typing import TypeVar, cast

import ignite.distributed as idist
import torch
from torch import Tensor

from clnet.errors import ClnetError
from clnet.processes import end_with_torchrun

T = TypeVar("T")


class ProcessesError(ClnetError):
    """Processes that cannot work together."""


def join_processes() -> None:
    """Meet the other processes that torchrun started; nccl between GPUs, gloo between CPUs."""
    if "RANK" not in os.environ:
        raise ProcessesError("start several processes with torchrun --nproc_per_node N -m monai.bundle …")
    end_with_torchrun()
    idist.initialize("nccl" if torch.cuda.is_available() else "gloo")
    # gloo's threads end with the last reference to the group, and a network that is wrapped for several
    # processes holds one, in a cycle. A thread that still lets go of a tensor while Python itself ends would
    # abort the process: so the cycles are collected before that.
    atexit.register(gc.collect)


def leave_processes() -> None:
    """Part from the other processes, when all of them are done."""
    idist.barrier()
    idist.finalize()


def process_device() -> torch.device:
    """The GPU of this process, or the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def is_first_process() -> bool:
    """Whether this is the only process, or the first of several."""
    return idist.get_rank() == 0


def gather(value: T) -> list[T]:
    """The values of all processes, in every process, in the order of their ranks."""
    parts = cast("list[tuple[T]]", idist.all_gather((value,)))  # in a tuple, any value is sent as an object
    return [part for (part,) in parts]


def first_decides(make: Callable[[], T]) -> T:
    """What the first process makes, in every process."""
    return gather(make() if is_first_process() else None)[0]  # type: ignore[return-value]


def mean_count(count: int | Tensor, like: Tensor) -> Tensor:
    """The mean over processes of a count, at least 1: what a sum over lesions is divided by.

    Gradients are averaged over processes, so dividing by the mean count makes the result that of one process
    with the whole batch; each process dividing by its own count would weigh lesions unequally.

    Args:
        count: of this process, 0 or more; a scalar, if it is a tensor.
        like: gives device and type.

    Returns:
        A scalar, the same in every process.
    """
    total = cast("Tensor", idist.all_reduce(like.new_zeros(()) + count))
    return (total / idist.get_world_size()).clamp(min=1)
