"""A copy of the run's record in MLflow, kept up to date during the run without ever blocking it."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from monai.engines.trainer import SupervisedTrainer

from clnet.errors import ClnetError
from clnet.runs.mlflow_run import MlflowRun, MlflowStore, Point, allowed, in_short
from clnet.runs.record import METRICS, RUN, read_metrics, read_run
from clnet.runs.watching import LossMeans, TrainingHandler, learning_rates, say

RUN_ID = "mlflow_run_id"
BUNDLE_FILES = ("LICENSE", "configs/**/*", "docs/**/*")
SECONDS_BETWEEN_SENDING = 5.0
# Sending may take about a twentieth of the time, however slow the server is.
PAUSE_PER_SECOND_SENT = 20.0


class TrackingError(ClnetError):
    """A run that is not set up for tracking."""


class Tracking(TrainingHandler):
    """Sends to MLflow what `RunRecord` writes, and losses and learning rates in between.

    The MLflow run has the settings and provenance of ``run.json`` as parameters; ``train/…`` and
    ``learning_rate/…`` per iteration; ``epoch/…`` (mean losses) and ``validation/…`` per epoch; ``best/…``,
    ``cost/…`` and files at the end. A resumed training continues its MLflow run.

    If MLflow fails, the training continues, and what could not be sent is sent when MLflow works again: at
    the end at the latest, or by resuming the finished run. No pair ids and no image names are sent.

    Attach it after `RunRecord` and after the handler of the validation.

    Args:
        run_dir: the folder of the run; its parent is shared by runs that are to be compared.
        experiment: in MLflow.
        run_name: None takes the name of the folder.
        tracking_uri: None takes the environment's MLFLOW_TRACKING_URI, or else ``mlflow.db`` (sqlite) beside
            the run's folder, with files in ``mlartifacts``.
        tags: to find the run by.
        parent_run: id of the MLflow run that this one is listed under.
        bundle_root: the bundle, whose configs and docs are sent at the end.
        files: patterns of the files in `run_dir` that are sent at the end.
        every: iterations that are averaged for one point of a curve.
        pause: seconds until the next try after a failure.
    """

    def __init__(
        self,
        run_dir: str | Path,
        experiment: str = "clnet",
        run_name: str | None = None,
        tracking_uri: str | None = None,
        tags: Mapping[str, str] | None = None,
        parent_run: str | None = None,
        bundle_root: str | Path | None = None,
        files: Sequence[str] = (RUN, METRICS, "model.pt", "**/*.png"),
        every: int = 10,
        pause: float = 30.0,
    ) -> None:
        super().__init__()
        self.run_dir = Path(run_dir).absolute()
        self.experiment = experiment
        self.run_name = run_name or self.run_dir.name
        self.store = MlflowStore(self.run_dir.parent, tracking_uri)
        self.tags = dict(tags or {})
        self.parent_run = parent_run
        self.bundle_root = Path(bundle_root) if bundle_root else None
        self.files = files
        self.every = every
        self.pause = pause
        self._losses = LossMeans()
        self._begun = self._resumed = self._described = False
        self._run: MlflowRun | None = None
        self._waiting: dict[tuple[str, int], Point] = {}
        self._sent: set[tuple[str, int]] = set()
        self._works = True
        self._next_try = 0.0

    def _epoch_started(self, engine: SupervisedTrainer) -> None:
        if self._begun:
            return
        if not read_run(self.run_dir):
            raise TrackingError(
                f"{self.run_dir / RUN}: is not there, and MLflow is to have its content; attach RunRecord "
                "before Tracking"
            )
        self._begin(engine)
        self._attempt(self._send)

    def _begin(self, engine: SupervisedTrainer) -> None:
        """Known only now, since a checkpoint may have been loaded: whether the run is a resumed one."""
        self._begun, self._resumed = True, engine.state.iteration > 0

    def _iteration_completed(self, engine: SupervisedTrainer) -> None:
        self._losses.add(engine)
        if engine.state.iteration % self.every == 0:
            self._queue("train", self._losses.take(), engine.state.iteration)
            self._queue("learning_rate", learning_rates(engine), engine.state.iteration)
            self._attempt(self._send)

    def _epoch_completed(self, engine: SupervisedTrainer) -> None:
        self._queue_record()
        self._attempt(self._send)

    def _completed(self, engine: SupervisedTrainer) -> None:
        if not self._begun:  # resumed with nothing left to train, but perhaps to send
            self._begin(engine)
        self._queue_record()
        run = read_run(self.run_dir)
        self._queue("cost", run.get("cost", {}), engine.state.epoch)
        if "best" in run:
            self._queue("best", {run["best"]["metric"]: run["best"]["value"]}, run["best"]["epoch"])
        if self._attempt(self._send_all, insist=True):
            say(f"compare runs with MLflow: {self.store.where_to_look}")
        else:
            say(
                f"MLflow has not got all of this run; the whole record is in {self.run_dir}, "
                "and resuming the run will send it",
                logging.WARNING,
            )

    def _failed(self, engine: SupervisedTrainer, error: BaseException) -> None:
        status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"

        def send_end(run: MlflowRun) -> None:
            self._send(run)
            run.end(status)

        # Somebody may be waiting for the end: no try where the last one has failed.
        if self._run is not None and self._works:
            self._attempt(send_end, insist=True)

    def _attempt(self, action: Callable[[MlflowRun], None], insist: bool = False) -> bool:
        """Do something with MLflow unless it is too early for that; tell if it ceases or begins to work."""
        began = time.monotonic()
        if began < self._next_try and not insist:
            return False
        try:
            if self._run is None:
                self._run = self._open()
            if not self._described:
                self._run.describe(read_run(self.run_dir))
                self._described = True
                began = time.monotonic()  # making a data base takes its time, but only once
            action(self._run)
        except Exception as error:  # whatever it is, it must not stop the training
            if self._works:
                say(
                    f"MLflow fails at {self.store} ({in_short(error)}); "
                    f"the training goes on, and its record is kept in {self.run_dir}",
                    logging.WARNING,
                )
            self._works = False
        else:
            if not self._works:
                say("MLflow works again, and has got what it missed")
            self._works = True
        now = time.monotonic()
        wait = SECONDS_BETWEEN_SENDING if self._works else self.pause
        self._next_try = now + max(wait, PAUSE_PER_SECOND_SENT * (now - began))
        return self._works

    def _open(self) -> MlflowRun:
        """The run of a resumed training if MLflow knows it, otherwise a new one."""
        client, file = self.store.client(), self.run_dir / RUN_ID
        if self._resumed and file.exists():
            run = MlflowRun.find(client, file.read_text(encoding="utf-8").strip())
            if run is not None:
                self._sent = run.points()
                return run
        run = MlflowRun.create(
            client, self.experiment, self.run_name, self.tags, self.store.files_at, self.parent_run
        )
        file.write_text(f"{run.run_id}\n", encoding="utf-8")
        return run

    def _queue(
        self, group: str, values: Mapping[str, float | None], step: int, at: float | None = None
    ) -> None:
        for name, value in values.items():
            if value is not None:
                point = Point(allowed(f"{group}/{name}"), step, value, at or time.time())
                self._waiting[point.name, step] = point

    def _queue_record(self) -> None:
        """All of ``metrics.jsonl``, which may hold epochs from a time without MLflow."""
        for line in read_metrics(self.run_dir):
            self._queue("epoch", line.get("losses", {}), line["epoch"], line["time"])
            self._queue("validation", line.get("metrics", {}), line["epoch"], line["time"])

    def _send(self, run: MlflowRun) -> None:
        """What waits, except points that MLflow has: a resumed training gives some of them again."""
        new = {key: point for key, point in self._waiting.items() if key not in self._sent}
        run.log(list(new.values()))
        self._sent.update(new)
        self._waiting.clear()

    def _send_all(self, run: MlflowRun) -> None:
        self._send(run)
        run.log_files(self.run_dir, self.files)
        if self.bundle_root is not None:
            run.log_files(self.bundle_root, BUNDLE_FILES, under="bundle")
        run.end("FINISHED")
