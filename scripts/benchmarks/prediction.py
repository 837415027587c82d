"""`clnet predict`, from a folder of studies to their reports."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from clnet.data.reader import read_image
from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.breast_folder import write_breast
from clnet.predict.breasts import Task, find_breasts
from clnet.predict.bundle import load
from clnet.predict.loading import BreastDataset
from clnet.predict.model import BATCH_SIZE, BundleModel
from clnet.predict.shipped import copy_bundle
from clnet.reports.dicom import DICOM_REPORTS
from clnet.reports.objects import save_object
from clnet.reports.study import BreastReport, StudyReport
from clnet.runs.allocator import keep_freed_memory

FEW, MANY = 4, 24  # studies
MIN_SCORE = 0.3  # the phantom model's
IMAGE = (1024, 512)
INPUTS = ((160, 96), (1024, 512))
"""Rows and columns: of the images, and of the network's input, its own and a larger one."""
SR_AND_GSPS = ("measurements", "presentation")
ROUNDS = 5


def prediction() -> dict[str, float]:
    """CPU and wall seconds per study of two breasts, by the extra time of extra studies.

    All processes count: those that read, the network's and those that write. And the CPU seconds of each step
    in one process, with the network's own input.
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
        steps = _steps(few)
        result["SR and GSPS cpu per breast"] = sum(steps[kind] for kind in SR_AND_GSPS) / 2
        return result | {f"{step} cpu per study": seconds for step, seconds in steps.items()}


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


def _steps(images: Path) -> dict[str, float]:
    """CPU seconds per study of each step, in one process with one thread: the median of several rounds."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the command does
    model = load("phantom", "cpu")
    task = find_breasts(images)
    rounds = [_round(model, task, images.parent) for _ in range(ROUNDS)]
    number = len({breast.study for breast in task.breasts})
    return {name: statistics.median(one[name] for one in rounds) / number for name in rounds[0]}


def _round(model: BundleModel, task: Task, folder: Path) -> dict[str, float]:
    """CPU seconds of each step for all breasts."""
    seconds = {}

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.process_time()
        yield
        seconds[step] = time.process_time() - start

    dataset = BreastDataset(task.breasts, model.loader)
    with timed("read"):
        for breast in task.breasts:
            for view in breast.pair.views.values():
                read_image(view.image)
    with timed("preprocess"):  # which reads as well
        loaded = [dataset[number] for number in range(len(dataset))]
    seconds["preprocess"] -= seconds["read"]
    with timed("network"):
        batches = [loaded[start : start + BATCH_SIZE] for start in range(0, len(loaded), BATCH_SIZE)]
        found = [pair for batch in batches for pair in model.find_in_breasts(batch)]
    results = [model.result(breast, pair, MIN_SCORE, task.name_of) for breast, pair in found if pair]
    with timed("draw"):
        pictures = [result.draw() for result in results]
    with timed("write findings and picture.png"):
        for result, picture in zip(results, pictures, strict=True):
            write_breast(folder, result, model.name, picture)
    studies: dict[str, list[BreastReport]] = defaultdict(list)
    for result, picture in zip(results, pictures, strict=True):
        report = result.report(picture)
        if report is not None:
            studies[report.sources["cc"].StudyInstanceUID].append(report)
    reports = [StudyReport(tuple(of), model.version, model.notice, MIN_SCORE) for of in studies.values()]
    for kind, documents in DICOM_REPORTS.items():
        with timed(kind):
            for study in reports:
                for document in documents(study):
                    save_object(document, folder / "report.dcm")
    return seconds
