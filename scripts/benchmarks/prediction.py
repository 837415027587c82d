"""`clnet predict`, step by step."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from clnet.phantom import PhantomSettings, make_phantom
from clnet.predict.breasts import find_breasts
from clnet.predict.bundle import load
from clnet.predict.folder_run import Analysis, PredictSettings
from clnet.predict.loading import BreastDataset
from clnet.predict.studies import group_by_study

BUNDLE = Path(__file__).parents[2] / "bundle"


def prediction() -> dict[str, float]:
    """`clnet predict` in one process: pairs per second from DICOM to reports, and where the time goes.

    At the bundle's own input size on small images, and at 1024 × 512 on images of 1024 rows.
    """
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder))


def _measure(folder: Path) -> dict[str, float]:
    result: dict[str, float] = {}
    settings = PredictSettings(batch_size=1)
    for (rows, columns), image in {(160, 96): (320, 224), (1024, 512): (1024, 704)}.items():
        name = f"{rows}x{columns}"
        bundle = folder / f"bundle-{name}"
        shutil.copytree(BUNDLE, bundle)
        config = bundle / "configs" / "train.yaml"
        config.write_text(config.read_text().replace("size: [160, 96]", f"size: [{rows}, {columns}]"))
        make_phantom(folder / name, PhantomSettings(9, rows=image[0], columns=image[1]))
        model, task = load(bundle), find_breasts(folder / name / "images")
        everything = [breast.breast_id for breast in task.breasts]
        studies = group_by_study(task.breasts)
        analysis = Analysis(model, task, folder / f"out-{name}", settings, studies, everything)
        data = BreastDataset(task.breasts, model.loader)
        seconds = np.zeros(3)
        for index in range(len(data)):
            clock = [time.perf_counter()]
            loaded = data[index]
            clock.append(time.perf_counter())
            ((loaded, findings),) = model.find_in_breasts([loaded])
            clock.append(time.perf_counter())
            analysis.write_or_refuse(loaded, findings)
            clock.append(time.perf_counter())
            if index:  # the first one compiles and warms up
                seconds += np.diff(clock)
        result[f"{name}_pairs_per_second"] = (len(data) - 1) / float(seconds.sum())
        for part, share in zip(("reading", "network", "writing"), seconds / seconds.sum(), strict=True):
            result[f"{name}_{part}_share"] = float(share)
    return result
