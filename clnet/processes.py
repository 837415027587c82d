"""Worker processes that end with the process that started them, even if that one was killed."""

import multiprocessing
import os
import threading
import time
from multiprocessing.process import BaseProcess

SECONDS_BETWEEN_LOOKS = 1.0


def end_with_parent(*_: object) -> None:
    """End this process soon after its parent has ended; to be called when a worker starts.

    A worker of a parent that was killed would wait for ever: its brothers and sisters hold the other ends of
    its pipes. For `DataLoader` (``worker_init_fn``) and `ProcessPoolExecutor` (``initializer``).
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    if os.getppid() == parent.pid:
        while os.getppid() == parent.pid:
            time.sleep(SECONDS_BETWEEN_LOOKS)
    else:  # a fork server started this process, or the parent was killed before it came here
        while parent.is_alive() and _is_there(parent.pid):
            time.sleep(SECONDS_BETWEEN_LOOKS)
    os._exit(1)  # nobody is left who could be told


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
