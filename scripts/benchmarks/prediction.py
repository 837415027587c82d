"""`clnet predict`, from a folder of studies to their reports."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import torch

from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.bundle import load
from clnet.predict.shipped import copy_bundle
from clnet.reports.dicom import DICOM_REPORTS
from clnet.reports.objects import save_object
from clnet.reports.study import BreastReport, StudyReport

FEW, MANY = 4, 24  # studies
MIN_SCORE = 0.3  # the phantom model's
IMAGE = (1024, 512)
INPUTS = ((160, 96), (1024, 512))
"""Rows and columns: of the images, and of the network's input, its own and a larger one."""
SR_AND_GSPS = ("measurements", "presentation")


def prediction() -> dict[str, float]:
    """CPU and wall seconds per study of two breasts, by the extra time of extra studies.

    All processes count: those that read, the network's and those that write. And the CPU seconds per breast
    of the Measurement Report and the presentation state, in one process.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_phantom(
            folder / "phantom", PhantomSettings(2 * MANY, rows=IMAGE[0], columns=IMAGE[1]), workers=1
        )
        few = folder / "few"
        few.mkdir()
        files = sorted((folder / "phantom" / "images").glob("*.dcm"))
        for file in files[: 4 * FEW]:
            (few / file.name).symlink_to(file)
        result = {}
        for rows, columns in INPUTS:
            bundle = folder / f"bundle-{rows}"
            copy_bundle(bundle, "phantom")
            config = bundle / "configs" / "train.yaml"
            config.write_text(config.read_text().replace("size: [160, 96]", f"size: [{rows}, {columns}]"))
            seconds = [
                _predict(images, bundle, folder / f"{images.name}-{rows}")
                for images in (few, files[0].parent)
            ]
            for clock, (less, more) in zip(("cpu", "wall"), zip(*seconds, strict=True), strict=True):
                result[f"{rows}x{columns} {clock} per study"] = (more - less) / (MANY - FEW)
        return {**result, "SR and GSPS cpu per breast": _writing(few)}


def _predict(images: Path, bundle: Path, output: Path) -> tuple[float, float]:
    """CPU and wall seconds of the command with its processes."""
    words = [sys.executable, "-m", "clnet.cli", "predict", images, "--output", output, "--model", bundle]
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*map(str, words), "--min-score", str(MIN_SCORE), "--device", "cpu"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - wall


def _writing(images: Path) -> float:
    torch.set_num_threads(1)
    model = load("phantom", "cpu")
    studies: dict[str, list[BreastReport]] = defaultdict(list)
    for analysed in model.predict(images):
        breast = analysed.report()
        if breast is not None:
            studies[breast.sources["cc"].StudyInstanceUID].append(breast)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        for breasts in studies.values():
            report = StudyReport(tuple(breasts), model.version, model.notice, model.min_score)
            for kind in SR_AND_GSPS:
                for document in DICOM_REPORTS[kind](report):
                    save_object(document, images.parent / "report.dcm")
        seconds.append(time.process_time() - start)
    return sorted(seconds)[len(seconds) // 2] / (2 * len(studies))
