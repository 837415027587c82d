"""How the cost of a pair in the paper's network grows with what it is asked to do."""

import subprocess
import sys
from typing import Any

import torch
from benchmarks.clocks import take_turns

from clnet.networks import PAPER_SETTINGS, CLNet

USUAL = {"rows": 256, "queries": 125, "batch": 1, "threads": 1}
TRIED = {"rows": (128, 256, 512, 1024), "queries": (25, 125, 500), "batch": (1, 2, 4), "threads": (1, 2)}

PEAK = """
import sys, torch
from pathlib import Path
from clnet.networks import PAPER_SETTINGS, CLNet
def peak():  # not ru_maxrss, which begins with that of the process before exec
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
torch.manual_seed(0)
network, image = CLNet(**PAPER_SETTINGS), torch.rand(1, 2, int(sys.argv[2]), int(sys.argv[2]) // 2)
before = peak()
if sys.argv[1] == "training":
    sum(output.square().mean() for output in network(image).values()).backward()
else:
    with torch.inference_mode():
        network.eval()(image)
print(before, peak())
"""


def seconds(rows: int, queries: int, batch: int, threads: int) -> dict[str, float]:
    """CPU and wall time of inference on images twice as high as wide."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    network = CLNet(**PAPER_SETTINGS | {"object_queries": queries}).eval()
    image = torch.rand(batch, 2, rows, rows // 2)
    with torch.inference_mode():
        return take_turns({"pair": lambda: network(image)}, 1)["pair"]


def growth() -> dict[str, Any]:
    """One thing is changed at a time."""
    return {
        name: {str(value): seconds(**USUAL | {name: value}) for value in values}
        for name, values in TRIED.items()
    }


def memory() -> dict[str, Any]:
    """Mebibytes that a process holds at most, as Linux tells, each case in one of its own."""
    result = {}
    for kind in ("inference", "training"):
        for rows in (512, 1024):
            said = subprocess.run(
                [sys.executable, "-c", PEAK, kind, str(rows)], check=True, capture_output=True, text=True
            )
            before, peak = map(float, said.stdout.split())
            result[f"{kind} {rows}x{rows // 2}"] = {"before": before, "peak": peak}
    return result
