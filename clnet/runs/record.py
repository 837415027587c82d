"""The record of a run in its own folder: complete, whatever happens to MLflow.

``run.json`` says what was run and how it ended; ``metrics.jsonl`` has a line for every epoch of training and
for every validation.
"""

import json
import math
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from monai.engines.trainer import SupervisedTrainer
from monai.engines.workflow import Workflow

from clnet.files import make_folder, write_text
from clnet.runs.watching import LossMeans, TrainingHandler, learning_rates, single_numbers

RUN, METRICS = "run.json", "metrics.jsonl"


class RunRecord(TrainingHandler):
    """Writes ``run.json`` and ``metrics.jsonl`` during the run.

    Attach it before the checkpoints: an epoch is then in the record before it is in the checkpoint, and a
    run killed in between repeats it. A resumed run continues the same files, without the lines of epochs
    that it repeats.

    A line of metrics is one of::

        {"kind": "training", "epoch": 1, "iteration": 40, "time": …, "cpu_seconds": …, "seconds": …,
         "losses": {"loss": …, …}, "learning_rates": {"backbone": …, …}}
        {"kind": "validation", "epoch": 1, "iteration": 40, "time": …, "cpu_seconds": …,
         "metrics": {"mean_recall": …, …}}

    where losses are means over the epoch, ``time`` counts seconds since 1970, ``cpu_seconds`` are those of
    the process since it began (without processes that load data), and a number that is not finite is null.

    Args:
        run_dir: the folder of the run.
        provenance: what was run, from `clnet.runs.provenance.run_provenance`.
        evaluator: the engine of the validation.
    """

    def __init__(
        self, run_dir: str | Path, provenance: Mapping[str, Any], evaluator: Workflow | None = None
    ) -> None:
        super().__init__(evaluator)
        self.run_dir = Path(run_dir)
        self.provenance = provenance
        self._losses = LossMeans()
        self._begun = False
        self._epoch_began: float | None = None
        self._epoch_ended = 0.0

    def _epoch_started(self, engine: SupervisedTrainer) -> None:
        if not self._begun:
            self._begin(engine)
        self._epoch_began = None

    def _batch_asked_for(self, engine: SupervisedTrainer) -> None:
        if self._epoch_began is None:
            self._epoch_began = time.monotonic()

    def _iteration_completed(self, engine: SupervisedTrainer) -> None:
        self._losses.add(engine)
        self._epoch_ended = time.monotonic()

    def _epoch_completed(self, engine: SupervisedTrainer) -> None:
        self._append(
            engine,
            kind="training",
            seconds=self._epoch_ended - (self._epoch_began or self._epoch_ended),
            losses=self._losses.take(),
            learning_rates=learning_rates(engine),
        )

    def _validated(self, evaluator: Workflow, engine: SupervisedTrainer) -> None:
        self._append(engine, kind="validation", metrics=single_numbers(evaluator.state.metrics))

    def _completed(self, engine: SupervisedTrainer) -> None:
        if self._begun:  # a resumed run may have nothing left to do
            self._end(engine, "finished")

    def _failed(self, engine: SupervisedTrainer, error: BaseException) -> None:
        if self._begun:
            self._end(engine, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed")

    def _begin(self, engine: SupervisedTrainer) -> None:
        """Known only now, since a checkpoint may have been loaded: where the run starts."""
        self._begun = True
        make_folder(self.run_dir)
        resumed = engine.state.iteration > 0
        kept = [line for line in read_metrics(self.run_dir) if line["iteration"] <= engine.state.iteration]
        write_text(self.run_dir / METRICS, "".join(map(_json_line, kept)))
        starts = read_run(self.run_dir).get("starts", []) if resumed else []
        provenance = dict(self.provenance)
        command = provenance.pop("command", None)
        starts.append({"time": _now(), "iteration": engine.state.iteration, "command": command})
        self._write_run({"status": "running", "starts": starts, **provenance})

    def _append(self, engine: SupervisedTrainer, kind: str, **content: Any) -> None:
        if not self._begun:  # a validation before the first epoch
            self._begin(engine)
        line = {
            "kind": kind,
            "epoch": engine.state.epoch,
            "iteration": engine.state.iteration,
            "time": round(time.time(), 3),
            "cpu_seconds": round(time.process_time(), 1),
            **content,
        }
        with (self.run_dir / METRICS).open("a", encoding="utf-8") as file:
            file.write(_json_line(line))

    def _end(self, engine: SupervisedTrainer, status: str) -> None:
        run = read_run(self.run_dir)
        run |= {"status": status, "ended": _now(), "epoch": engine.state.epoch}
        run["cost"] = getattr(engine.state, "cost", {})
        if self.evaluator is not None and self.evaluator.state.best_metric_epoch > 0:
            state = self.evaluator.state
            run["best"] = {
                "metric": state.key_metric_name,
                "value": float(state.best_metric),
                "epoch": state.best_metric_epoch,
            }
        self._write_run(run)

    def _write_run(self, run: Mapping[str, Any]) -> None:
        write_text(self.run_dir / RUN, json.dumps(_finite(run), indent=2, default=str) + "\n")


def read_metrics(run_dir: str | Path) -> list[dict[str, Any]]:
    """The lines of ``metrics.jsonl``, without one that was being written when the run was killed."""
    path = Path(run_dir) / METRICS
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def read_run(run_dir: str | Path) -> dict[str, Any]:
    """What ``run.json`` says; nothing, if there is none."""
    path = Path(run_dir) / RUN
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _json_line(content: Mapping[str, Any]) -> str:
    return json.dumps(_finite(content), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not know."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
