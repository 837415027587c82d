"""Runs in a real MLflow: an sqlite store, and a server that is killed in the middle of a training."""

import contextlib
import importlib
import io
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

import pytest
import warm_processes
from ignite.engine import Events
from killing import calls_of, kill_after
from mlflow import MlflowClient
from small_training import PAIR_IDS, break_off, resume_after, small_evaluator, small_trainer

from clnet.runs import tracking
from clnet.runs.cost import Cost
from clnet.runs.mlflow_run import MlflowStore, allowed, flatten
from clnet.runs.record import RunRecord, read_metrics, read_run
from clnet.runs.tracking import Tracking, TrackingError

PROVENANCE = {
    "config": {"network": {"width": 64, "levels": [1, 2]}, "steps": [{"flip": 0.5}], "long": "x" * 700},
    "seed": 7,
    "data_fingerprint": "f00d",
    "git_commit": "c0de",
    "versions": {"torch": "2.13.0"},
    "command": ["python", "train"],
}


@pytest.fixture(autouse=True)
def send_at_once(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(tracking, "SECONDS_BETWEEN_SENDING", 0.0)
    monkeypatch.setattr(tracking, "PAUSE_PER_SECOND_SENT", 0.0)


@pytest.fixture(scope="module")
def output_dir(tmp_path_factory):
    """Its store takes seconds to be made, so that the runs here share it, as real ones do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield tmp_path_factory.mktemp("output")


def trainer_of(run_dir, max_epochs=3, **settings):
    evaluator = small_evaluator()
    handlers = [Cost(), RunRecord(run_dir, PROVENANCE, evaluator)]
    trainer = small_trainer(handlers, evaluator, max_epochs)
    Tracking(run_dir, every=2, **settings).attach(trainer)
    return trainer


def heard(trainer):
    """What a run says; its random numbers are left to the training."""
    before = random.getstate()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        trainer.run()
    assert random.getstate() == before
    return said.getvalue()


def run_of(run_dir, tracking_uri=None):
    client = MlflowClient(tracking_uri or f"sqlite:///{run_dir.parent}/mlflow.db")
    return client, client.get_run((run_dir / "mlflow_run_id").read_text().strip())


def curve(run_dir, name, tracking_uri=None):
    client, run = run_of(run_dir, tracking_uri)
    return [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)]


def recorded(run_dir, kind, group, name):
    return [(line["epoch"], line[group][name]) for line in read_metrics(run_dir) if line["kind"] == kind]


def files(client, run, folder=None):
    found = []
    for entry in client.list_artifacts(run.info.run_id, folder):
        found += files(client, run, entry.path) if entry.is_dir else [entry.path]
    return sorted(found)


@pytest.fixture(scope="module")
def finished(output_dir, tmp_path_factory):
    """A run that went well, with the files that a real one leaves."""
    bundle = tmp_path_factory.mktemp("bundle")
    for name in ("LICENSE", "configs/train.yaml", "configs/metadata.json", "models/model.pt"):
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_text("{}")
    run_dir = output_dir / "clnet-seed7"
    (run_dir / "pictures").mkdir(parents=True)
    (run_dir / "froc.png").write_bytes(b"png")
    (run_dir / "pictures" / "1.png").write_bytes(b"png")
    (run_dir / "model.pt").write_bytes(b"weights")
    (run_dir / "last.pt").write_bytes(b"weights and more")
    trainer = trainer_of(run_dir, bundle_root=bundle, tags={"variant": "clnet"})
    return run_dir, heard(trainer)


def test_settings_data_commit_and_versions_are_parameters(finished):
    _, run = run_of(finished[0])
    assert run.data.params == {
        "seed": "7",
        "data_fingerprint": "f00d",
        "git_commit": "c0de",
        "version.torch": "2.13.0",
        "network.width": "64",
        "network.levels": "[1, 2]",
        "steps.0.flip": "0.5",
        "long": "x" * 499 + "…",
    }
    assert run.data.tags["mlflow.source.git.commit"] == "c0de"
    assert run.data.tags["variant"] == "clnet"
    assert run.info.run_name == "clnet-seed7"
    assert run.info.status == "FINISHED"


def test_losses_by_part_and_learning_rates_are_curves_by_iteration(finished):
    # The mean of iterations 1 and 2 is 1.5, of 3 and 4 it is 3.5, …
    expected = [(step, step - 0.5) for step in (2, 4, 6, 8, 10, 12)]
    assert curve(finished[0], "train/detection_class") == expected
    assert curve(finished[0], "train/loss") == [(step, 3 * mean) for step, mean in expected]
    assert curve(finished[0], "learning_rate/backbone") == [(step, 0.1) for step, _ in expected]


def test_epochs_and_validations_are_as_in_the_local_record(finished):
    run_dir, _ = finished
    assert curve(run_dir, "epoch/loss") == [(1, 7.5), (2, 19.5), (3, 31.5)]
    assert curve(run_dir, "epoch/loss") == recorded(run_dir, "training", "losses", "loss")
    assert curve(run_dir, "validation/mean_recall") == [(1, 0.25), (2, 0.75), (3, 0.5)]
    assert curve(run_dir, "validation/recall_at_0.25") == [(1, 0.125), (2, 0.375), (3, 0.25)]
    assert curve(run_dir, "best/mean_recall") == [(2, 0.75)]
    assert curve(run_dir, "cost/pairs_per_second") == [(3, read_run(run_dir)["cost"]["pairs_per_second"])]


def test_records_pictures_best_weights_and_bundle_are_kept(finished):
    run_dir, _ = finished
    client, run = run_of(run_dir)
    assert files(client, run) == [
        *("bundle/LICENSE", "bundle/configs/metadata.json", "bundle/configs/train.yaml"),
        *("config.yaml", "froc.png", "metrics.jsonl", "model.pt", "pictures/1.png", "run.json"),
    ]
    assert run.info.artifact_uri.startswith((run_dir.parent / "mlartifacts").as_uri())
    assert (run_dir.parent / "mlartifacts" / run.info.run_id / "artifacts" / "run.json").exists()


def test_the_end_tells_how_to_see_the_runs(finished):
    run_dir, said = finished
    assert f"mlflow ui --backend-store-uri sqlite:///{run_dir.parent}/mlflow.db" in said


def test_no_pair_is_named_in_mlflow(finished):
    kept = [path for path in finished[0].parent.rglob("*") if path.is_file()]
    assert any(path.name == "mlflow.db" for path in kept)
    for path in kept:
        assert not any(pair_id.encode() in path.read_bytes() for pair_id in PAIR_IDS), path


def test_mlflow_reports_nothing_to_its_makers(finished):
    from mlflow.telemetry.utils import is_telemetry_disabled

    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert is_telemetry_disabled()


def test_a_resumed_training_goes_on_in_its_run_without_double_points(output_dir):
    run_dir = output_dir / "resumed"
    broken = trainer_of(run_dir)
    break_off(broken, 7, RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):
        broken.run()
    _, run = run_of(run_dir)
    assert run.info.status == "FAILED"
    assert curve(run_dir, "train/detection_class")[-1] == (6, 5.5)

    trainer = trainer_of(run_dir)
    resume_after(trainer, 1)
    trainer.run()
    _, again = run_of(run_dir)
    assert again.info.run_id == run.info.run_id
    assert again.info.status == "FINISHED"
    assert curve(run_dir, "train/detection_class") == [(step, step - 0.5) for step in (2, 4, 6, 8, 10, 12)]
    assert curve(run_dir, "epoch/loss") == [(1, 7.5), (2, 19.5), (3, 31.5)]


def test_a_run_may_be_listed_under_another(output_dir, finished):
    _, parent = run_of(finished[0])
    run_dir = output_dir / "child"
    heard(trainer_of(run_dir, max_epochs=1, parent_run=parent.info.run_id))
    _, child = run_of(run_dir)
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert "mlflow.parentRunId" not in parent.data.tags


def test_ctrl_c_is_a_killed_run(output_dir):
    trainer = trainer_of(output_dir / "interrupted")
    break_off(trainer, 3, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert run_of(output_dir / "interrupted")[1].info.status == "KILLED"


def test_a_resumed_training_in_another_mlflow_begins_a_run_with_all_epochs(output_dir, tmp_path):
    run_dir = tmp_path / "moved"
    trainer_of(run_dir, max_epochs=2, tracking_uri=f"sqlite:///{output_dir}/mlflow.db").run()
    (run_dir / "mlflow_run_id").write_text("0123456789abcdef0123456789abcdef\n")
    trainer = trainer_of(run_dir, tracking_uri=f"sqlite:///{output_dir}/mlflow.db")
    resume_after(trainer, 2)
    trainer.run()
    epochs = curve(run_dir, "epoch/loss", f"sqlite:///{output_dir}/mlflow.db")
    assert epochs == [(1, 7.5), (2, 19.5), (3, 31.5)]


def test_resuming_a_finished_run_sends_what_mlflow_has_not_got(output_dir, tmp_path):
    run_dir, store = tmp_path / "late", f"sqlite:///{output_dir}/mlflow.db"
    trainer_of(run_dir, tracking_uri=f"http://127.0.0.1:{free_port()}").run()
    cost = read_run(run_dir)["cost"]["pairs_per_second"]
    trainer = trainer_of(run_dir, tracking_uri=store)
    resume_after(trainer, 3)
    trainer.run()
    assert curve(run_dir, "epoch/loss", store) == [(1, 7.5), (2, 19.5), (3, 31.5)]
    assert curve(run_dir, "validation/mean_recall", store) == [(1, 0.25), (2, 0.75), (3, 0.5)]
    assert curve(run_dir, "cost/pairs_per_second", store) == [(3, cost)]
    client, run = run_of(run_dir, store)
    assert run.info.status == "FINISHED"
    assert "run.json" in files(client, run)


BEGIN = """
import time
from pathlib import Path
from clnet.runs.mlflow_run import MlflowRun, MlflowStore

Path("ready", str(time.monotonic_ns())).touch()
while len(list(Path("ready").iterdir())) < 3:
    time.sleep(0.01)
store = MlflowStore(Path("output"))
MlflowRun.create(store.client(), "experiment", "run", {}, store.files_at).end("FINISHED")
"""


def test_runs_that_start_at_once_on_a_new_store_are_all_in_it(tmp_path):
    (tmp_path / "ready").mkdir()
    started = [
        warm_processes.start(["-c", BEGIN], tmp_path, errors=tmp_path / f"{number}.txt")
        for number in range(3)
    ]
    for number, process in enumerate(started):
        process.join()
        assert process.exitcode == 0, (tmp_path / f"{number}.txt").read_text()
    client = MlflowClient(f"sqlite:///{tmp_path}/output/mlflow.db")
    experiment = client.get_experiment_by_name("experiment")
    assert len(client.search_runs([experiment.experiment_id])) == 3


def test_tracking_without_a_record_is_refused_in_words(tmp_path):
    trainer = small_trainer([Tracking(tmp_path)])
    with pytest.raises(TrackingError, match="attach RunRecord before Tracking"):
        trainer.run()


def test_only_the_first_process_sends(tmp_path):
    trainer = small_trainer([])
    trainer.state.rank = 1
    Tracking(tmp_path).attach(trainer)
    trainer.run()
    assert not list(tmp_path.iterdir())


def test_names_and_settings_take_the_form_that_mlflow_takes():
    assert allowed("validation/recall@0.25") == "validation/recall_at_0.25"
    assert allowed("a#b(ä)") == "a_b___"
    assert flatten({"a": None, "b": {"c": [[1], 2]}, "d": True}) == {
        "a": "null",
        "b.c.0": "[1]",
        "b.c.1": "2",
        "d": "true",
    }


def test_the_environment_names_the_server_unless_the_config_does(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:word@host:5000")
    assert Tracking(tmp_path).store.uri == "http://user:word@host:5000"
    assert Tracking(tmp_path).store.where_to_look == "http://***@host:5000"
    assert Tracking(tmp_path, tracking_uri="sqlite:///x.db").store.uri == "sqlite:///x.db"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_training_without_its_server_says_so_once_and_loses_nothing(tmp_path, monkeypatch):
    # From the second retry on, MLflow would draw its pauses at random.
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    uri = f"http://user:word@127.0.0.1:{free_port()}"
    said = heard(trainer_of(tmp_path / "run", tracking_uri=uri, pause=0.0))
    assert said.count("MLflow fails") == 1
    assert "Connection refused" in said
    assert "the training goes on" in said
    assert f"the whole record is in {tmp_path / 'run'}" in said
    assert "word" not in said
    assert [line["epoch"] for line in read_metrics(tmp_path / "run")] == [1, 1, 2, 2, 3, 3]
    assert read_run(tmp_path / "run")["status"] == "finished"


def test_a_server_that_never_answers_is_left_alone_for_a_while(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setattr(tracking, "PAUSE_PER_SECOND_SENT", 20.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}"
        trainer = trainer_of(tmp_path / "run", tracking_uri=uri)
        began = time.monotonic()
        heard(trainer)
    # Two tries of a second each at the start, and two at the end; had it tried at each of six points, 16 s.
    assert time.monotonic() - began < 8


class Server:
    """`mlflow server` on this machine, to be started, killed, and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Come back when it answers."""
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--backend-store-uri", f"sqlite:///{self.folder}/server.db", "--workers", "1"]
        command += ["--artifacts-destination", str(self.folder / "files")]
        settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **settings}, stdout=log, stderr=log, start_new_session=True
            )
        for _ in range(600):
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=1):  # noqa: S310
                return
            time.sleep(0.2)
        pytest.fail("the server does not start: " + (self.folder / "server.log").read_text())

    def kill(self) -> None:
        """The server and the processes that it started itself."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.mark.slow
def test_a_server_killed_in_mid_run_does_not_stop_the_training(tmp_path, server):
    run_dir = tmp_path / "run"
    trainer = trainer_of(run_dir, tracking_uri=server.uri, pause=0.0)
    trainer.add_event_handler(Events.ITERATION_COMPLETED(once=5), server.kill)
    said = heard(trainer)
    assert trainer.state.iteration == 12
    assert said.count("MLflow fails") == 1
    assert "MLflow works again" not in said
    assert "MLflow has not got all of this run" in said
    assert recorded(run_dir, "training", "losses", "loss") == [(1, 7.5), (2, 19.5), (3, 31.5)]
    assert recorded(run_dir, "validation", "metrics", "mean_recall") == [(1, 0.25), (2, 0.75), (3, 0.5)]

    server.start()
    assert curve(run_dir, "epoch/loss", server.uri) == [(1, 7.5)], "it had the first epoch before"
    assert run_of(run_dir, server.uri)[1].info.status == "RUNNING"


@pytest.mark.slow
def test_a_server_that_comes_back_gets_all_that_it_missed(tmp_path, server):
    run_dir = tmp_path / "run"
    (run_dir / "pictures").mkdir(parents=True)
    (run_dir / "pictures" / "froc.png").write_bytes(b"png")
    trainer = trainer_of(run_dir, tracking_uri=server.uri, pause=0.0)
    trainer.add_event_handler(Events.ITERATION_COMPLETED(once=3), server.kill)
    trainer.add_event_handler(Events.ITERATION_COMPLETED(once=9), server.start)
    said = heard(trainer)
    assert said.count("MLflow fails") == 1
    assert said.count("MLflow works again") == 1
    assert f"compare runs with MLflow: {server.uri}" in said
    steps = (2, 4, 6, 8, 10, 12)
    assert curve(run_dir, "train/detection_class", server.uri) == [(step, step - 0.5) for step in steps]
    assert curve(run_dir, "epoch/loss", server.uri) == [(1, 7.5), (2, 19.5), (3, 31.5)]
    assert curve(run_dir, "validation/mean_recall", server.uri) == [(1, 0.25), (2, 0.75), (3, 0.5)]
    client, run = run_of(run_dir, server.uri)
    assert run.info.status == "FINISHED"
    assert files(client, run) == ["config.yaml", "metrics.jsonl", "pictures/froc.png", "run.json"]


@pytest.mark.slow
def test_a_kill_while_mlflow_creates_its_database_does_not_spoil_it(tmp_path):
    importlib.import_module("mlflow.store.tracking.sqlalchemy_store")  # so that the kills come after that

    def create(folder):
        MlflowStore(folder).client()

    calls = calls_of(partial(create, tmp_path / "whole"))
    for share in (0.4, 0.8):
        assert kill_after(int(calls * share), partial(create, tmp_path / "killed"))
    client = MlflowStore(tmp_path / "killed").client()
    run = client.create_run(client.create_experiment("afterwards"))
    assert client.get_run(run.info.run_id).info.status == "RUNNING"
    assert not list((tmp_path / "killed").glob("*.unfinished"))
