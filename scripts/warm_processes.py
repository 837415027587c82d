"""Python processes that need not import MONAI first: they are forked by a server that has imported it.

For tests and trials in which the process matters (it is killed, it is one of several, its exit status is
read) and the import of MONAI does not. Each process has its own folder, environment, command line, output and
random numbers, and imports clnet by itself.
"""

import atexit
import multiprocessing
import os
import random
import runpy
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

# One thread, so that runs can be compared to the bit, and no tracking server of the developer's.
SETTINGS = {"OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": ""}
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["monai.bundle", "mlflow", "highdicom"])
_started: list[BaseProcess] = []


@atexit.register
def _end() -> None:
    """Kill what a test that failed has left, and wait, so that `time` counts what all processes took."""
    for process in _started:
        if process.is_alive():
            process.kill()
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def start(
    words: Sequence[Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    output: str | Path = os.devnull,
    errors: str | Path = os.devnull,
) -> BaseProcess:
    """Start `python words…`, as a `multiprocessing.Process` and the first of a process group.

    Args:
        words: `-m module …` or `-c code …`.
        folder: in which it runs.
        environment: its variables; by default those of this process and `SETTINGS`.
        output: file that its output is appended to.
        errors: the same for standard error.
    """
    files = str(output), str(errors)
    arguments = [str(word) for word in words], str(folder), dict(environment or usual()), *files
    process = CONTEXT.Process(target=_become, args=arguments)
    process.start()
    _started.append(process)
    return process


def run(
    words: Sequence[Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    processes: int = 1,
    timeout: float = 600,
) -> "subprocess.CompletedProcess[str]":
    """Run `python words…` once, or several times with what torchrun tells each; as of `subprocess.run`."""
    with tempfile.TemporaryDirectory() as logs:
        outputs, errors = ([Path(logs, f"{rank}.{kind}") for rank in range(processes)] for kind in "oe")
        started = [
            start(words, folder, {**(environment or usual()), **variables}, *files)
            for variables, *files in zip(_of_ranks(processes), outputs, errors, strict=True)
        ]
        deadline = time.monotonic() + timeout
        while any(process.is_alive() for process in started):
            # The others would wait for ever for one that has failed.
            if any(process.exitcode for process in started) or time.monotonic() > deadline:
                for process in started:
                    process.kill()
            time.sleep(0.02)
        said, complaints = ("".join(map(Path.read_text, files)) for files in (outputs, errors))
    if time.monotonic() > deadline:
        raise subprocess.TimeoutExpired(words, timeout, said, complaints)
    status = max((process.exitcode or 0 for process in started), key=abs)
    return subprocess.CompletedProcess(words, status, said, complaints)


class InsteadOfPopen:
    """`subprocess.Popen` of a script that runs `python … -m …` and appends its output to a file."""

    def __init__(
        self, command: list[str], *, cwd: Path, env: Mapping[str, str], stdout: Any, **_: Any
    ) -> None:
        self.process = start(command[command.index("-m") :], cwd, env, stdout.name, stdout.name)

    def wait(self) -> int | None:
        """Wait for its end; returns the exit status."""
        self.process.join()
        return self.process.exitcode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.terminate()


def usual() -> dict[str, str]:
    """The variables of a process that a test starts."""
    return {**os.environ, **SETTINGS}


def _of_ranks(processes: int) -> list[dict[str, str]]:
    """The variables by which torchrun tells each process who it is; none for one that is alone."""
    if processes == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    return [{**world, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]


def _become(words: list[str], folder: str, environment: dict[str, str], *files: str) -> None:
    """In the new process: do what `python words…` does."""
    os.setsid()
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    torch = sys.modules["torch"]
    torch.set_num_threads(torch.get_num_threads())  # threads that all begin by making a fork's new pool fail
    random.seed()
    sys.modules["numpy"].random.seed()
    how, what, *rest = words
    sys.argv = [how, *rest]
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})  # noqa: S102
    except Exception:
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()
