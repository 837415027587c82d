"""Two sites in NVFlare's simulator train one network on the bundle as it is."""

import json
import math
import os
import subprocess

import pytest
import torch
import yaml
from bundle_runs import ROOT, TINY
from in_process import SETTINGS
from mlflow import MlflowClient
from monai.bundle import ConfigWorkflow

SITES, ROUNDS, LOCAL_EPOCHS = 2, 3, 2
OVERRIDES = {key: value for key, value in TINY.items() if key != "phantom_pairs"}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """The output folder of ./scripts/federated, made with a tiny network on a tiny phantom."""
    folder = tmp_path_factory.mktemp("federated") / "a folder"  # with a space, which commands are split at
    own = ["--sites", SITES, "--rounds", ROUNDS, "--local-epochs", LOCAL_EPOCHS, "--pairs", 60]
    words = [word for key, value in OVERRIDES.items() for word in (f"--{key}", value)]
    command = [ROOT / "scripts" / "federated", *own, "--output", folder, "--", *words]
    environment = {**os.environ, **SETTINGS}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    (folder / "said.txt").write_text(done.stdout)
    return folder


def load(path):
    return torch.load(path, weights_only=True)


def lines(output, run):
    return [json.loads(line) for line in (output / "runs" / run / "metrics.jsonl").read_text().splitlines()]


def site_models(output, site):
    [models] = (output / "workspace" / site).glob("**/bundle/models")
    return models


def test_the_final_model_is_the_mean_of_the_sites_weighted_by_their_steps(output):
    final = load(output / "server" / "final.pt")
    rounds = json.loads((output / "server" / "federation.json").read_text())["rounds"]
    sites = sorted(rounds[-1]["sites"])
    steps = [rounds[-1]["sites"][site]["steps"] for site in sites]
    sent = [load(site_models(output, site) / "last.pt")["network"] for site in sites]
    assert any(not torch.equal(sent[0][name], sent[1][name]) for name in final), "nothing to average"
    for name, tensor in final.items():
        mean = sum(count * weights[name].double() for count, weights in zip(steps, sent, strict=True))
        torch.testing.assert_close(tensor.double(), mean / sum(steps), rtol=1e-5, atol=1e-7)


def test_steps_are_those_of_one_round(output):
    [first, *_] = json.loads((output / "server" / "federation.json").read_text())["rounds"]
    for site, validation in first["sites"].items():
        datalist = json.loads((output / "sites" / site / "datalist.json").read_text())
        assert validation["steps"] == LOCAL_EPOCHS * (len(datalist["training"]) // int(TINY["batch_size"]))
        assert validation["pairs"] == len(datalist["validation"])


def metrics_of(weights, dataset, monkeypatch):
    """The metrics of weights on a site's validation section, by the evaluator of train.yaml."""
    monkeypatch.setattr("sys.argv", ["python"])
    values = {key: yaml.safe_load(value) for key, value in OVERRIDES.items()}
    plain = {"validate#handlers": [], "average_momentum": 1.0, "output_dir": str(dataset)}
    workflow = ConfigWorkflow(
        [str(ROOT / "bundle" / "configs" / "train.yaml")],
        logging_file=False,
        workflow_type="train",
        dataset_dir=str(dataset),
        **{**values, **plain},
    )
    workflow.initialize()
    workflow.evaluator.network.load_state_dict(weights)
    workflow.evaluator.run()
    return workflow.evaluator.state.metrics


@pytest.mark.parametrize("kind", ["best", "final"])
def test_the_best_and_the_final_model_are_those_that_the_sites_validated(output, kind, monkeypatch):
    federation = json.loads((output / "server" / "federation.json").read_text())
    means = [entry["mean_recall"] for entry in federation["rounds"]]
    assert len(means) == ROUNDS
    assert federation["best_round"] == 1 + means.index(max(means))
    number = federation["best_round"] if kind == "best" else ROUNDS
    weights = load(output / "server" / f"{kind}.pt")
    for site, validation in federation["rounds"][number - 1]["sites"].items():
        metrics = metrics_of(weights, output / "sites" / site, monkeypatch)
        assert validation["metrics"] == pytest.approx(metrics)
        assert metrics["recall_iou0.2_fpi4"] > 0, "any weights would do"


def test_one_warm_up_and_one_cosine_span_all_rounds(output):
    for site in ("site-1", "site-2"):
        trained = [line for line in lines(output, site) if line["kind"] == "training"]
        assert [line["epoch"] for line in trained] == list(range(1, ROUNDS * LOCAL_EPOCHS + 1))
        total, warm_up = trained[-1]["iteration"], int(TINY["warmup_iterations"])
        for line in trained:
            share = 0.5 * (1 + math.cos(math.pi * (line["iteration"] - warm_up) / (total - warm_up)))
            assert max(line["learning_rates"].values()) == pytest.approx(0.001 * share, abs=1e-9)


def test_mlflow_has_one_run_for_each_site_with_its_settings(output):
    client = MlflowClient(f"sqlite:///{output}/runs/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("clnet-federated").experiment_id])
    names = [run.info.run_name for run in found]
    trained = [name for name in names if not name.startswith("evaluate")]
    assert sorted(trained) == ["all-data-together", "site-1", "site-1-alone", "site-2", "site-2-alone"]
    for run in found:
        assert run.info.status == "FINISHED"
        if run.info.run_name in ("site-1", "site-2"):
            steps = [
                point.step for point in client.get_metric_history(run.info.run_id, "validation/mean_recall")
            ]
            assert steps == list(range(1, ROUNDS * LOCAL_EPOCHS + 1))
            assert run.data.params["rounds"] == str(ROUNDS)


def test_every_training_is_as_long_and_all_are_in_the_table(output):
    alone = [line["epoch"] for line in lines(output, "site-1-alone") if line["kind"] == "training"]
    assert alone[-1] == ROUNDS * LOCAL_EPOCHS
    rows = json.loads((output / "results.json").read_text())["rows"]
    names = [row["trained"] for row in rows]
    assert names == [
        "site 1 alone",
        "site 2 alone",
        "all data together",
        "federated best round",
        "federated final round",
    ]
    pairs = [row["pairs"] for row in rows]
    assert pairs[0] + pairs[1] == pairs[2] == pairs[3] == pairs[4]
    table = (output / "said.txt").read_text()
    assert [name for name in names if f"| {name} |" not in table] == []
