"""How kernels that numba compiles come to run: compiled once a machine, in torch's number of threads."""

import functools
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch


def compile_cached(compile_it: Callable[[bool], Any]) -> Any:
    """What `compile_it` makes, with numba's cache on disk (True) or, where that does not work, without.

    Raises:
        Exception: of any kind, where numba is missing or does not work.
    """
    try:
        return compile_it(True)
    except Exception:
        # The cache may have no folder it can write to, or hold what somebody's full disk left of it.
        return compile_it(False)


def in_threads(kernel: Any, arguments: tuple[Any, ...], total: int, many: bool) -> None:
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
