"""docs/machines.md: two machines train one network over TCP, and one of them may fail in between."""

import time

import pytest
import torch
from bundle_runs import ROOT, run_outside, words_of
from machines import two_machines, why_not

from clnet.phantom import PhantomSettings, make_phantom

EPOCHS = 6
CONFIGS = ("multi_gpu_train", "resume")
RUN = "geometric-seed0"


@pytest.fixture(scope="module")
def machines():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with two_machines() as made:
        yield made


def wait_for(happened, nodes, seconds=600):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "too slow"
        assert all(node.poll() is None for node in nodes), "torchrun ended"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_machine_that_is_killed_and_comes_back_leaves_no_trace_in_the_weights(machines, tmp_path):
    make_phantom(tmp_path / "data", PhantomSettings(pairs=40, seed=5, rows=96, columns=64), workers=1)
    settings = {"dataset_dir": tmp_path / "data", "max_epochs": EPOCHS, "average_momentum": 0.1}
    words = ["-m", "monai.bundle", *words_of("training", *CONFIGS, **settings, output_dir=tmp_path / "cut")]
    _, second = machines
    logs = [tmp_path / f"{machine.name}.log" for machine in machines]
    last = tmp_path / "cut" / RUN / "last.pt"

    nodes = [machine.torchrun(words, ROOT, log) for machine, log in zip(machines, logs, strict=True)]
    wait_for(last.exists, nodes)
    second.kill()
    epoch_when_killed = torch.load(last, weights_only=True)["trainer"]["epoch"]
    assert epoch_when_killed < EPOCHS
    nodes[1].wait(timeout=120)
    assert nodes[0].poll() is None, "the other machine waits"
    nodes[1] = second.torchrun(words, ROOT, logs[1])
    said = [(node.wait(timeout=900), log.read_text()[-4000:]) for node, log in zip(nodes, logs, strict=True)]
    assert [status for status, _ in said] == [0, 0], said

    run_outside("training", *CONFIGS, processes=2, **settings, output_dir=tmp_path / "whole")
    cut, whole = (
        torch.load(tmp_path / name / RUN / "last.pt", weights_only=True) for name in ("cut", "whole")
    )
    assert cut["trainer"] == whole["trainer"]
    assert cut["best"] == whole["best"]
    for part in ("network", "validated"):  # the weights, and their moving average
        assert all(torch.equal(cut[part][name], tensor) for name, tensor in whole[part].items())
    assert any(not torch.equal(whole["validated"][name], tensor) for name, tensor in whole["network"].items())
