"""Bundle runs in processes of their own, as a person starts them, with a tiny network on a tiny phantom."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TINY = {
    "phantom_pairs": "8",
    "size": "[64, 48]",
    "batch_size": "2",
    "val_interval": "1",
    "warmup_iterations": "2",
    "network_def#width": "32",
    "network_def#object_queries": "8",
    "network_def#decoder_layers": "2",
    "network_def#link_queries": "4",
}


def configs(*names):
    """The value of --config_file for several files, the first of them train.yaml."""
    return str([f"bundle/configs/{name}.yaml" for name in ("train", *names)])


def command(run_id, *names, processes=1, **overrides):
    """The command line of a run."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", "--nproc_per_node", str(processes), "-m"]
    words = [*start, "monai.bundle", "run", run_id, "--config_file", configs(*names)]
    for key, value in {**TINY, **overrides}.items():
        words += [f"--{key}", str(value)]
    return words


def environment():
    """One thread, so that runs can be compared to the bit, and no tracking server of the developer's."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": ""}


def run(run_id, *names, processes=1, check=True, **overrides):
    """Run and wait; the outcome as of `subprocess.run`."""
    done = subprocess.run(
        command(run_id, *names, processes=processes, **overrides),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0 or not check, done.stderr[-4000:]
    return done
