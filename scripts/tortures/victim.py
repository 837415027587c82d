"""A program that is killed: a forked process with a session of its own, so that its orphans are found.

This process has imported PyTorch and MONAI already, so that a program begins at once and most kills hit it at
its work.
"""

import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import highdicom  # noqa: F401
import mlflow  # noqa: F401
import monai.bundle  # noqa: F401
import torch
from tortures.orphans import orphans_of

import clnet.predict.folder_run  # noqa: F401
from clnet.cli.main import main

torch.set_num_threads(1)  # a forked process has no other threads
PATIENCE = 3600  # seconds, for a program that is not killed


class Victim:
    """A function in a process of its own.

    Args:
        act: what it does; its result is the exit status.
        log: the file for what it says.
        folder: in which it runs.
    """

    def __init__(self, act: Callable[[], int | None], log: Path, folder: Path) -> None:
        self.peak_mb = 0
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _become(act, log, folder)

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """Its exit status, or minus the signal that ended it; None if it is still running after this time."""
        until = time.monotonic() + seconds
        while self._status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
                self.peak_mb = usage.ru_maxrss // 1024
            elif time.monotonic() > until:
                return None
            else:
                time.sleep(0.002)
        return self._status

    def kill(self) -> int:
        """SIGKILL it, and it alone; returns how many of its processes live on for long. They end here."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return self.orphans()

    def orphans(self) -> int:
        """How many processes of its session live on; they are killed."""
        return orphans_of(self.pid)


def command(*words: object) -> int:
    """`clnet words…`."""
    return main([str(word) for word in words])


def bundle(*words: object) -> int:
    """`python -m monai.bundle words…`."""
    sys.argv = ["monai.bundle", *map(str, words)]
    runpy.run_module("monai.bundle", run_name="__main__", alter_sys=True)
    return 0


def _become(act: Callable[[], int | None], log: Path, folder: Path) -> None:
    status = 1
    try:
        os.setsid()
        number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(number, descriptor)
        os.chdir(folder)
        status = act() or 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)
