"""Two processes do what one does."""

import json

import pytest
import torch
from bundle_runs import run, run_outside

from clnet.phantom import PhantomSettings, make_phantom


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A data set with an odd number of pairs to test on, and a network trained on it by two processes."""
    folder = tmp_path_factory.mktemp("processes")
    make_phantom(folder / "data", PhantomSettings(pairs=43, seed=6, rows=96, columns=64), workers=1)
    run_outside(
        "training",
        "multi_gpu_train",
        processes=2,
        dataset_dir=folder / "data",
        output_dir=folder,
        max_epochs=2,
    )
    return folder


@pytest.mark.slow
def test_two_processes_train_one_network(trained):
    state = torch.load(trained / "geometric-seed0" / "last.pt", weights_only=True)
    assert state["trainer"]["epoch"] == 2
    # Each process takes half of the training pairs, in batches of two.
    pairs = len(json.loads((trained / "data" / "datalist.json").read_text())["training"])
    assert state["trainer"]["iteration"] == 2 * (pairs // 2 // 2)


@pytest.mark.slow
def test_evaluation_by_two_processes_gives_the_metrics_of_one(trained):
    settings = {
        "dataset_dir": trained / "data",
        "output_dir": trained,
        "weights": trained / "geometric-seed0" / "model.pt",
        "batch_size": 1,  # a pair beside another one can differ in the last bit from the same pair alone
    }
    run("evaluating", "evaluate", run_name="one", **settings)
    several = {"processes": 2, "run_name": "two", "report": False}
    run_outside("evaluating", "evaluate", "multi_gpu_evaluate", **several, **settings)
    one, two = (json.loads((trained / name / "metrics.json").read_text()) for name in ("one", "two"))
    assert one == two
    findings = [json.loads((trained / name / "findings.json").read_text()) for name in ("one", "two")]
    assert findings[0] == findings[1]
    assert any(pair["links"] for pair in findings[0]["pairs"])
    assert [(trained / name / "report.html").exists() for name in ("one", "two")] == [True, False]
    datalist = json.loads((trained / "data" / "datalist.json").read_text())
    found = [pair["pair_id"] for pair in findings[1]["pairs"]]
    assert sorted(found) == sorted(pair["pair_id"] for pair in datalist["test"])
