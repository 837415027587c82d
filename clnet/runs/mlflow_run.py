"""A run in MLflow: find or create it in its store, describe it, log points of curves and files.

Every method of a run asks MLflow and may raise whatever MLflow raises.
"""

import json
import logging
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from clnet.files import UNFINISHED, in_turn, remove_file, whole_file
from clnet.runs.provenance import without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient

TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
# MLflow by itself waits for minutes, and draws random numbers for its pauses from the generator that a
# training uses too. The user's own settings win.
ENVIRONMENT = {
    TIMEOUT: "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_JITTER": "0",
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
# Limits of MLflow for one request, a name, and a value (500 characters in servers before 2.8).
POINTS_PER_REQUEST, PARAMETERS_PER_REQUEST, NAME_LENGTH, VALUE_LENGTH = 1000, 100, 250, 500

PARENT_TAG = "mlflow.parentRunId"
"""By which MLflow's pages list a run under another."""

T = TypeVar("T")


class Point(NamedTuple):
    """One point of a curve."""

    name: str
    step: int
    value: float
    time: float
    """Seconds since 1970."""


def mlflow_client(tracking_uri: str) -> "MlflowClient":
    """A client that gives up soon and sends no telemetry."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # These two report created tables and retries, which only break up the progress bar.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri)


def mlflow_address(folder: str | Path) -> str:
    """The environment's MLFLOW_TRACKING_URI, or else that of ``mlflow.db`` (sqlite) in a folder."""
    return (
        os.environ.get("MLFLOW_TRACKING_URI")
        or f"sqlite:///{(Path(folder).absolute() / 'mlflow.db').as_posix()}"
    )


class MlflowStore:
    """Where MLflow keeps runs.

    Args:
        folder: shared by runs that are to be compared; files of a database go to its ``mlartifacts``.
        tracking_uri: None takes `mlflow_address`.
    """

    def __init__(self, folder: Path, tracking_uri: str | None = None) -> None:
        self.folder = folder.absolute()
        self.uri = tracking_uri or mlflow_address(folder)

    def __str__(self) -> str:
        return str(without_secrets(self.uri))

    def client(self) -> "MlflowClient":
        """A client of this store.

        Runs that start at once take turns, as MLflow creates the tables of a new database without a lock.
        """
        if not self.uri.startswith("sqlite:"):
            return mlflow_client(self.uri)
        with in_turn(self.folder / "mlflow.lock"):
            self._make_database()
            return mlflow_client(self.uri)

    def _make_database(self) -> None:
        """Let MLflow create a new database whole or not at all: it cannot go on with half of its tables."""
        from sqlalchemy import make_url

        name = make_url(self.uri).database
        if not name or Path(name).exists():
            return
        for left in Path(name).parent.glob(f"{Path(name).name}.*{UNFINISHED}"):
            remove_file(left)
        with whole_file(name) as unfinished:
            store = mlflow_client(f"sqlite:///{unfinished.absolute().as_posix()}")._tracking_client.store
            store.engine.dispose()

    @property
    def where_to_look(self) -> str:
        """What a person opens, or types, to see the runs."""
        return str(self) if self._is_server else f"mlflow ui --backend-store-uri {shlex.quote(str(self))}"

    @property
    def files_at(self) -> str | None:
        """The address of an experiment's files; None for a server, which knows it.

        MLflow itself would put those of a database into the working directory.
        """
        return None if self._is_server else (self.folder / "mlartifacts").as_uri()

    @property
    def _is_server(self) -> bool:
        return self.uri.startswith(("http://", "https://"))


class MlflowRun:
    """A run that MLflow knows by its id. No run is "active" in MLflow's sense, so that others may be."""

    def __init__(self, client: "MlflowClient", run_id: str) -> None:
        self.client = client
        self.run_id = run_id

    @classmethod
    def find(cls, client: "MlflowClient", run_id: str) -> "MlflowRun | None":
        """Reopen a run; None if this MLflow does not know it."""
        from mlflow.exceptions import MlflowException

        try:
            client.update_run(run_id, status="RUNNING")
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
        return cls(client, run_id)

    @classmethod
    def create(
        cls,
        client: "MlflowClient",
        experiment: str,
        run_name: str,
        tags: Mapping[str, str],
        files_at: str | None,
        parent_run: str | None = None,
    ) -> "MlflowRun":
        """Start a run.

        Args:
            client: of the MLflow that is to have it.
            experiment: created if there is none of that name.
            run_name: shown in tables and legends.
            tags: to find it by.
            files_at: the address of the experiment's files, if it has to be made; None lets MLflow choose.
            parent_run: id of the run that it is listed under, if any.
        """
        experiment_id = _experiment_id(client, experiment, files_at)
        tags = {**tags, **({PARENT_TAG: parent_run} if parent_run else {})}
        return cls(client, client.create_run(experiment_id, tags=tags, run_name=run_name).info.run_id)

    def points(self) -> set[tuple[str, int]]:
        """Name and step of each point that MLflow has."""
        found: set[tuple[str, int]] = set()
        for name in self.client.get_run(self.run_id).data.metrics:
            history = self.client.get_metric_history(self.run_id, name)
            found.update((name, point.step) for point in history)
        return found

    def describe(self, provenance: Mapping[str, Any]) -> None:
        """Log a `run_provenance`; parameters that are there stay as they are."""
        from mlflow.entities import Param

        if provenance.get("git_commit"):
            self.client.set_tag(self.run_id, "mlflow.source.git.commit", provenance["git_commit"])
        config = provenance.get("config", {})
        names = ("seed", "data_fingerprint", "git_commit")
        described = {
            **{name: provenance.get(name) for name in names},
            "version": provenance.get("versions", {}),
        }
        parameters = flatten(described) | flatten(config)
        there = self.client.get_run(self.run_id).data.params
        new = [Param(name, value) for name, value in parameters.items() if name not in there]
        for some in _chunks(new, PARAMETERS_PER_REQUEST):
            self.client.log_batch(self.run_id, params=some)
        self.client.log_dict(self.run_id, config, "config.yaml")

    def log(self, points: Sequence[Point]) -> None:
        """Add points to curves, under names as `allowed` gives them."""
        from mlflow.entities import Metric

        for some in _chunks(points, POINTS_PER_REQUEST):
            metrics = [Metric(point.name, point.value, int(1000 * point.time), point.step) for point in some]
            self.client.log_batch(self.run_id, metrics=metrics)

    def log_files(self, folder: Path, patterns: Sequence[str], under: str = "") -> None:
        """Copy the files of a folder that patterns name, with their subfolders, to `under`."""
        found = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
        with _patience():
            for path in sorted(found):
                there = (Path(under) / path.relative_to(folder)).parent.as_posix()
                self.client.log_artifact(self.run_id, str(path), None if there == "." else there)

    def end(self, status: str) -> None:
        """The run is "FINISHED", "FAILED" or "KILLED"."""
        self.client.set_terminated(self.run_id, status)


def _experiment_id(client: "MlflowClient", name: str, files_at: str | None) -> str:
    """The id of an experiment, which is created if there is none, unless another run does so meanwhile."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return client.create_experiment(name, artifact_location=files_at)
        except MlflowException as error:
            found = client.get_experiment_by_name(name)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or found is None:
                raise
    return found.experiment_id


def flatten(settings: Any, name: str = "") -> dict[str, str]:
    """Nested settings as parameters: names joined by dots, values as texts of at most 500 characters.

    A list of plain values is one parameter; in other lists each entry has its number as a name.
    """
    if isinstance(settings, (list, tuple)) and any(isinstance(item, (Mapping, list)) for item in settings):
        settings = dict(enumerate(settings))
    if isinstance(settings, Mapping):
        flat: dict[str, str] = {}
        for key, item in settings.items():
            flat |= flatten(item, f"{name}.{key}" if name else str(key))
        return flat
    text = settings if isinstance(settings, str) else json.dumps(settings, default=str)
    return {allowed(name): text if len(text) <= VALUE_LENGTH else f"{text[: VALUE_LENGTH - 1]}…"}


def allowed(name: str) -> str:
    """A name in the characters that MLflow takes: "recall@0.25" becomes "recall_at_0.25"."""
    return re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name.replace("@", "_at_"))[:NAME_LENGTH]


def in_short(error: BaseException) -> str:
    """The first line of what is at the bottom of an error, without a login that an address in it may hold."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return str(without_secrets(line))[:200]


@contextmanager
def _patience() -> Iterator[None]:
    """Wait for longer, unless the user has said how long: a server may need time to store a large file."""
    usual = os.environ.get(TIMEOUT)
    if usual == ENVIRONMENT[TIMEOUT]:
        os.environ[TIMEOUT] = "120"
    try:
        yield
    finally:
        if usual is not None:
            os.environ[TIMEOUT] = usual


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
