"""Whether `clnet serve` loses anything: studies are sent to it by dcmtk while it is killed at random moments.

Every tenth study has a damaged image, and another tenth is never sent to its end. Senders send a study
again until all its images have been accepted, as archives do. The destination, dcmtk's storescp, is away for
a third of the time. At the end each study must be there exactly once: one report about all its images that
are whole, beside those of fewer images that it replaces.
"""

import argparse
import io
import json
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pydicom
import yaml
from prometheus_client.parser import text_string_to_metric_families
from servers import free_port, is_up, wait_for
from tortures.orphans import orphans_of

from clnet.phantom import PhantomSettings, make_phantom
from clnet.serve.ledger import Ledger

QUIET_SECONDS = 3
UP_SECONDS = (0.0, 20.0)
DAMAGED, HALF = 10, 10  # every so many studies


@dataclass
class Trial:
    """What happened.

    Attributes:
        whole: the SOPInstanceUIDs of the images to report on, by StudyInstanceUID.
        lost, twice, replaced: studies without their report, with two, and reports that a later one replaced.
        failed: studies that the node gave up, with the reason.
        kills: how often it was killed.
        seconds: how long it all took.
        memory: megabytes that the node held, from time to time after everything was sent.
        steps: seconds in each step, since the last start.
        orphans: processes of the node that outlived it.
    """

    whole: dict[str, set[str]] = field(default_factory=dict)
    lost: int = 0
    twice: int = 0
    replaced: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    seconds: float = 0.0
    memory: list[int] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    orphans: int = 0


def make_studies(folder: Path, number: int, trial: Trial) -> list[list[Path]]:
    """Write studies; returns the files of each that are sent."""
    made = folder / "phantom"
    make_phantom(made, PhantomSettings(2, rows=128, columns=96), workers=1)
    images = [pydicom.dcmread(file) for file in sorted((made / "images").glob("*.dcm"))]
    studies = []
    for n in range(number):
        files, whole = [], set()
        sent = images[:2] if n % HALF == 1 else images
        for i, image in enumerate(sent):
            copy = pydicom.dcmread(io.BytesIO(_bytes_of(image)))
            copy.StudyInstanceUID, copy.SeriesInstanceUID = f"2.25.1{n:05}", f"2.25.2{n:05}{i}"
            copy.SOPInstanceUID = copy.file_meta.MediaStorageSOPInstanceUID = f"2.25.3{n:05}{i}"
            copy.PatientID = f"trial-{n}"
            if n % DAMAGED == 0 and i == 0:
                copy.PixelData = copy.PixelData[:100]
            else:
                whole.add(copy.SOPInstanceUID)
            file = folder / "sent" / f"{n:05}" / f"{i}.dcm"
            file.parent.mkdir(parents=True, exist_ok=True)
            copy.save_as(file, enforce_file_format=True)
            files.append(file)
        trial.whole[f"2.25.1{n:05}"] = whole
        studies.append(files)
    return studies


def _bytes_of(image: pydicom.Dataset) -> bytes:
    file = io.BytesIO()
    image.save_as(file, enforce_file_format=True)
    return file.getvalue()


class Server:
    """A program that is killed and started again.

    Args:
        words: of its command.
        log: what it says.
    """

    def __init__(self, words: list[str], log: Path) -> None:
        self.words, self.log = words, log
        self.process: subprocess.Popen[bytes] | None = None
        self.sessions: list[int] = []  # of each start

    def start(self) -> None:
        """Start it."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log, start_new_session=True)
            self.sessions.append(self.process.pid)

    def end(self, how: signal.Signals) -> None:
        """End it by a signal, and wait."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()


def send_all(studies: list[list[Path]], port: int, associations: int) -> list[threading.Thread]:
    """Send studies by several senders at once; each study until all of it has been accepted."""
    waiting: queue.SimpleQueue[list[Path]] = queue.SimpleQueue()
    for files in studies:
        waiting.put(files)

    def send() -> None:
        while True:
            try:
                files = waiting.get_nowait()
            except queue.Empty:
                return
            command = ["storescu", "-aec", "CLNET", "127.0.0.1", str(port), *map(str, files)]
            while subprocess.run(command, capture_output=True, check=False).returncode:
                time.sleep(0.5)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(associations)]
    for thread in threads:
        thread.start()
    return threads


def judge(trial: Trial, archive: Path) -> None:
    """Compare what has arrived with what was sent."""
    found: dict[str, list[tuple[set[str], set[str], str]]] = {uid: [] for uid in trial.whole}
    for file in archive.iterdir():
        report = pydicom.dcmread(file)
        if report.Modality == "SR":
            items = report.CurrentRequestedProcedureEvidenceSequence[0].ReferencedSeriesSequence
            images = {i.ReferencedSOPInstanceUID for s in items for i in s.ReferencedSOPSequence}
            before = {
                item.ReferencedSOPInstanceUID
                for study in report.get("PredecessorDocumentsSequence", [])
                for series in study.ReferencedSeriesSequence
                for item in series.ReferencedSOPSequence
            }
            found[report.StudyInstanceUID].append((images, before, report.SOPInstanceUID))
    for uid, whole in trial.whole.items():
        final = [report for report in found[uid] if report[0] == whole]
        trial.lost += not final
        trial.twice += len(final) > 1
        trial.replaced += len(found[uid]) - len(final)


