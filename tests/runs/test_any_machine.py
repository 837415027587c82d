"""macOS and Windows have no `os.sched_getaffinity`, Windows has no `resource`: clnet needs neither."""

import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import warm_processes
from small_training import small_evaluator, small_trainer


@pytest.fixture
def another_machine(monkeypatch):
    """Imports of phantom and runs as on a machine without them; afterwards all is as it was.

    Only of these two rooms: PyTorch does not survive that the operators of `clnet.ops` are registered twice.
    """
    rooms = ("clnet.phantom", "clnet.runs")
    for room in rooms:
        importlib.import_module(room)
    before = {name: module for name, module in sys.modules.items() if name.startswith(rooms)}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setitem(sys.modules, "resource", None)
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: not path.is_relative_to("/proc") and exists(path))
    yield
    for name in [name for name in sys.modules if name.startswith(rooms)]:
        del sys.modules[name]
    sys.modules |= before
    for room in rooms:  # the package has them as attributes, too
        setattr(sys.modules["clnet"], room.removeprefix("clnet."), sys.modules[room])


IMPORT_EVERYTHING = """
import importlib, os, pkgutil, sys
sys.modules["resource"] = None
if hasattr(os, "sched_getaffinity"):
    del os.sched_getaffinity
import clnet
apart = ("clnet.apps", "clnet.ops.triton_")  # these need packages of their own
for module in pkgutil.walk_packages(clnet.__path__, "clnet.", onerror=lambda name: None):
    if not module.name.startswith(apart) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


@pytest.mark.slow
def test_everything_but_apps_and_kernels_for_gpus_can_be_imported():
    done = warm_processes.run(["-c", IMPORT_EVERYTHING], Path.cwd())
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("another_machine")
def test_a_phantom_is_made_by_as_many_workers_as_there_are_cores(tmp_path, monkeypatch):
    dataset = importlib.import_module("clnet.phantom.dataset")
    asked = []

    def one_thread_instead(workers, mp_context, initializer):
        asked.append(workers)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(dataset, "ProcessPoolExecutor", one_thread_instead)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    dataset.make_phantom(tmp_path, dataset.PhantomSettings(pairs=3, rows=96, columns=64))
    assert asked == [7]
    assert (tmp_path / "datalist.json").exists()


@pytest.mark.usefixtures("another_machine")
def test_a_training_is_measured_and_recorded(tmp_path):
    cost = importlib.import_module("clnet.runs.cost")
    record = importlib.import_module("clnet.runs.record")
    progress = importlib.import_module("clnet.runs.progress")
    assert cost.peak_memory() is None
    evaluator = small_evaluator()
    handlers = [
        cost.Cost(),
        record.RunRecord(tmp_path, {}, evaluator),
        progress.Progress(tmp_path, evaluator),
    ]
    small_trainer(handlers, evaluator, max_epochs=1).run()
    run = record.read_run(tmp_path)
    assert run["status"] == "finished"
    assert set(run["cost"]) == {"training_seconds", "pairs_per_second", "data_loading_share"}
