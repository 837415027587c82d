"""docs/training.md, command by command: train two variants, evaluate both, compare them, resume."""

import json

import in_process
import pytest
from bundle_runs import ROOT, TINY, run
from mlflow import MlflowClient
from page_commands import commands_of, made_small, run_command
from PIL import Image

VARIANTS = ("geometric", "one_view")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """The output folder after all commands of the page."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "bundle").symlink_to(ROOT / "bundle")
    for words in commands_of("docs/training.md"):
        command = made_small(words, **TINY, max_epochs=2)
        run_command([*command, "--resamples", "20"] if words[:2] == ["clnet", "compare"] else command, folder)
    return folder / "output"


@pytest.fixture(scope="module")
def mlflow_runs(output):
    """The runs in MLflow by their names."""
    client = MlflowClient(f"sqlite:///{output}/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("clnet").experiment_id])
    return {run.info.run_name: run for run in found}


@pytest.mark.slow
def test_runs_of_one_output_dir_share_a_store_under_names_that_tell_them_apart(mlflow_runs):
    assert set(mlflow_runs) == {f"{variant}-seed0" for variant in VARIANTS} | {
        f"evaluate-{variant}" for variant in VARIANTS
    }
    assert {run.data.tags["variant"] for run in mlflow_runs.values()} == set(VARIANTS)
    assert all(run.info.status == "FINISHED" for run in mlflow_runs.values())


@pytest.mark.slow
def test_the_best_validation_is_drawn_and_sent(output, mlflow_runs):
    sent = output / "mlartifacts" / mlflow_runs["geometric-seed0"].info.run_id / "artifacts"
    for name in ("froc.png", "examples.png"):
        assert (sent / name).read_bytes() == (output / "geometric-seed0" / name).read_bytes()
        with Image.open(sent / name) as picture:
            assert min(picture.size) > 300


@pytest.mark.slow
def test_an_evaluation_is_a_run_with_the_numbers_of_its_metrics_file(output, mlflow_runs):
    evaluation = mlflow_runs["evaluate-geometric"]
    metrics = json.loads((output / "evaluate-geometric" / "metrics.json").read_text())
    recall = metrics["detection"]["iou=0.5"]["recall"]["4"]["value"]
    assert evaluation.data.metrics["test/recall_iou0.5_fpi4"] == recall
    assert evaluation.data.params["section"] == "test"


@pytest.mark.slow
def test_mlflow_hears_of_no_pair(output, mlflow_runs):
    datalist = json.loads((output / "phantom" / "datalist.json").read_text())
    names = [pair["pair_id"].encode() for section in ("validation", "test") for pair in datalist[section]]
    for run_of_mlflow in mlflow_runs.values():
        sent = output / "mlartifacts" / run_of_mlflow.info.run_id
        for file in sent.rglob("*"):
            # Short ids stand in compressed pictures and weights by chance.
            if file.is_file() and file.suffix not in (".png", ".pt"):
                assert not [name for name in names if name in file.read_bytes()], file


@pytest.mark.slow
def test_two_runs_of_mlflow_are_compared_by_one_command(output, mlflow_runs, tmp_path):
    runs = [f"mlflow:{mlflow_runs[f'evaluate-{variant}'].info.run_id}" for variant in reversed(VARIANTS)]
    options = ["--output", tmp_path, "--resamples", "20", "--tracking-uri", f"sqlite:///{output}/mlflow.db"]
    done = in_process.run_module("clnet.cli", "compare", *runs, *options, folder=ROOT)
    assert done.returncode == 0, done.stderr
    from_mlflow = json.loads((tmp_path / "comparison.json").read_text())
    from_folders = json.loads((output / "comparison" / "comparison.json").read_text())
    assert from_mlflow["runs"][runs[1]] == from_folders["runs"]["evaluate-geometric"]


@pytest.mark.slow
def test_inference_finds_what_evaluation_found(output):
    weights = output / "geometric-seed0" / "model.pt"
    run("inferring", "inference", "phantom", output_dir=output, weights=weights, attention=True)
    findings = [
        json.loads((output / name / "findings.json").read_text())["pairs"]
        for name in ("inference", "evaluate-geometric")
    ]
    assert findings[0] == findings[1]


@pytest.mark.slow
def test_the_tracking_of_monai_itself_works_too(tmp_path):
    run("training", output_dir=tmp_path, max_epochs=1, tracking="mlflow")
    client = MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (theirs,) = client.search_runs([client.get_experiment_by_name("monai_experiment").experiment_id])
    (ours,) = client.search_runs([client.get_experiment_by_name("clnet").experiment_id])
    losses = client.get_metric_history(theirs.info.run_id, "train_loss")
    assert losses[-1].value == pytest.approx(ours.data.metrics["epoch/loss"], rel=0.5)
