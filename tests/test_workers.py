"""Worker processes end with the process that started them, even if that one is killed."""

import os
import signal
import time
from pathlib import Path

import pytest
import warm_processes

from clnet.phantom import PhantomSettings, make_phantom

SAY = """
import multiprocessing, time
from pathlib import Path
children = [str(child.pid) for child in multiprocessing.active_children()]
Path("part").write_text(" ".join(children))
Path("part").rename("workers")
time.sleep(600)
"""
# The loaders of `clnet predict`, while the network works on the first breast.
LOADERS = f"""
import clnet
from clnet.predict.breasts import find_breasts

model = clnet.load("phantom", "cpu")
batches = model.analyse(list(find_breasts("images").breasts) * 8, batch_size=1, workers=2)
next(batches)
{SAY}
"""
# The pool that reads the headers of many files, half-way.
HEADERS = f"""
from pathlib import Path
from clnet.data import study

found = study._read_all(sorted(Path("images").iterdir()) * 200, 2)
next(found)
{SAY}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    make_phantom(folder, PhantomSettings(4, rows=160, columns=112), workers=1)
    return folder


def is_alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("code", "method"),
    [(LOADERS, "fork"), (HEADERS, "fork"), (HEADERS, "forkserver")],
    ids=["loaders, fork", "headers, fork", "headers, forkserver"],
)
def test_workers_end_when_the_process_that_started_them_is_killed(folder, code, method):
    code = f"import multiprocessing\nmultiprocessing.set_start_method({method!r}, force=True)\n{code}"
    (folder / "workers").unlink(missing_ok=True)
    process = warm_processes.start(["-c", code], folder, errors=folder / "errors.txt")
    deadline = time.monotonic() + 300
    while not (folder / "workers").exists():
        assert process.is_alive() and time.monotonic() < deadline, (folder / "errors.txt").read_text()
        time.sleep(0.05)
    workers = [int(number) for number in (folder / "workers").read_text().split()]
    assert len(workers) == 2 and all(map(is_alive, workers))
    time.sleep(3)  # until they have filled what nobody empties
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [number for number in workers if is_alive(number)]
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert left == []
