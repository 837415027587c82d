"""What happened in a trial of `clnet serve`: what was sent, and what arrived of it."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pydicom
from matplotlib.figure import Figure

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


def lines_of(log: Path) -> list[dict[str, Any]]:
    """The lines of a log of the node."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def kills_at_work(kills: list[float], log: Path) -> int:
    """How many of the kills came between the first image of a study and its last result."""
    times: dict[str, list[float]] = {}
    for line in lines_of(log):
        if line["event"] in ("image received", "study done"):
            time_of_line = datetime.fromisoformat(line["time"]).timestamp()
            times.setdefault(line["study"], []).append(time_of_line)
    return sum(any(min(each) < kill < max(each) for each in times.values()) for kill in kills)


def latencies(log: Path) -> list[float]:
    """Seconds from the last image to the last result, of each study."""
    return [line["seconds"] for line in lines_of(log) if line["event"] == "study done"]


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
