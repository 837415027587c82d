"""The shipped models, evaluated on a data set by the bundle."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def evaluate_shipped(
    data: Path,
    output: Path,
    name: str,
    section: str,
    experiment: str,
    *words: str,
    configs: tuple[str, ...] = (),
) -> Path:
    """Run ``evaluating``; gives the folder of the run, which replaces one of that name.

    Args:
        data: folder of the data set, which also gets the cache.
        output: where the run and its log are written.
        name: of the run.
        section: of the data set.
        experiment: MLflow's.
        words: further options.
        configs: those of the model, on top of train.yaml; none are the phantom model's.

    Raises:
        SystemExit: the command failed; says where its log is.
    """
    options = {
        "config_file": str([f"bundle/configs/{part}.yaml" for part in ("train", *configs, "evaluate")]),
        "output_dir": str(output),
        "dataset_dir": str(data),
        "cache_dir": str(data / "cache"),
        "run_name": name,
        "experiment": experiment,
        "section": section,
        "attention": "False",
        "report": "False",
    }
    shutil.rmtree(output / name, ignore_errors=True)
    given = [word for key, value in options.items() for word in (f"--{key}", value)]
    command = [sys.executable, "-W", "ignore", "-m", "monai.bundle", "run", "evaluating", *given, *words]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    with (output / f"{name}.log").open("w") as log:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
    if done.returncode:
        sys.exit(f"{name}: the evaluation failed; see {output / name}.log")
    return output / name
