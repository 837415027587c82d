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
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(words[3]) == session and words[0] not in "ZX":
            found.append(int(file.parent.name))
    return found
