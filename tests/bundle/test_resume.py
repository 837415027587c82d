"""A run that is killed and resumed ends as one that was not, to the bit."""

import time

import pytest
import torch
from bundle_runs import run, start

from clnet.phantom import PhantomSettings, make_phantom

EPOCHS = 4


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_phantom(folder, PhantomSettings(pairs=40, seed=5, rows=96, columns=64), workers=1)
    return folder


def weights(output_dir):
    return torch.load(output_dir / "geometric-seed0" / "last.pt", weights_only=True)


def kill_in_the_second_epoch(settings, last):
    """Start a run and end it by SIGKILL as soon as the checkpoint of its first epoch is there."""
    process = start("training", **settings)
    deadline = time.monotonic() + 120
    while not last.exists():
        assert process.is_alive(), "the run ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint within two minutes"
        time.sleep(0.01)
    process.kill()
    process.join()


@pytest.mark.slow
def test_a_killed_and_resumed_run_ends_with_the_same_weights(dataset, tmp_path):
    settings = {"dataset_dir": dataset, "max_epochs": EPOCHS, "average_momentum": 0.1}
    run("training", **settings, output_dir=tmp_path / "whole")
    cut = {**settings, "output_dir": tmp_path / "cut"}
    last = tmp_path / "cut" / "geometric-seed0" / "last.pt"
    kill_in_the_second_epoch(cut, last)
    epoch_when_killed = weights(tmp_path / "cut")["trainer"]["epoch"]
    assert epoch_when_killed < EPOCHS
    run("training", **cut, resume="True")

    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert resumed["trainer"] == whole["trainer"]
    assert resumed["best"] == whole["best"]
    for part in ("network", "validated"):  # the weights, and their moving average
        assert all(torch.equal(resumed[part][name], tensor) for name, tensor in whole[part].items())
    assert any(not torch.equal(whole["validated"][name], tensor) for name, tensor in whole["network"].items())
    best = [
        torch.load(tmp_path / name / "geometric-seed0" / "model.pt", weights_only=True)
        for name in ("whole", "cut")
    ]
    assert all(torch.equal(best[1][name], tensor) for name, tensor in best[0].items())


@pytest.mark.slow
def test_there_must_be_something_to_resume(dataset, tmp_path):
    done = run("training", dataset_dir=dataset, output_dir=tmp_path, resume="True", check=False)
    assert done.returncode != 0
    assert done.stderr.strip().splitlines()[-1].startswith("clnet: run_name: there is no checkpoint")
