"""Commands run inside the process of the tests: starting Python with MONAI takes longer than most of them.

Where the process itself is what a test is about (it is killed, it is one of several, its exit status is read
by a shell), the test starts one.
"""

import gc
import io
import logging
import os
import random
import runpy
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import torch
from monai.utils import set_determinism
from warm_processes import SETTINGS


def run_module(module, *words, folder):
    """`python -m module words…` in a folder; the outcome as of `subprocess.run`."""
    said, errors = io.StringIO(), io.StringIO()
    words = [str(word) for word in words]
    with (
        like_a_new_process(folder, words),
        redirect_stdout(said),
        redirect_stderr(errors),
        redirect_logs(errors),
    ):
        status = 0
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as leaving:
            status = leaving.code or 0
            if not isinstance(status, int):
                errors.write(f"{status}\n")
                status = 1
        except Exception:
            sys.excepthook(*sys.exc_info())
            status = 1
    return subprocess.CompletedProcess([module, *words], status, said.getvalue(), errors.getvalue())


def run_outside(command, folder, timeout=600):
    """A command in one or more processes of its own; the outcome as of `subprocess.run`."""
    command = [str(word) for word in command]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, env={**os.environ, **SETTINGS}, **pipes) as process:
        try:
            said, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.terminate()  # torchrun then ends its workers, which would outlive it if it were killed
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, errors)


def instead_of_subprocess(command, *, cwd, stdout, **_):
    """What `subprocess.run` does for a script that runs `python -m …` and keeps its output in a file."""
    done = run_module(*command[command.index("-m") + 1 :], folder=cwd)
    stdout.write(done.stdout + done.stderr)
    return done


@contextmanager
def like_a_new_process(folder, words=()):
    """Another folder, command line and environment; what a run changes in the process is put back."""
    before = Path.cwd(), sys.argv, dict(os.environ), sys.excepthook, torch.get_num_threads()
    random_numbers = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    loggers = {logger: state_of(logger) for logger in all_loggers()}
    os.chdir(folder)
    sys.argv = ["", *words]
    os.environ.update(SETTINGS)
    sys.excepthook = sys.__excepthook__
    torch.set_num_threads(1)
    try:
        yield
    finally:
        here, sys.argv, environment, sys.excepthook, threads = before
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
        torch.set_num_threads(threads)
        set_determinism(None)
        random.setstate(random_numbers[0])
        np.random.set_state(random_numbers[1])  # noqa: NPY002
        torch.set_rng_state(random_numbers[2])
        for logger in all_loggers():
            restore(logger, *loggers.get(logger, (logging.NOTSET, [], False, True)))
        gc.collect()


@contextmanager
def redirect_logs(stream):
    """Of loggers that were made before, with the output of their time."""
    handlers = {handler for logger in all_loggers() for handler in logger.handlers}
    before = {
        handler: handler.setStream(stream) for handler in handlers if type(handler) is logging.StreamHandler
    }
    try:
        yield
    finally:
        for handler, stream_before in before.items():
            handler.setStream(stream_before)


def all_loggers():
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in known if isinstance(logger, logging.Logger))]


def state_of(logger):
    return logger.level, list(logger.handlers), logger.disabled, logger.propagate


def restore(logger, level, handlers, disabled, propagate):
    logger.setLevel(level)
    logger.handlers[:] = handlers
    logger.disabled, logger.propagate = disabled, propagate
