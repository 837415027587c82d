"""Two machines on one: network namespaces, joined by a pair of virtual network cards."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from in_process import SETTINGS

CARD = "clnet0"
# Without it a machine that comes back waits for ever, in PyTorch 2.13: only at its first rendezvous does
# torchrun tell the others where their processes meet.
WITH_A_NEW_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
RENDEZVOUS = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "10.231.7.1:29400", "--rdzv-id", "clnet")


@dataclass(frozen=True)
class Machine:
    """A network namespace with a card of its own; it shares the disk with the others, as cluster nodes do."""

    name: str
    address: str
    is_host: bool  # of the rendezvous; torchrun compares names, and all namespaces have the same

    def torchrun(self, words: list[str], folder: Path, log: Path) -> "subprocess.Popen[bytes]":
        """Start torchrun as one node of two, with one process."""
        node = ["--nnodes", "2", "--nproc_per_node", "1", "--max-restarts", "3", "--local-addr", self.address]
        node += ["--rdzv-conf", f"is_host={self.is_host},read_timeout=300"]
        start = ["ip", "netns", "exec", self.name, sys.executable, "-m", "torch.distributed.run"]
        with log.open("ab") as said:
            return subprocess.Popen(
                [*start, *node, *RENDEZVOUS, *words],
                cwd=folder,
                env={**os.environ, **SETTINGS, **WITH_A_NEW_STORE, "GLOO_SOCKET_IFNAME": CARD},
                stdout=said,
                stderr=said,
            )

    def kill(self) -> None:
        """End every process of the machine at once, without a chance to say so."""
        for process in ip("netns", "pids", self.name).split():
            os.kill(int(process), signal.SIGKILL)


def ip(*words: str) -> str:
    """What `ip words…` prints."""
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def why_not() -> str | None:
    """What is missing for network namespaces here, if anything."""
    if shutil.which("ip") is None:
        return "network namespaces need the program ip, of Debian's package iproute2"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"clnet-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"no network namespace can be made here: {made.stderr.strip()}"
    ip("netns", "delete", name)
    return None


@contextmanager
def two_machines() -> Iterator[list[Machine]]:
    """Two machines in one network, which has nobody else in it."""
    machines = [Machine(f"clnet-{os.getpid()}-{host}", f"10.231.7.{host}", host == 1) for host in (1, 2)]
    try:
        for machine in machines:
            ip("netns", "add", machine.name)
        ends = [["name", CARD, "netns", machine.name] for machine in machines]
        ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        for machine in machines:
            ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", CARD)
            for card in ("lo", CARD):
                ip("-n", machine.name, "link", "set", card, "up")
        yield machines
    finally:
        for machine in machines:
            if (Path("/run/netns") / machine.name).exists():
                machine.kill()
                ip("netns", "delete", machine.name)
