"""Evaluations that are kept as artifacts of MLflow runs."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clnet.errors import ClnetError
from clnet.evaluation.compare import Run
from clnet.evaluation.folder import METRICS_FILE, read_metrics
from clnet.evaluation.record import FILE_NAME as RECORD_FILE
from clnet.evaluation.record import read_record
from clnet.runs.mlflow_run import mlflow_client

PREFIX = "mlflow:"
"""Marks a run id where a folder is expected."""
ARTIFACT_FOLDERS = ("evaluation", "")
"""Where in a run's artifacts an evaluation is looked for."""


class MlflowError(ClnetError):
    """An MLflow run whose evaluation cannot be downloaded; the message names the run."""


def read_runs(sources: Sequence[str], tracking_uri: str | None = None) -> list[Run]:
    """Read evaluations from their folders, or from MLflow: ``mlflow:RUN_ID``.

    A run is named by its folder, or by the whole path where folders have the same name.
    """
    folder_names = [Path(source).resolve().name for source in sources]
    runs = []
    for source, folder_name in zip(sources, folder_names, strict=True):
        if source.startswith(PREFIX):
            with TemporaryDirectory() as folder:
                place = download_evaluation(source.removeprefix(PREFIX), Path(folder), tracking_uri)
                runs.append(Run(source, read_metrics(place), read_record(place)))
        else:
            name = folder_name if folder_names.count(folder_name) == 1 else source
            runs.append(Run(name, read_metrics(source), read_record(source)))
    return runs


def download_evaluation(run_id: str, folder: Path, tracking_uri: str | None = None) -> Path:
    """Download the evaluation of a run into a folder; returns the subfolder that holds it.

    Args:
        run_id: of MLflow.
        folder: to write to.
        tracking_uri: of MLflow; None takes the environment's MLFLOW_TRACKING_URI.
    """
    tracking_uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
    if not tracking_uri:  # MLflow itself would create an empty database in the working directory
        raise MlflowError(f"{PREFIX}{run_id}: which MLflow? Give --tracking-uri, or set MLFLOW_TRACKING_URI")
    try:
        client = mlflow_client(tracking_uri)
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise MlflowError(f"{PREFIX}{run_id}: MLflow is not installed; pip install mlflow") from None
    try:
        for place in ARTIFACT_FOLDERS:
            there = {Path(artifact.path).name for artifact in client.list_artifacts(run_id, place or None)}
            if {METRICS_FILE, RECORD_FILE} <= there:
                for name in (METRICS_FILE, RECORD_FILE):
                    written = client.download_artifacts(run_id, f"{place}/{name}".lstrip("/"), str(folder))
                return Path(written).parent
    except MlflowException as error:
        raise MlflowError(f"{PREFIX}{run_id}: {error.message}") from error
    raise MlflowError(
        f"{PREFIX}{run_id}: its artifacts hold no {METRICS_FILE} with a {RECORD_FILE} beside it; "
        "log the folder that `clnet evaluate` wrote"
    )
