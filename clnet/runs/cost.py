"""What a training costs: pairs per second, the share of time that waits for data, peak memory."""

import importlib
import re
import sys
import time
from pathlib import Path

import ignite.distributed as idist
import torch
from ignite.engine import Events
from monai.engines.trainer import SupervisedTrainer


class Cost:
    """Keeps ``engine.state.cost`` up to date, after every epoch and at the end:

    - ``training_seconds``: from the first batch asked for to the last iteration of each epoch, summed since
      the run was started or resumed; validation and checkpoints do not count;
    - ``pairs_per_second``: over that time, of all processes together;
    - ``data_loading_share``: of that time, in [0, 1], how much was spent waiting for batches;
    - ``peak_memory_gb``: the most that this process (without its data workers) held at any time, 10⁹ bytes,
      where the system tells;
    - ``peak_gpu_memory_gb``: the most that tensors took on this process's GPU, where there is one.

    Attach it first, so that the other handlers find the final values at the end.
    """

    def __init__(self) -> None:
        self._pairs = 0
        self._seconds = 0.0
        self._waited = 0.0
        self._asked_at = 0.0
        self._counted_until: float | None = None

    def attach(self, engine: SupervisedTrainer) -> None:
        """Measure in every process; all of them may ask."""
        engine.state.cost = {}
        engine.add_event_handler(Events.EPOCH_STARTED, self._epoch_started)
        engine.add_event_handler(Events.GET_BATCH_STARTED, self._batch_asked_for)
        engine.add_event_handler(Events.GET_BATCH_COMPLETED, self._batch_came)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._iteration_completed)
        engine.add_event_handler(Events.EPOCH_COMPLETED | Events.COMPLETED, self._sum_up)

    def _epoch_started(self, engine: SupervisedTrainer) -> None:
        self._counted_until = None

    def _batch_asked_for(self, engine: SupervisedTrainer) -> None:
        self._asked_at = time.perf_counter()
        if self._counted_until is None:
            self._counted_until = self._asked_at

    def _batch_came(self, engine: SupervisedTrainer) -> None:
        self._waited += time.perf_counter() - self._asked_at
        self._pairs += len(engine.state.batch["image"]) * idist.get_world_size()

    def _iteration_completed(self, engine: SupervisedTrainer) -> None:
        now = time.perf_counter()
        if self._counted_until is not None:
            self._seconds += now - self._counted_until
        self._counted_until = now

    def _sum_up(self, engine: SupervisedTrainer) -> None:
        if not self._seconds:
            return
        engine.state.cost = {
            "training_seconds": self._seconds,
            "pairs_per_second": self._pairs / self._seconds,
            "data_loading_share": self._waited / self._seconds,
        }
        if (peak := peak_memory()) is not None:
            engine.state.cost["peak_memory_gb"] = peak / 1e9
        if engine.state.device.type == "cuda":
            engine.state.cost["peak_gpu_memory_gb"] = (
                torch.cuda.max_memory_allocated(engine.state.device) / 1e9
            )


def peak_memory() -> int | None:
    """The most bytes of memory that this process ever held; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():
        # Where it can be had, this is better than getrusage, which in a process that was started by a larger
        # one gives the peak of the larger one.
        peak = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
        if peak:
            return int(peak[1]) * 1024
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows
        return None
    used: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
