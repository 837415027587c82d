"""Processes that outlive the one that started them."""

import os
import signal
import time
from pathlib import Path

ORPHANS_END = 300  # seconds; a busy machine may take long to end a process, an orphan never ends


def orphans_of(session: int, seconds: float = ORPHANS_END) -> int:
    """How many processes of a session are alive after some time; they are killed."""
    until = time.monotonic() + seconds
    while (left := members(session)) and time.monotonic() < until:
        while _is_alive(left[0]) and time.monotonic() < until:  # cheaper than to look for all of them
            time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        words = _words(folder.name)
        if words and int(words[3]) == session and words[0] not in "ZX":
            found.append(int(folder.name))
    return found


def children_of(process: int) -> list[int]:
    """The processes that the first thread of a process started and has not waited for."""
    try:
        return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]
    except OSError:  # it has ended
        return []


def _is_alive(process: int) -> bool:
    words = _words(process)
    return bool(words) and words[0] not in "ZX"


def _words(process: int | str) -> list[str]:
    """What the system says about a process, behind its name; nothing if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
