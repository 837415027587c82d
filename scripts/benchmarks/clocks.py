"""Time functions in turn, so that other work on the machine affects all of them alike."""

import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Function = Callable[[], Any]
Times = dict[str, dict[str, float]]
ROUNDS = {"512x256": 7, "1024x512": 3}
"""Rounds for whole networks, by the size of the image; large ones take minutes per round."""


def take_turns(work: Mapping[str, Function], rounds: int) -> Times:
    """Median CPU and wall seconds of each function, after one call that is not counted."""
    for function in work.values():
        function()
    return _medians({name: partial(timed, function) for name, function in work.items()}, rounds)


def take_turns_apart(makers: Mapping[str, Callable[[], Function]], rounds: int) -> Times:
    """`take_turns` with each function made and called in its own process.

    So memory that one function frees is not reused by another.
    """
    spawn = multiprocessing.get_context("spawn")
    pipes, processes = {}, []
    for name, make in makers.items():
        pipes[name], theirs = spawn.Pipe()
        processes.append(spawn.Process(target=_serve, args=(make, theirs), daemon=True))
        processes[-1].start()
        theirs.close()
    for pipe in pipes.values():
        _ask(pipe)
    medians = _medians({name: partial(_ask, pipe) for name, pipe in pipes.items()}, rounds)
    for pipe in pipes.values():
        pipe.close()
    for process in processes:
        process.join()
    return medians


def timed(function: Function) -> tuple[float, float]:
    """CPU and wall seconds of one call."""
    start = time.process_time(), time.perf_counter()
    function()
    return time.process_time() - start[0], time.perf_counter() - start[1]


def run_code(code: str, *words: str, **variables: str) -> list[float]:
    """The numbers that a fresh Python process prints, with modules of scripts/ at hand."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(number) for number in done.stdout.split()]


def times_as_fast(times: Times, ours: str, theirs: str) -> float:
    """How many times as fast ours is as theirs, by CPU time."""
    return times[theirs]["cpu"] / times[ours]["cpu"]


def _medians(calls: Mapping[str, Callable[[], tuple[float, float]]], rounds: int) -> Times:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(call())
    return {
        name: dict(zip(("cpu", "wall"), map(statistics.median, zip(*pairs, strict=True)), strict=True))
        for name, pairs in found.items()
    }


def _ask(pipe: Connection) -> tuple[float, float]:
    pipe.send(None)
    return pipe.recv()


def _serve(make: Callable[[], Function], pipe: Connection) -> None:
    function = make()
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        pipe.send(timed(function))
