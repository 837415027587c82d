"""Evaluations that are kept as artifacts of MLflow runs."""

from pathlib import Path

from clnet.errors import ClnetError
from clnet.evaluation.folder import METRICS_FILE
from clnet.evaluation.record import FILE_NAME as RECORD_FILE

PREFIX = "mlflow:"
"""What stands before a run id where a folder may stand."""
ARTIFACT_FOLDERS = ("", "evaluation")
"""Where in a run's artifacts an evaluation is looked for."""


class MlflowError(ClnetError):
    """An MLflow run without an evaluation; the message names the run."""


def download_evaluation(run_id: str, folder: Path) -> Path:
    """Fetch the evaluation of a run into a folder and say where it lies there.

    The tracking server is MLflow's own choice: the environment variable MLFLOW_TRACKING_URI, or its default.
    """
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise MlflowError(f"{PREFIX}{run_id}: MLflow is not installed; pip install mlflow") from None
    client = MlflowClient()
    try:
        for place in ARTIFACT_FOLDERS:
            there = {Path(artifact.path).name for artifact in client.list_artifacts(run_id, place or None)}
            if {METRICS_FILE, RECORD_FILE} <= there:
                for name in (METRICS_FILE, RECORD_FILE):
                    client.download_artifacts(run_id, f"{place}/{name}".lstrip("/"), str(folder))
                return folder / place
    except MlflowException as error:
        raise MlflowError(f"{PREFIX}{run_id}: {error.message}") from error
    raise MlflowError(
        f"{PREFIX}{run_id}: its artifacts hold no {METRICS_FILE} with a {RECORD_FILE} beside it; "
        "log the folder that `clnet evaluate` wrote"
    )
