"""Worker processes end with the process that started them, even if that one is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm_processes

from clnet.phantom import PhantomSettings, make_phantom

POOL = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from clnet.processes import end_with_parent

def name_of_worker(_):
    time.sleep(0.3)
    return os.getpid()

if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, multiprocessing.get_context(sys.argv[1]), end_with_parent)
    print(*set(pool.map(name_of_worker, range(6))), flush=True)
    time.sleep(600)
"""
# The loaders of `clnet predict` while the network works on the first breast: they have filled their pipes.
LOADERS = """
import multiprocessing, time
from pathlib import Path
import clnet
from clnet.predict.breasts import find_breasts

multiprocessing.set_start_method("fork", force=True)
model = clnet.load("phantom", "cpu")
batches = model.analyse(list(find_breasts("images").breasts) * 8, batch_size=1, workers=2)
next(batches)
time.sleep(3)
Path("part").write_text(" ".join(str(child.pid) for child in multiprocessing.active_children()))
Path("part").rename("workers")
time.sleep(600)
"""


# One worker looks only after its parent was killed; the other holds the pipe that would have told it.
LATE = """
import multiprocessing, os, time
from clnet.processes import end_with_parent

def look_late(parent):
    while os.getppid() == parent:
        time.sleep(0.02)
    end_with_parent()
    time.sleep(600)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=look_late, args=(os.getpid(),)),
        context.Process(target=time.sleep, args=(600,)),
    ]
    for worker in workers:
        worker.start()
    print(*(worker.pid for worker in workers), flush=True)
    time.sleep(600)
"""

OF_TORCHRUN = """
import os, sys, time
from pathlib import Path
from clnet.distributed import join_processes

join_processes()
part = Path(os.environ["RANK"] + ".part")
part.write_text(str(os.getpid()))
part.rename(os.environ["RANK"])
time.sleep(600)
"""


def is_alive(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def left_after_kill(process, workers):
    """Which workers are alive 20 seconds after the process is killed; they are killed too."""
    assert len(workers) == 2 and all(map(is_alive, workers))
    os.kill(process, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = [number for number in workers if is_alive(number)]
    for number in left:
        os.kill(number, signal.SIGKILL)
    return left


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_end_when_the_process_that_started_them_is_killed(tmp_path, method):
    (tmp_path / "pool.py").write_text(POOL)
    with subprocess.Popen(
        [sys.executable, tmp_path / "pool.py", method], stdout=subprocess.PIPE, text=True
    ) as process:
        workers = [int(number) for number in process.stdout.readline().split()]
        assert left_after_kill(process.pid, workers) == []


def test_a_worker_whose_parent_was_killed_before_it_looked_ends(tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    with subprocess.Popen(
        [sys.executable, tmp_path / "late.py"], stdout=subprocess.PIPE, text=True
    ) as process:
        late, sleeper = (int(number) for number in process.stdout.readline().split())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 20
        while is_alive(late) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = [number for number in (late, sleeper) if is_alive(number)]
        for number in left:
            os.kill(number, signal.SIGKILL)
    assert left == [sleeper]


@pytest.mark.slow
def test_loaders_end_when_a_prediction_is_killed(tmp_path):
    make_phantom(tmp_path, PhantomSettings(4, rows=160, columns=112), workers=1)
    process = warm_processes.start(["-c", LOADERS], tmp_path, errors=tmp_path / "errors.txt")
    deadline = time.monotonic() + 500
    while not (tmp_path / "workers").exists():
        assert process.is_alive() and time.monotonic() < deadline, (tmp_path / "errors.txt").read_text()
        time.sleep(0.05)
    workers = [int(number) for number in (tmp_path / "workers").read_text().split()]
    assert left_after_kill(process.pid, workers) == []
    process.join()


@pytest.mark.slow
def test_processes_of_torchrun_end_when_torchrun_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(OF_TORCHRUN)
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "script.py"]
    with (tmp_path / "log.txt").open("w") as log:
        torchrun = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stdout=log, stderr=log)
    files = [tmp_path / "0", tmp_path / "1"]
    deadline = time.monotonic() + 500
    while not all(file.exists() for file in files):
        assert torchrun.poll() is None and time.monotonic() < deadline, (tmp_path / "log.txt").read_text()
        time.sleep(0.1)
    assert left_after_kill(torchrun.pid, [int(file.read_text()) for file in files]) == []
    torchrun.wait()
