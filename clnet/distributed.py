"""What the processes of one training must agree on."""

import atexit
import gc
import os

import torch
from torch import Tensor, distributed

from clnet.errors import ClnetError


class ProcessesError(ClnetError):
    """Processes that cannot work together."""


def mean_count(count: int, like: Tensor) -> Tensor:
    """The mean over processes of a count, at least 1: what a sum over lesions is divided by.

    Gradients are averaged over processes, so dividing by the mean count makes the result that of one process
    with the whole batch; each process dividing by its own count would weigh lesions unequally.

    Args:
        count: of this process, 0 or more.
        like: gives device and type.

    Returns:
        A scalar, the same in every process.
    """
    mean = torch.tensor(float(count), device=like.device, dtype=like.dtype)
    if distributed.is_available() and distributed.is_initialized():
        distributed.all_reduce(mean)
        mean = mean / distributed.get_world_size()
    return mean.clamp(min=1)


def join_processes() -> None:
    """Meet the other processes that torchrun started; nccl between GPUs, gloo between CPUs."""
    if "RANK" not in os.environ:
        raise ProcessesError(
            "several processes are started with torchrun --nproc_per_node N -m monai.bundle …"
        )
    if torch.cuda.is_available():
        torch.cuda.set_device(process_device())
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    # gloo's threads end with the last reference to the group, and a network that is wrapped for several
    # processes holds one, in a cycle. A thread that still lets go of a tensor while Python itself ends would
    # abort the process: so the cycles are collected before that.
    atexit.register(gc.collect)


def leave_processes() -> None:
    """Part from the other processes, when all of them are done."""
    if distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def process_device() -> torch.device:
    """The GPU of this process, or the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return torch.device("cpu")


def is_first_process() -> bool:
    """Whether this is the only process, or the first of several."""
    return not distributed.is_initialized() or distributed.get_rank() == 0
