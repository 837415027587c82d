"""Whether `clnet serve` loses anything: studies are sent to it by dcmtk while it is killed at random moments.

Every tenth study has a damaged image, and another tenth is never sent to its end. Senders send a study
again until all its images have been accepted, as archives do. The destination, dcmtk's storescp, is away for
a third of the time, and with `--disk` the node's disk is full for a fifth. At the end each study must be
there exactly once: one report of each kind about all its images that are whole, beside those of fewer images
that it replaces.

A node that will be killed is forked off a process that has imported MONAI, so that it is killed at its work
rather than during these seconds. Without kills, it is started as users start it.
"""

import argparse
import io
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import yaml
from matplotlib.figure import Figure
from own_disk import OwnDisk
from prometheus_client.parser import text_string_to_metric_families
from pydicom.uid import UID
from servers import free_port, is_up, wait_for
from tortures.orphans import orphans_of
from warm_processes import start

from clnet.phantom import PhantomSettings, make_phantom
from clnet.serve.ledger import Ledger

QUIET_SECONDS = 3
UP_SECONDS = (0.0, 20.0)
DAMAGED, HALF = 10, 10  # every so many studies
SIZE = (128, 96)  # rows and columns of images
PATIENT, UID_ROOT = "secret-patient-", "2.25."
KINDS = ("SR", "PR", "OT")  # the modalities of the reports


@dataclass
class Trial:
    """What happened.

    Attributes:
        whole: the SOPInstanceUIDs of the images to report on, by StudyInstanceUID.
        lost, twice: reports that a study is without, or has two of.
        torn: reports that are not as the node wrote them.
        replaced: reports about fewer images, which a later one replaced.
        failed: studies that the node gave up, with the reason.
        kills: when it was killed, in seconds since 1970.
        kills_at_work: how many of these came while a study was on its way.
        fills: how often its disk became full.
        interrupted: lines of the log about what could not be done, by event.
        seconds: how long it took, from when the node was up first.
        memory: (studies done, megabytes that the node held, megabytes of these that are not from files, which
            the system may drop and read again) from time to time, since the last kill.
        cpu: seconds of the node, since the last start.
        steps: seconds in each step, since the last start.
        orphans: processes of the node that outlived it.
        identities: lines of the log that hold a PatientID or a UID.
    """

    whole: dict[str, set[str]] = field(default_factory=dict)
    lost: int = 0
    twice: int = 0
    torn: int = 0
    replaced: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    kills: list[float] = field(default_factory=list)
    kills_at_work: int = 0
    fills: int = 0
    interrupted: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    memory: list[tuple[int, int, int]] = field(default_factory=list)
    cpu: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    orphans: int = 0
    identities: int = 0


def make_studies(folder: Path, number: int, size: Sequence[int], trial: Trial) -> list[list[Path]]:
    """Write studies of images of (rows, columns); returns the files of each that are sent."""
    made = folder / "phantom"
    make_phantom(made, PhantomSettings(2, rows=size[0], columns=size[1]), workers=1)
    images = [pydicom.dcmread(file) for file in sorted((made / "images").glob("*.dcm"))]
    studies = []
    for n in range(number):
        files, whole = [], set()
        sent = images[:2] if n % HALF == 1 else images
        for i, image in enumerate(sent):
            copy = pydicom.dcmread(io.BytesIO(_bytes_of(image)))
            copy.StudyInstanceUID, copy.SeriesInstanceUID = f"{UID_ROOT}1{n:05}", f"{UID_ROOT}2{n:05}{i}"
            copy.SOPInstanceUID = copy.file_meta.MediaStorageSOPInstanceUID = UID(f"{UID_ROOT}3{n:05}{i}")
            copy.PatientID = f"{PATIENT}{n}"
            if n % DAMAGED == 0 and i == 0:
                copy.PixelData = copy.PixelData[:100]
            else:
                whole.add(copy.SOPInstanceUID)
            file = folder / "sent" / f"{n:05}" / f"{i}.dcm"
            file.parent.mkdir(parents=True, exist_ok=True)
            copy.save_as(file, enforce_file_format=True)
            files.append(file)
        trial.whole[f"{UID_ROOT}1{n:05}"] = whole
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
        self.process: Any = None
        self.sessions: list[int] = []  # of each start

    def start(self) -> None:
        """Start it."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.words, stdout=log, stderr=log, start_new_session=True)
        self.sessions.append(self.process.pid)

    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def end(self, how: signal.Signals) -> None:
        """End it by a signal, and wait."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()


class WarmServer(Server):
    """One in Python that need not import MONAI first."""

    def start(self) -> None:
        """Start it."""
        self.process = start(self.words[1:], self.log.parent, output=self.log, errors=self.log)
        self.sessions.append(self.process.pid)

    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return not self.process.is_alive()

    def end(self, how: signal.Signals) -> None:
        """End it by a signal, and wait."""
        os.kill(self.process.pid, how)
        self.process.join()


