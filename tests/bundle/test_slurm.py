"""The jobs of docs/machines.md, with SLURM's two commands replaced by what they do on one node."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from bundle_runs import ROOT, TINY
from in_process import SETTINGS

JOBS = sorted((ROOT / "docs" / "slurm").glob("*.sbatch"))
ON_ONE_NODE = {"srun": 'exec "$@"', "scontrol": "echo localhost"}


@pytest.fixture
def submit(tmp_path):
    """Runs a job as SLURM would, with a tiny network on a tiny phantom in a folder of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in ON_ONE_NODE.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "bundle").symlink_to(ROOT / "bundle")
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(job, variables, **overrides):
        settings = {**TINY, "phantom_pairs": "16", **overrides}
        words = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        environment = {**os.environ, **SETTINGS, **variables, "PATH": path}
        command = ["bash", str(ROOT / "docs" / "slurm" / job), *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return tmp_path / "output"

    return run


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_bash_can_read_the_job(job):
    subprocess.run(["bash", "-n", str(job)], check=True)


@pytest.mark.slow
def test_a_task_of_the_array_trains_its_seed_and_resumes_when_it_is_submitted_again(submit):
    task = {"SLURM_ARRAY_TASK_ID": "3"}
    submit("seeds.sbatch", task, max_epochs=1)
    run = submit("seeds.sbatch", task, max_epochs=2) / "geometric-seed3"
    record = json.loads((run / "run.json").read_text())
    assert record["seed"] == 3
    # An epoch has 10 training pairs, 0.6 of 16, in batches of 2.
    assert [start["iteration"] for start in record["starts"]] == [0, 5]
    assert not (run.parent / "geometric-seed3-2").exists()


@pytest.mark.slow
def test_the_job_of_several_gpus_trains_one_network(submit):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        job = {"SLURM_JOB_ID": str(free.getsockname()[1] % 10000), "SLURM_JOB_NODELIST": "localhost"}
    job |= {"SLURM_JOB_NUM_NODES": "1", "SLURM_GPUS_ON_NODE": "2"}
    run = submit("train.sbatch", job, max_epochs=1) / "geometric-seed0"
    state = torch.load(run / "last.pt", weights_only=True)
    assert state["trainer"] == {"epoch": 1, "iteration": 2}  # half of 10 training pairs each, in batches of 2
