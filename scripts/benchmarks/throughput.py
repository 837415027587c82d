"""Pairs per second from DICOM files to a trained network and to findings, by the bundle's configs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from clnet.phantom import PhantomSettings, make_phantom

ROOT = Path(__file__).parents[2]
PAIRS = 240


def bundle(run_id: str, configs: list[str], **overrides: object) -> float:
    """Wall seconds of a bundle's run, the start of Python included."""
    words = [sys.executable, "-m", "monai.bundle", "run", run_id, "--config_file", str(configs)]
    for key, value in overrides.items():
        words += [f"--{key}", str(value)]
    start = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_TRACKING_URI": ""}
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def throughput() -> dict[str, Any]:
    """The small network of train.yaml, one thread; inference by the extra time of extra pairs."""
    torch.set_num_threads(1)
    train, inference = "bundle/configs/train.yaml", "bundle/configs/inference.yaml"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"  # a folder named phantom is the bundle's own to make
        make_phantom(data, PhantomSettings(pairs=PAIRS), workers=1)
        common = {"dataset_dir": data, "output_dir": folder, "show_bars": False}
        bundle("training", [train], max_epochs=2, run_name="training", **common)
        record = json.loads((Path(folder) / "training" / "run.json").read_text())
        weights = Path(folder) / "training" / "last.pt"
        sections = json.loads((data / "datalist.json").read_text())
        seconds = {
            section: bundle(
                "inferring", [train, inference], section=section, run_name=section, weights=weights, **common
            )
            for section in ("test", "training")
        }
    more = len(sections["training"]) - len(sections["test"])
    return {
        "training_pairs_per_second": record["cost"]["pairs_per_second"],
        "inference_pairs_per_second": more / (seconds["training"] - seconds["test"]),
    }