def send_all(
    studies: list[list[Path]], port: int, associations: int, per_minute: float = 0
) -> list[threading.Thread]:
    """Send studies by several senders at once; each study until all of it has been accepted.

    Args:
        studies: the files of each.
        port: of the node.
        associations: the number of senders.
        per_minute: how many studies begin to be sent in a minute; 0 for as many as it takes.
    """
    waiting: queue.SimpleQueue[tuple[float, list[Path]]] = queue.SimpleQueue()
    began, pause = time.monotonic(), 60 / per_minute if per_minute else 0
    for number, files in enumerate(studies):
        waiting.put((began + number * pause, files))

    def send() -> None:
        while True:
            try:
                begins, files = waiting.get_nowait()
            except queue.Empty:
                return
            time.sleep(max(0, begins - time.monotonic()))
            command = ["storescu", "-aec", "CLNET", "127.0.0.1", str(port), *map(str, files)]
            while subprocess.run(command, capture_output=True, check=False).returncode:
                time.sleep(0.5)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(associations)]
    for thread in threads:
        thread.start()
    return threads


def judge(trial: Trial, archive: Path, results: Path) -> None:
    """Compare what has arrived with what was sent, and with the reports that the node wrote."""
    found: dict[tuple[str, str], list[set[str]]] = {(uid, kind): [] for uid in trial.whole for kind in KINDS}
    sent = {image for whole in trial.whole.values() for image in whole}
    written = {_uid_of(file): file for file in results.rglob("*.dcm")}
    for file in archive.iterdir():
        report = pydicom.dcmread(file)
        trial.torn += report != pydicom.dcmread(written[report.SOPInstanceUID])
        images = {e.value for e in report.iterall() if e.keyword == "ReferencedSOPInstanceUID"}
        found[report.StudyInstanceUID, report.Modality].append(images & sent)
    for (uid, _), reports in found.items():
        final = reports.count(trial.whole[uid])
        trial.lost += not final
        trial.twice += final > 1
        trial.replaced += len(reports) - final


def _uid_of(report: Path) -> str:
    return str(pydicom.dcmread(report, specific_tags=["SOPInstanceUID"]).SOPInstanceUID)


def _memory(process: int) -> tuple[int, int]:
    """Megabytes that a process holds, and those that are not from files."""
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    kilobytes = {words[0]: int(words[1]) for words in lines if words[0] in ("VmRSS:", "RssAnon:")}
    return kilobytes["VmRSS:"] // 2**10, kilobytes["RssAnon:"] // 2**10


def _cpu(process: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    kills: int = 0,
    associations: int = 4,
    seed: int = 0,
    model: str = "phantom",
    disk_mb: int = 0,
    size: Sequence[int] = SIZE,
    up_seconds: tuple[float, float] = UP_SECONDS,
    per_minute: float = 0,
    is_warm: bool = True,
) -> Trial:
    """One trial; see the options.

    The node is up for some seconds at a time, drawn between `up_seconds`. One that will be killed need not
    import MONAI, if `is_warm`.
    """
    trial, chance = Trial(), random.Random(seed)
    disk = OwnDisk(folder / "node", disk_mb) if disk_mb else None
    files = make_studies(folder, studies, size, trial)
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
    how = WarmServer if kills and is_warm else Server
    node = how([*python, "--config", str(config)], folder / "log.jsonl")
    archive = Server(
        ["storescp", "-aet", "STORESCP", "-od", str(folder / "archive"), "--fork", str(away)],
        folder / "archive.txt",
    )
    node.start()
    wait_for(lambda: _is_up_again(node, http))
    began = time.monotonic()
    senders = send_all(files, dicom, associations, per_minute)
    for number in range(kills):
        if number % 3 == 0:
            archive.end(signal.SIGTERM) if archive.process else None
            archive.process = None
        elif number % 3 == 1:
            archive.start()
        if disk is not None and number % 5 == 2:
            disk.fill()
            trial.fills += 1
        elif disk is not None and number % 5 == 3:
            disk.empty()
        if chance.random() < 0.8:  # else it is killed while it starts
            wait_for(lambda: _is_up_again(node, http))
        time.sleep(chance.uniform(*up_seconds))
        node.end(signal.SIGKILL)
        trial.kills.append(time.time())
        node.start()
    if archive.process is None:
        archive.start()
    if disk is not None:
        disk.empty()
    wait_for(lambda: _is_up_again(node, http))

    ledger = Ledger(f"sqlite:///{folder / 'node' / 'queue.sqlite'}")

    def is_done() -> bool:
        counts = ledger.counts()
        if node.process is not None:
            trial.memory.append((counts["done"], *_memory(node.process.pid)))
            trial.cpu = _cpu(node.process.pid)
        return counts["done"] + counts["failed"] == studies and not any(s.is_alive() for s in senders)

    wait_for(is_done, seconds=60 + 30 * studies)
    trial.seconds = time.monotonic() - began
    trial.steps = _seconds_of_steps(f"http://127.0.0.1:{http}/metrics")
    node.end(signal.SIGTERM)
    archive.end(signal.SIGTERM)
    trial.orphans = sum(map(orphans_of, node.sessions))
    trial.failed.update(study.reason for study in ledger.last_studies(studies, "failed"))
    ledger.close()
    trial.interrupted.update(
        line["event"] for line in _lines(folder / "log.jsonl") if line["level"] != "info"
    )
    trial.identities = sum(
        PATIENT in line or UID_ROOT in line for line in (folder / "log.jsonl").read_text().splitlines()
    )
    trial.kills_at_work = kills_at_work(trial.kills, folder / "log.jsonl")
    judge(trial, folder / "archive", folder / "node" / "results")
    if disk is not None:
        disk.close()
    return trial


