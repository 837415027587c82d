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
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from own_disk import OwnDisk
from serve_trials.outcome import Trial, draw_memory, judge, kills_at_work, latencies, lines_of
from serve_trials.programs import Server, WarmServer, cpu_of, memory_of, seconds_of_steps
from serve_trials.studies import PATIENT, UID_ROOT, make_studies, send_all
from servers import free_port, is_up, wait_for
from tortures.orphans import orphans_of

from clnet.serve.ledger import Ledger

QUIET_SECONDS = 3
UP_SECONDS = (0.0, 20.0)
SIZE = (128, 96)  # rows and columns of images


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
            trial.memory.append((counts["done"], *memory_of(node.process.pid)))
            trial.cpu = cpu_of(node.process.pid)
        return counts["done"] + counts["failed"] == studies and not any(s.is_alive() for s in senders)

    wait_for(is_done, seconds=60 + 30 * studies)
    trial.seconds = time.monotonic() - began
    trial.steps = seconds_of_steps(f"http://127.0.0.1:{http}/metrics")
    node.end(signal.SIGTERM)
    archive.end(signal.SIGTERM)
    trial.orphans = sum(map(orphans_of, node.sessions))
    trial.failed.update(study.reason for study in ledger.last_studies(studies, "failed"))
    ledger.close()
    trial.interrupted.update(
        line["event"] for line in lines_of(folder / "log.jsonl") if line["level"] != "info"
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
