"""Times of the way from files to tensors, of the phantom, of the evaluation, and of all in benchmarks/.

What is compared is measured in turn in one run, so that whatever else the machine does hits both sides.
"""

import argparse
import importlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import torch
from benchmarks.full_size import full_size_film
from benchmarks.page import write_page
from machine import machine
from random_findings import random_datalist, random_findings

from clnet.data.datalist import write_datalist
from clnet.data.reader import read_image
from clnet.findings.types import write_findings
from clnet.phantom.dicom import ImageIdentity, write_dicom
from clnet.preprocessing.preprocess import preprocess_views

ROOT = Path(__file__).parent.parent
PHANTOM_PAIRS = 400


def reading_and_preprocessing(folder: Path) -> dict[str, Any]:
    """CPU time from a full film to 1024 rows, against its bare decoding; one thread."""
    torch.set_num_threads(1)
    file = full_size_film("mlo", folder)
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
    """Pairs per second of `clnet phantom` at its default size."""
    seconds = clnet("phantom", "--output", folder / "p", "--pairs", PHANTOM_PAIRS)
    return {"pairs": PHANTOM_PAIRS, "pairs_per_second": PHANTOM_PAIRS / seconds}


def header_scan(folder: Path) -> dict[str, Any]:
    """Seconds of `clnet pairs` on 10,000 DICOM files of 64 × 48 pixels: 2,500 studies of 4 views."""
    files = 10_000
    pixels = np.linspace(0, 4095, 64 * 48).astype(np.uint16).reshape(64, 48)
    for number in range(files):
        identity = ImageIdentity("scan", number // 4, "LR"[number % 2], ("cc", "mlo")[number // 2 % 2])
        write_dicom(folder / f"{number:05d}.dcm", pixels, 0.07, 0.0, "B", identity)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = clnet("pairs", folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"files": files, "seconds": seconds, "cpu_seconds": cpu}


def evaluation(folder: Path) -> dict[str, Any]:
    """Seconds of `clnet evaluate` on 5,000 pairs with 125 detections per view, 2,000 resamples."""
    data, findings = folder / "datalist.json", folder / "findings.json"
    datalist = random_datalist(5000)
    write_datalist(datalist, data)
    write_findings(random_findings(datalist["test"], detections=125, links=16), findings)
    seconds = clnet("evaluate", "--datalist", data, "--findings", findings, "--output", folder / "evaluation")
    return {"pairs": 5000, "seconds": seconds}


def part(module: str, name: str) -> Callable[[Path], dict[str, Any]]:
    """A measurement of benchmarks/, imported when it is its turn: some need packages that others do not."""
    return lambda folder: getattr(importlib.import_module(f"benchmarks.{module}"), name)()


MEASURES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "reading_and_preprocessing": reading_and_preprocessing,
    "phantom": phantom,
    "header_scan": header_scan,
    "evaluation": evaluation,
    "film_training": part("film", "training"),
    "film_inference": part("film", "inference"),
    "film_files": part("film", "files"),
    "attention": part("attention", "attention"),
    "network_512x256": part("network", "network_small"),
    "network_1024x512": part("network", "network_large"),
    "pair": part("network", "pair"),
    "runtimes": part("runtimes", "runtimes"),
    "start": part("start", "start"),
    "memory": part("growth", "memory"),
    "activations": part("activations", "activations"),
    "growth": part("growth", "growth"),
    "throughput": part("throughput", "throughput"),
    "prediction": part("prediction", "prediction"),
}
GPU_VERSIONS = ("clnet", "torch", "transformers")
VERSIONS = ("clnet", "torch", "numba", "transformers", "onnxruntime", "monai", "numpy", "pydicom")


def rows_of(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a measurement, with its place as its name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from rows_of(inner, f"{name} {key}".strip())
    else:
        yield name, value


def measured_before(file: Path, here: dict[str, Any]) -> dict[str, Any]:
    """What the file holds of other measurements, if they are of such a machine with such versions."""
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return before if all(before.get(name) == value for name, value in here.items()) else {}


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", action="append", choices=list(MEASURES), help="may be given several times")
    parser.add_argument(
        "--gpu", action="store_true", help="the GPU of this machine alone, on a page of its own"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the page is written (docs)")
    return parser.parse_args(words)


def measure_gpu(device: torch.device, name: str, docs: Path) -> None:
    """Measure a GPU, write performance_gpu.json and .md, and say what to do with them."""
    from benchmarks import gpu, gpu_page  # needs transformers

    docs.mkdir(parents=True, exist_ok=True)
    file = docs / "performance_gpu.json"
    here = {
        "gpu_name": name,
        "machine": machine(),
        "versions": {name: version(name) for name in GPU_VERSIONS},
    }
    result = here | {"gpu": gpu.gpu(device)}
    file.write_text(json.dumps(result, indent=1) + "\n")
    page = gpu_page.page_of(result)
    file.with_suffix(".md").write_text(page, encoding="utf-8")
    print(f"{page}\nwritten to {file} and performance_gpu.md beside it; please send us both: they name GPU,")
    print("processor and versions, and nothing else of this machine")


def main(words: Sequence[str]) -> None:
    """Measure everything, or what was asked for and keep the rest."""
    options = options_of(words)
    if options.gpu:
        if not torch.cuda.is_available():
            sys.exit("benchmark: --gpu: PyTorch finds no GPU here; torch.cuda.is_available() must be True")
        measure_gpu(torch.device("cuda"), torch.cuda.get_device_name(), options.docs)
        return
    file = options.docs / "performance.json"
    here = {"machine": machine(), "versions": {name: version(name) for name in VERSIONS}}
    result = here | (measured_before(file, here) if options.only else {})
    options.docs.mkdir(parents=True, exist_ok=True)
    for name in options.only or MEASURES:
        with tempfile.TemporaryDirectory() as folder:
            result[name] = MEASURES[name](Path(folder))
        for row, value in rows_of(result[name]):
            print(f"{name:<28}{row:<56}{value:>12.5g}", flush=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
    write_page(result, options.docs)
    print(f"\nwritten to {file} and performance.md beside it")


if __name__ == "__main__":
    main(sys.argv[1:])
