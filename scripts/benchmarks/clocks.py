"""Time what is compared in turn, so that whatever else the machine does hits all sides."""

import statistics
import time
from collections.abc import Callable
from typing import Any

Work = dict[str, Callable[[], Any]]


def take_turns(work: Work, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of CPU and of wall clock of each function, after one call that is not counted."""
    cpu: dict[str, list[float]] = {name: [] for name in work}
    wall: dict[str, list[float]] = {name: [] for name in work}
    for function in work.values():
        function()
    for _ in range(rounds):
        for name, function in work.items():
            start = time.process_time(), time.perf_counter()
            function()
            cpu[name].append(time.process_time() - start[0])
            wall[name].append(time.perf_counter() - start[1])
    return {
        name: {"cpu": statistics.median(cpu[name]), "wall": statistics.median(wall[name])} for name in work
    }


def times_as_fast(times: dict[str, dict[str, float]], ours: str, theirs: str) -> float:
    """How many times as fast the one is as the other, by CPU time."""
    return times[theirs]["cpu"] / times[ours]["cpu"]
