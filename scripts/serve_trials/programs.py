"""Programs that are killed and started again, and what they use."""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from warm_processes import start


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


def memory_of(process: int) -> tuple[int, int]:
    """Megabytes that a process holds, and those that are not from files."""
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    kilobytes = {words[0]: int(words[1]) for words in lines if words[0] in ("VmRSS:", "RssAnon:")}
    return kilobytes["VmRSS:"] // 2**10, kilobytes["RssAnon:"] // 2**10


def cpu_of(process: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_of_steps(address: str) -> dict[str, float]:
    """Seconds spent in each step, since the node was started last."""
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  loopback
        text = answer.read().decode()
    return {
        sample.labels["step"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "clnet_step_seconds_sum"
    }
