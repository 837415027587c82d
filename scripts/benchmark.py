"""Times of the way from files to tensors, of the phantom and of the evaluation.

What is compared is measured in turn in one run, so that whatever else the machine does hits both sides.
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import torch
from pydicom.uid import RLELossless

from clnet.data.datalist import write_datalist
from clnet.data.reader import read_image
from clnet.inference.findings import write_findings
from clnet.preprocessing.preprocess import preprocess_views

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "evaluation"))


def full_size_film(folder: Path) -> Path:
    """A film of the test data at its full size of 4464 × 2848, 16 bit, RLE."""
    film = pydicom.dcmread(ROOT / "tests" / "data" / "cbis-ddsm" / "left_mlo.dcm")
    pixels = np.kron(film.pixel_array, np.ones((8, 8), np.uint16))
    noise = np.random.default_rng(0).integers(0, 256, pixels.shape, dtype=np.uint16)
    pixels = np.where(pixels > 256, pixels - noise, pixels)
    film.Rows, film.Columns = pixels.shape
    film.compress(RLELossless, pixels)
    film.save_as(folder / "full.dcm")
    return folder / "full.dcm"


def reading_and_preprocessing(folder: Path) -> dict[str, Any]:
    """CPU time from a full film to 1024 rows, against its bare decoding; one thread."""
    torch.set_num_threads(1)
    file = full_size_film(folder)
    decode, whole = [], []
    for _ in range(7):
        fresh = pydicom.dcmread(file)
        clock = [time.process_time()]
        _ = fresh.pixel_array
        clock.append(time.process_time())
        preprocess_views([read_image(file)], (1024, 512))
        clock.append(time.process_time())
        decode.append(clock[1] - clock[0])
        whole.append(clock[2] - clock[1])
    seconds, decoding = statistics.median(whole), statistics.median(decode)
    return {"cpu_seconds": seconds, "decode_cpu_seconds": decoding, "ratio": seconds / decoding}


def clnet(*words: object) -> float:
    """Seconds of a command, the start of Python included."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "clnet.cli", *map(str, words)], check=True, capture_output=True)
    return time.perf_counter() - start


def phantom(folder: Path) -> dict[str, Any]:
    """Pairs a second of `clnet phantom` at its default size."""
    pairs = 400
    return {
        "pairs": pairs,
        "pairs_per_second": pairs / clnet("phantom", "--out", folder / "p", "--pairs", pairs),
    }


def evaluation(folder: Path) -> dict[str, Any]:
    """Seconds of `clnet evaluate` on 5,000 pairs with 125 detections a view, 2,000 resamples."""
    from random_findings import random_datalist, random_findings

    data, findings = folder / "datalist.json", folder / "findings.json"
    datalist = random_datalist(5000)
    write_datalist(datalist, data)
    write_findings(random_findings(datalist["test"], detections=125, links=16), findings)
    seconds = clnet("evaluate", "--datalist", data, "--findings", findings, "--out", folder / "evaluation")
    return {"pairs": 5000, "seconds": seconds}


def prediction(folder: Path) -> dict[str, Any]:
    """`clnet predict` in one process: pairs a second from DICOM to SR, and where the time goes.

    At the bundle's own input size on small images, and at 1024 × 512 on images of 1024 rows.
    """
    from clnet.data.phantom import PhantomSettings, make_phantom
    from clnet.inference.breasts import find_breasts
    from clnet.inference.bundle import open_bundle
    from clnet.inference.loading import BreastDataset
    from clnet.inference.predict import Analysis, PredictSettings, find_in_breasts

    result, settings = {}, PredictSettings(batch_size=1)
    for (rows, columns), image in {(160, 96): (320, 224), (1024, 512): (1024, 704)}.items():
        name = f"{rows}x{columns}"
        bundle = folder / f"bundle-{name}"
        shutil.copytree(ROOT / "bundle", bundle)
        config = bundle / "configs" / "train.yaml"
        config.write_text(config.read_text().replace("size: [160, 96]", f"size: [{rows}, {columns}]"))
        make_phantom(folder / name, PhantomSettings(9, rows=image[0], columns=image[1]))
        model, task = open_bundle(bundle), find_breasts(folder / name / "images")
        analysis = Analysis(model, task, folder / f"out-{name}", settings)
        data = BreastDataset(task.breasts, model.load)
        seconds = np.zeros(3)
        for index in range(len(data)):
            clock = [time.perf_counter()]
            loaded = data[index]
            clock.append(time.perf_counter())
            ((loaded, findings),) = find_in_breasts(model, [loaded])
            clock.append(time.perf_counter())
            analysis.write(loaded, findings)
            clock.append(time.perf_counter())
            if index:  # the first one compiles and warms up
                seconds += np.diff(clock)
        result[f"{name}_pairs_per_second"] = (len(data) - 1) / float(seconds.sum())
        for part, share in zip(("reading", "network", "writing"), seconds / seconds.sum(), strict=True):
            result[f"{name}_{part}_share"] = float(share)
    return result


def main(out: Path) -> None:
    """Measure everything."""
    result: dict[str, Any] = {
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "versions": {name: version(name) for name in ("clnet", "torch", "monai", "numpy", "pydicom")},
    }
    for measure in (reading_and_preprocessing, phantom, evaluation, prediction):
        with tempfile.TemporaryDirectory() as folder:
            result[measure.__name__] = measure(Path(folder))
        for name, value in result[measure.__name__].items():
            print(f"{measure.__name__:<28}{name:<26}{value:>10.3f}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
