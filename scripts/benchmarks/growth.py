"""How time and memory of the paper's network grow with images, queries, batch and threads."""

from typing import Any

import torch
from benchmarks.clocks import run_code, take_turns
from network_configs import build

USUAL = {"rows": 256, "queries": 125, "batch": 1, "threads": 1}
TRIED = {"rows": (128, 256, 512, 1024), "queries": (25, 125, 500), "batch": (1, 2, 4), "threads": (1, 2)}

PEAK = """
import sys, torch
from pathlib import Path
from network_configs import build
def peak():  # not ru_maxrss, which starts from that of the process before exec
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
torch.manual_seed(0)
network, image = build("clnet", "paper"), torch.rand(1, 2, int(sys.argv[2]), int(sys.argv[2]) // 2)
before = peak()
if sys.argv[1] == "training":
    outputs = network(image).values()
    sum(output.square().mean() for output in outputs if output.requires_grad).backward()
else:
    with torch.inference_mode():
        network.eval()(image)
print(before, peak())
"""


def seconds(rows: int, queries: int, batch: int, threads: int) -> dict[str, float]:
    """CPU and wall time of inference on images twice as high as wide."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    network = build("clnet", "paper", detector__object_queries=queries).eval()
    image = torch.rand(batch, 2, rows, rows // 2)
    with torch.inference_mode():
        return take_turns({"pair": lambda: network(image)}, 1)["pair"]


def growth() -> dict[str, Any]:
    """CPU and wall time with one setting changed at a time."""
    return {
        name: {str(value): seconds(**USUAL | {name: value}) for value in values}
        for name, values in TRIED.items()
    }


def memory() -> dict[str, Any]:
    """Peak memory in MiB, each case in a process of its own; from /proc, so on Linux only."""
    result = {}
    for kind in ("inference", "training"):
        for rows in (512, 1024):
            before, peak = run_code(PEAK, kind, str(rows))
            result[f"{kind} {rows}x{rows // 2}"] = {"before": before, "peak": peak}
    return result