def _is_up_again(node: Server, http: int) -> bool:
    """Whether the node answers; one that could not start, as its disk was full, is started again."""
    if node.has_ended():
        node.start()
    return is_up(f"http://127.0.0.1:{http}/health")


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def kills_at_work(kills: list[float], log: Path) -> int:
    """How many of the kills came between the first image of a study and its last result."""
    times: dict[str, list[float]] = {}
    for line in _lines(log):
        if line["event"] in ("image received", "study done"):
            time_of_line = datetime.fromisoformat(line["time"]).timestamp()
            times.setdefault(line["study"], []).append(time_of_line)
    return sum(any(min(each) < kill < max(each) for each in times.values()) for kill in kills)


def latencies(log: Path) -> list[float]:
    """Seconds from the last image to the last result, of each study."""
    return [line["seconds"] for line in _lines(log) if line["event"] == "study done"]


def draw_memory(trial: Trial, file: Path) -> None:
    """Write a plot of the node's memory over the studies that are done."""
    figure = Figure((7, 3), layout="constrained")
    axes = figure.add_subplot(xlabel="studies done", ylabel="memory of the node in MB")
    done, held, own = zip(*trial.memory, strict=True)
    axes.plot(done, held, label="all")
    axes.plot(done, own, label="not from files")
    axes.set_ylim(0, 1.2 * max(held))
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=100)


def options_of(words: list[str]) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(prog="./scripts/serve_trial", description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--associations", type=int, default=4)
    parser.add_argument(
        "--per-minute", type=float, default=0, metavar="N", help="send so many studies a minute"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="phantom", help="or `bundle`, the film model")
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the memory of the node")
    parser.add_argument(
        "--disk", type=int, default=0, metavar="MB", help="give the node a disk of this size, full at times"
    )
    parser.add_argument("--keep", type=Path, help="a new folder to work in, which stays")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Run a trial and print what happened."""
    options = options_of(words)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="serve_trial"))
    folder.mkdir(parents=True, exist_ok=True)
    trial = run(
        folder,
        options.studies,
        options.kills,
        options.associations,
        options.seed,
        options.model,
        options.disk,
        options.size,
        per_minute=options.per_minute,
    )
    seconds = latencies(folder / "log.jsonl")
    images = len(list((folder / "sent").rglob("*.dcm")))
    print(f"studies {len(trial.whole)}, images {images}, disk full {trial.fills} times")
    print(f"kills {len(trial.kills)}, {trial.kills_at_work} of them while a study was on its way")
    print(
        f"lost {trial.lost}, twice {trial.twice}, torn {trial.torn}, "
        f"replaced by a later report {trial.replaced}"
    )
    print(f"failed {dict(trial.failed) or 0}, processes left behind {trial.orphans}")
    print(f"lines of the log with an identity {trial.identities}")
    print("in the log: " + ", ".join(f"{event} {number}" for event, number in trial.interrupted.items()))
    print(f"{trial.seconds:.0f} s, {60 * len(trial.whole) / trial.seconds:.1f} studies a minute")
    p50, p99 = np.percentile(seconds, (50, 99))
    print(f"from the last image to the result: p50 {p50:.1f} s, p99 {p99:.1f} s")
    total = sum(trial.steps.values())
    print("steps " + ", ".join(f"{step} {share / total:.0%}" for step, share in trial.steps.items()))
    for done, held, own in (trial.memory[len(trial.memory) // 4], trial.memory[-1]):
        print(f"memory {held} MB after {done} studies, {own} MB of it not from files")
    print(f"CPU of the node since its last start: {trial.cpu:.0f} s")
    if options.plot:
        draw_memory(trial, options.plot)
    if options.keep is None:
        shutil.rmtree(folder)
    wrong = (trial.lost, trial.twice, trial.torn, trial.failed, trial.orphans, trial.identities)
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
