"""Time of a fresh process to its first result, and what compiling the kernel adds once."""

import tempfile
from typing import Any

from benchmarks.clocks import run_code

FIRST_RESULTS = """
import time
start = time.perf_counter()
import torch
from network_configs import build
imported = time.perf_counter()
torch.manual_seed(0)
network, image = build().eval(), torch.rand(1, 2, 160, 96)
with torch.inference_mode():
    built = time.perf_counter()
    network(image)
    first = time.perf_counter()
    network(image)
    print(imported - start, built - imported, first - built, time.perf_counter() - first)
"""
PARTS = ("import", "build", "first_result", "second_result")


def first_results(**variables: str) -> dict[str, float]:
    """Wall seconds of the small network's first steps in a process of its own."""
    return dict(zip(PARTS, run_code(FIRST_RESULTS, **variables), strict=True))


def start() -> dict[str, Any]:
    """The first process compiles, the second finds what it compiled, the third takes the reference."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            "kernel_compiled": first_results(NUMBA_CACHE_DIR=cache),
            "kernel_from_cache": first_results(NUMBA_CACHE_DIR=cache),
            "reference": first_results(CLNET_ATTENTION="reference"),
        }
