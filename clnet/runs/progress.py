"""What a person sees of a training: a bar with the time left, a table after each validation, a summary."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monai.engines.trainer import SupervisedTrainer
from monai.engines.workflow import Workflow
from tqdm import tqdm

from clnet.runs.watching import LossMeans, TrainingHandler, learning_rates, say, single_numbers

SECONDS_BETWEEN_READINGS = 1.0


class Progress(TrainingHandler):
    """On a terminal, one bar over all iterations of the run; elsewhere, as in a log file, a line per epoch.

    Args:
        run_dir: the folder of the run, named at the end.
        evaluator: the engine of the validation.
    """

    def __init__(self, run_dir: str | Path, evaluator: Workflow | None = None) -> None:
        super().__init__(evaluator)
        self.run_dir = Path(run_dir)
        self._bar: tqdm[Any] | None = None
        self._of_bar, self._of_epoch = LossMeans(), LossMeans()
        self._began: float | None = None
        self._first_iteration = 0
        self._read_at = 0.0

    def _epoch_started(self, engine: SupervisedTrainer) -> None:
        if self._began is not None:
            return
        # Known only now, since a checkpoint may have been loaded: where the run starts.
        self._began, self._first_iteration = time.monotonic(), engine.state.iteration
        if sys.stderr.isatty():
            self._bar = tqdm(
                total=_all_iterations(engine),
                initial=engine.state.iteration,
                desc=_epoch_of(engine),
                unit="step",
                dynamic_ncols=True,
                file=sys.stderr,
            )

    def _iteration_completed(self, engine: SupervisedTrainer) -> None:
        if self._bar is None:
            self._of_epoch.add(engine)
            return
        self._of_bar.add(engine)
        if time.monotonic() - self._read_at >= SECONDS_BETWEEN_READINGS:
            self._read_at = time.monotonic()
            self._bar.set_description_str(_epoch_of(engine), refresh=False)
            self._bar.set_postfix_str(_readings(self._of_bar.take(), engine), refresh=False)
        self._bar.update()

    def _epoch_completed(self, engine: SupervisedTrainer) -> None:
        if self._bar is not None or self._began is None:
            return
        done = engine.state.iteration - self._first_iteration
        left = (
            (time.monotonic() - self._began)
            / max(done, 1)
            * (_all_iterations(engine) - engine.state.iteration)
        )
        say(f"{_epoch_of(engine)}: {_readings(self._of_epoch.take(), engine)}, {_duration(left)} left")

    def _validated(self, evaluator: Workflow, engine: SupervisedTrainer) -> None:
        metrics = single_numbers(evaluator.state.metrics)
        notes = {}
        if evaluator.state.key_metric_name in metrics:
            best, epoch = evaluator.state.best_metric, evaluator.state.best_metric_epoch
            is_best = epoch == engine.state.epoch
            notes[evaluator.state.key_metric_name] = (
                "the best so far" if is_best else f"best: {best:.4f}, epoch {epoch}"
            )
        numbers = {name: f"{value:.4f}" for name, value in metrics.items()}
        say(f"validation after {_epoch_of(engine)}\n{table(numbers, notes)}")

    def _completed(self, engine: SupervisedTrainer) -> None:
        self._close()
        rows = {"results": str(self.run_dir)}
        cost: dict[str, float] = getattr(engine.state, "cost", {})
        if cost:
            rows |= {
                "training speed": f"{cost['pairs_per_second']:.1f} pairs/s",
                "data loading": f"{cost['data_loading_share']:.1%} of the training time",
            }
        for name, words in (("peak_memory_gb", "peak memory"), ("peak_gpu_memory_gb", "peak GPU memory")):
            if name in cost:
                rows[words] = f"{cost[name]:.2f} GB"
        took = "" if self._began is None else f" in {_duration(time.monotonic() - self._began)}"
        say(f"trained to {_epoch_of(engine)}{took}\n{table(rows)}")

    def _failed(self, engine: SupervisedTrainer, error: BaseException) -> None:
        self._close()

    def _close(self) -> None:
        """Leave the bar on the screen as it is, so that what follows stands below it."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def table(rows: Mapping[str, str], notes: Mapping[str, str] | None = None) -> str:
    """Indented rows of a name, its value, and a note where there is one, in columns."""
    notes = notes or {}
    names = max(map(len, rows), default=0)
    values = max(map(len, rows.values()), default=0)
    lines = (f"  {name:<{names}}  {value:<{values}}  {notes.get(name, '')}" for name, value in rows.items())
    return "\n".join(line.rstrip() for line in lines)


def _all_iterations(engine: SupervisedTrainer) -> int:
    return engine.state.max_epochs * engine.state.epoch_length


def _epoch_of(engine: SupervisedTrainer) -> str:
    return f"epoch {engine.state.epoch}/{engine.state.max_epochs}"


def _readings(losses: Mapping[str, float], engine: SupervisedTrainer) -> str:
    """Losses by part, and the highest learning rate: the one that the groups' factors refer to."""
    words = [f"{name} {value:.3f}" for name, value in losses.items()]
    return ", ".join([*words, f"lr {max(learning_rates(engine).values()):.1e}"])


def _duration(seconds: float) -> str:
    """In words, to about two digits: "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
