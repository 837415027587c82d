"""Worker processes that end with the process that started them, even if that one was killed."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable

SECONDS_BETWEEN_LOOKS = 1.0


def end_with_parent(*_: object) -> None:
    """End this process soon after its parent has ended; to be called when a worker starts.

    A worker of a parent that was killed would wait for ever: its brothers and sisters hold the other ends of
    its pipes. For `DataLoader` (``worker_init_fn``) and `ProcessPoolExecutor` (``initializer``).
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if os.getppid() == parent.pid:
        _end_unless(lambda: os.getppid() == parent.pid)
    else:  # a fork server started this process, or the parent was killed before it came here
        _end_unless(lambda: parent.is_alive() and _is_there(parent.pid))


def end_with_torchrun() -> None:
    """End this process soon after the torchrun that started it, if one did.

    torchrun ends its processes when it is told to end, but not when it is killed; they would go on, and a
    second run would write to the same folder as they do.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        torchrun = os.getppid()
        _end_unless(lambda: os.getppid() == torchrun)


def _end_unless(is_alive: Callable[[], bool]) -> None:
    def watch() -> None:
        while is_alive():
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)  # nobody is left who could be told

    threading.Thread(target=watch, daemon=True).start()


def _is_there(process: int | None) -> bool:
    """Whether there is such a process; a pipe that its other children hold does not tell."""
    if process is None or not hasattr(os, "fork"):  # where signal 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
