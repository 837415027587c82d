"""Kills a process at a chosen place in what it does, which a wait of some seconds would rarely hit."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(act: Callable[[], Any]) -> int:
    """The number of Python and C functions that are called, counted in a process of its own."""
    reader, writer = os.pipe()
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def act_and_tell() -> None:
        _watched(act, count)
        os.write(writer, str(calls).encode())

    status = in_a_process(act_and_tell)
    os.close(writer)
    with os.fdopen(reader) as answer:
        told = answer.read()
    if status or not told:
        raise RuntimeError(f"what is to be killed fails by itself, with status {status}")
    return int(told)


def kill_after(calls: int, act: Callable[[], Any]) -> bool:
    """Act in a process of its own, which is killed after so many calls; whether it was."""
    left = calls

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return in_a_process(lambda: _watched(act, count)) == -signal.SIGKILL


def in_a_process(act: Callable[[], Any]) -> int:
    """Act in a forked process: its exit status, 1 after an error, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _watched(act: Callable[[], Any], count: Callable[[FrameType, str, Any], None]) -> None:
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
