"""Bundle runs as a person starts them, with a tiny network on a tiny phantom."""

from pathlib import Path

import in_process
import warm_processes

ROOT = Path(__file__).parent.parent.parent
TINY_TRAINING = {
    "phantom_pairs": "8",
    "size": "[64, 48]",
    "batch_size": "2",
    "val_interval": "1",
    "warmup_iterations": "2",
}
TINY = {
    **TINY_TRAINING,
    "width": "32",
    "network_def#detector#object_queries": "8",
    "network_def#detector#layers": "2",
}


def configs(*names):
    """The value of --config_file for several files, the first of them train.yaml."""
    return str([f"bundle/configs/{name}.yaml" for name in ("train", *names)])


def words_of(run_id, *names, **overrides):
    """What follows `python -m monai.bundle`."""
    words = ["run", run_id, "--config_file", configs(*names)]
    for key, value in {**TINY, **overrides}.items():
        words += [f"--{key}", str(value)]
    return words


def run(run_id, *names, check=True, **overrides):
    """Run in this process; the outcome as of `subprocess.run`."""
    done = in_process.run_module("monai.bundle", *words_of(run_id, *names, **overrides), folder=ROOT)
    assert done.returncode == 0 or not check, done.stderr[-4000:]
    return done


def start(run_id, *names, **overrides):
    """Start in a process of its own."""
    return warm_processes.start(["-m", "monai.bundle", *words_of(run_id, *names, **overrides)], ROOT)


def run_outside(run_id, *names, processes=1, check=True, **overrides):
    """Run in one or more processes of its own, and wait."""
    words = ["-m", "monai.bundle", *words_of(run_id, *names, **overrides)]
    done = warm_processes.run(words, ROOT, processes=processes)
    assert done.returncode == 0 or not check, done.stderr[-4000:]
    return done
