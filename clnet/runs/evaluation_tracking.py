"""An evaluation as a run in MLflow, so that runs can be compared there and by `clnet compare`."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ignite.engine import Events
from monai.engines.workflow import Workflow

from clnet.evaluation.folder import METRICS_FILE, read_metrics
from clnet.evaluation.record import FILE_NAME as RECORD_FILE
from clnet.runs.mlflow_run import MlflowRun, MlflowStore, Point, allowed, in_short
from clnet.runs.watching import say

# Not errors.json or the findings: they name pairs.
FILES = (METRICS_FILE, RECORD_FILE, "froc.png")


class EvaluationTracking:
    """Sends what `EvaluationWriter` wrote to MLflow. If MLflow fails, it warns; the folder is complete.

    Args:
        run_dir: the folder of the evaluation; its parent is shared by runs that are to be compared.
        experiment: in MLflow.
        tracking_uri: see `MlflowStore`.
        tags: to find the run by.
        provenance: of `clnet.runs.provenance.run_provenance`.
        parent_run: id of the MLflow run that this one is listed under.
    """

    def __init__(
        self,
        run_dir: str | Path,
        experiment: str,
        tracking_uri: str | None,
        tags: Mapping[str, str],
        provenance: Mapping[str, Any],
        parent_run: str | None = None,
    ) -> None:
        self.run_dir = Path(run_dir).absolute()
        self.store = MlflowStore(self.run_dir.parent, tracking_uri)
        self.experiment = experiment
        self.tags = tags
        self.provenance = provenance
        self.parent_run = parent_run

    def attach(self, engine: Workflow) -> None:
        """Act when the evaluator has finished; to be attached after `EvaluationWriter`."""
        if engine.state.rank == 0:
            engine.add_event_handler(Events.COMPLETED, self)

    def __call__(self, engine: Workflow) -> None:
        """Send everything."""
        metrics = read_metrics(self.run_dir)
        now = time.time()
        points = [Point(allowed(name), 0, value, now) for name, value in single_numbers(metrics).items()]
        try:
            run = MlflowRun.create(
                self.store.client(),
                self.experiment,
                self.run_dir.name,
                self.tags,
                self.store.files_at,
                self.parent_run,
            )
            run.describe(self.provenance)
            run.log(points)
            run.log_files(self.run_dir, FILES)
            run.end("FINISHED")
        except Exception as error:  # whatever it is, the evaluation is done and written
            say(
                f"MLflow fails at {self.store} ({in_short(error)}); all is in {self.run_dir}", logging.WARNING
            )
        else:
            say(f"MLflow run {run.run_id}; compare runs with: {self.store.where_to_look}")


def single_numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """R@t, their mean, and the links, under names such as ``test/recall_iou0.5_fpi0.25``."""
    section = metrics["data"]["section"]
    found: dict[str, float | None] = {}
    for key, at in metrics["detection"].items():
        iou = key.replace("=", "")
        found[f"{section}/mean_recall_{iou}"] = at["mean_recall"]["value"]
        for rate, recall in at["recall"].items():
            found[f"{section}/recall_{iou}_fpi{rate}"] = recall["value"]
    for key, rows in (metrics["links"] or {}).items():
        for name, measure in rows["all"].items():
            if name != "counts":
                found[f"{section}/link_{name}_{key.replace('=', '')}"] = measure["value"]
    return {name: value for name, value in found.items() if value is not None}
