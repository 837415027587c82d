"""A program that is killed: a forked process with a session of its own, so that its orphans are found.

This process has imported and compiled already what the programs need, so that they begin at once and nearly
all kills hit them at their work. Some programs are started from nothing, as a shell starts them.
"""

import math
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import highdicom  # noqa: F401
import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
import monai.bundle  # noqa: F401
import torch
from tortures.orphans import children_of, orphans_of

import clnet.networks
import clnet.predict.folder_run  # noqa: F401
from clnet.cli.main import main
from clnet.ops import cpu_attention

torch.set_num_threads(1)  # a forked process has no other threads
cpu_attention.prepare(torch.float32)
PATIENCE = 3600  # seconds, for a program that is not killed
EVERY, FIRST = 20, 10  # of so many kills, one hits a program started from nothing: the 11th, the 31st, …


def is_from_nothing(kill: int) -> bool:
    """Whether the program of this kill is started from nothing."""
    return kill % EVERY == FIRST


class Victim:
    """A function in a process of its own.

    Args:
        act: what it does; its result is the exit status.
        log: the file for what it says.
        folder: in which it runs.
    """

    def __init__(self, act: Callable[[], int | None], log: Path, folder: Path) -> None:
        self.peak_mb, self._log = 0, log
        self._status: int | None = None
        self._used: dict[int, float] = {}
        self.pid = os.fork()
        if self.pid == 0:
            _become(act, log, folder)

    def wait(self, seconds: float = PATIENCE, computed: float = math.inf) -> int | None:
        """Its exit status, or minus the signal that ended it; None if it is still running after this time.

        Args:
            seconds: by the clock on the wall.
            computed: seconds that it and its workers have computed; the same moment on a busy machine.
        """
        until = time.monotonic() + seconds
        while self._status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
                self.peak_mb = usage.ru_maxrss // 1024
            elif time.monotonic() > until or (computed < math.inf and self.computed() > computed):
                return None
            else:
                time.sleep(0.02)
        return self._status

    def alone(self) -> float:
        """Wait until it ends by itself, without an error; returns the seconds that it has computed."""
        if self.wait(computed=PATIENCE):
            raise RuntimeError(f"what is to be killed fails by itself:\n{self._log.read_text()[-4000:]}")
        return self.computed()

    def computed(self) -> float:
        """Seconds that it and its workers have computed so far."""
        for process in (self.pid, *children_of(self.pid)):
            with suppress(OSError):  # it has ended
                self._used[process] = time.clock_gettime(~process << 3 | 2)  # Linux's clock of a process
        return sum(self._used.values())

    def kill(self) -> int:
        """SIGKILL it, and it alone; returns how many of its processes live on for long. They end here."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return self.orphans()

    def last_line(self) -> str:
        """The last line of what it and those before it said."""
        return next(filter(None, reversed(self._log.read_text(errors="replace").splitlines())), "no output")

    def orphans(self) -> int:
        """How many processes of its session live on; they are killed."""
        return orphans_of(self.pid)


def from_nothing(*words: object) -> int:
    """`python words…`."""
    os.execv(sys.executable, [sys.executable, "-W", "ignore", *map(str, words)])  # noqa: S606


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
        torch.set_num_threads(1)  # a fork needs a new pool, and threads that all begin by making one fail
        status = act() or 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)