def _memory(process: int) -> int:
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 2**20


def _seconds_of_steps(address: str) -> dict[str, float]:
    """Seconds spent in each step, since the node was started last."""
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  loopback
        text = answer.read().decode()
    return {
        sample.labels["step"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "clnet_step_seconds_sum"
    }


def run(
    folder: Path,
    studies: int,
    kills: int,
    associations: int,
    seed: int,
    model: str,
    up_seconds: tuple[float, float] = UP_SECONDS,
) -> Trial:
    """One trial; the node is up for so many seconds at a time, drawn between these."""
    trial, chance = Trial(), random.Random(seed)
    files = make_studies(folder, studies, trial)
    dicom, http, away = free_port(), free_port(), free_port()
    (folder / "archive").mkdir()
    config = folder / "serve.yaml"
    destination = {"name": "archive", "dicom": {"host": "127.0.0.1", "port": away, "ae_title": "STORESCP"}}
    config.write_text(
        yaml.safe_dump(
            {
                "folder": str(folder / "node"),
                "model": model,
                "quiet_seconds": QUIET_SECONDS,
                "dicom": {"port": dicom},
                "http": {"port": http},
                "destinations": [destination],
                "retries": {"first_seconds": 1, "most_seconds": 5, "analysis": kills + 5},
                "limits": {"free_gb": 0},
                "retention": {"free_gb": 0},
            }
        )
    )
    python = [sys.executable, "-m", "clnet.cli", "serve"]
    node = Server([*python, "--config", str(config)], folder / "log.jsonl")
    archive = Server(
        ["storescp", "-aet", "STORESCP", "-od", str(folder / "archive"), "--fork", str(away)],
        folder / "archive.txt",
    )
    began = time.monotonic()
    node.start()
    senders = send_all(files, dicom, associations)
    for number in range(kills):
        if number % 3 == 0:
            archive.end(signal.SIGTERM) if archive.process else None
            archive.process = None
        elif number % 3 == 1:
            archive.start()
        if chance.random() < 0.8:  # else it is killed while it starts
            wait_for(lambda: is_up(f"http://127.0.0.1:{http}/health"))
        time.sleep(chance.uniform(*up_seconds))
        node.end(signal.SIGKILL)
        trial.kills += 1
        node.start()
    if archive.process is None:
        archive.start()
    for sender in senders:
        sender.join()
    wait_for(lambda: is_up(f"http://127.0.0.1:{http}/health"))

    ledger = Ledger(f"sqlite:///{folder / 'node' / 'queue.sqlite'}")

    def is_done() -> bool:
        if isinstance(node.process, subprocess.Popen):
            trial.memory.append(_memory(node.process.pid))
        counts = ledger.counts()
        return counts["done"] + counts["failed"] == studies

    wait_for(is_done, seconds=60 + 30 * studies)
    trial.seconds = time.monotonic() - began
    trial.steps = _seconds_of_steps(f"http://127.0.0.1:{http}/metrics")
    node.end(signal.SIGTERM)
    archive.end(signal.SIGTERM)
    trial.orphans = sum(map(orphans_of, node.sessions))
    trial.failed.update(study.reason for study in ledger.last_studies(studies, "failed"))
    ledger.close()
    judge(trial, folder / "archive")
    return trial


def latencies(log: Path) -> list[float]:
    """Seconds from the last image to the last result, of each study."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line["seconds"] for line in lines if line["event"] == "study done"]


def options_of(words: list[str]) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(prog="./scripts/serve_trial", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--associations", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="phantom")
    parser.add_argument("--keep", type=Path, help="a new folder to work in, which stays")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Run a trial and print what happened."""
    options = options_of(words)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="serve_trial"))
    folder.mkdir(parents=True, exist_ok=True)
    trial = run(folder, options.studies, options.kills, options.associations, options.seed, options.model)
    seconds = latencies(folder / "log.jsonl")
    images = len(list((folder / "sent").rglob("*.dcm")))
    print(f"studies {len(trial.whole)}, images {images}, kills {trial.kills}")
    print(f"lost {trial.lost}, twice {trial.twice}, replaced by a later report {trial.replaced}")
    print(f"failed {dict(trial.failed) or 0}, processes left behind {trial.orphans}")
    print(f"{trial.seconds:.0f} s, {60 * len(trial.whole) / trial.seconds:.1f} studies a minute")
    p50, p99 = np.percentile(seconds, (50, 99))
    print(f"from the last image to the result: p50 {p50:.1f} s, p99 {p99:.1f} s")
    total = sum(trial.steps.values())
    print("steps " + ", ".join(f"{step} {share / total:.0%}" for step, share in trial.steps.items()))
    print(f"memory {trial.memory[0]} MB when all was sent, {trial.memory[-1]} MB at the end")
    if options.keep is None:
        shutil.rmtree(folder)
    return int(bool(trial.lost or trial.twice or trial.failed or trial.orphans))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
