"""A node in a process of its own, and what others say to it."""

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from serve_images import bytes_of
from servers import free_port, wait_for

from clnet.serve.journal import JsonLines
from clnet.serve.settings import read_settings

FAST = {"first_seconds": 0.2, "most_seconds": 1}


def needs(*programs):
    """Skip a test without these programs; in CI they must be there."""
    missing = [name for name in programs if not shutil.which(name)]
    return pytest.mark.skipif(
        bool(missing) and not os.environ.get("CI"),
        reason=f"needs {', '.join(missing)} (./scripts/test_serve installs them)",
    )


class ServedNode:
    """A `clnet serve` that can be killed and started again.

    Args:
        folder: for its settings, log and files.
        settings: other than those of a fast node on free ports.
    """

    def __init__(self, folder, /, **settings):
        self.folder, self.process = folder, None
        folder.mkdir(parents=True, exist_ok=True)
        self.dicom, self.http = free_port(), free_port()
        self.settings = {
            "folder": str(folder / "node"),
            "model": "phantom",
            "quiet_seconds": 3,
            "retries": FAST,
            "limits": {"free_gb": 0},
            "retention": {"free_gb": 0},
            **settings,
            "dicom": {"port": self.dicom, **settings.get("dicom", {})},
            "http": {"port": self.http, **settings.get("http", {})},
        }
        self.config, self.log = folder / "serve.yaml", folder / "log.jsonl"
        self.config.write_text(yaml.safe_dump(self.settings))

    @property
    def files(self):
        """The folder of the node."""
        return Path(self.settings["folder"])

    def command(self, *words):
        """`clnet serve …` with its settings."""
        return [sys.executable, "-m", "clnet.cli", "serve", *words, "--config", str(self.config)]

    def start(self, *words, wait=True):
        """Start it; returns when it listens."""
        import warm_processes  # and with it PyTorch and MONAI, which most tests here do without

        command = self.command(*words)
        self.process = warm_processes.start(command[1:], self.folder, output=self.log, errors=self.log)
        if wait:
            wait_for(
                lambda: self.status_of("/ready") == 200,
                lambda: not self.process.is_alive() and self.log.read_text()[-4000:],
            )
        return self

    def kill(self):
        """End it at once."""
        self.process.kill()
        self.process.join()

    def stop(self):
        """End it gently; returns the exit status."""
        self.process.terminate()
        self.process.join(120)
        return self.process.exitcode

    def ask(self, path, headers=None, data=None):
        """(status, content) of a request."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  loopback
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def status_of(self, path):
        """The status of a page; 0 if nobody listens."""
        try:
            return self.ask(path)[0]
        except OSError:
            return 0

    def metric(self, name):
        """The value of a metric."""
        for line in self.ask("/metrics")[1].decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def states(self):
        """The number of studies in each state."""
        names = ("receiving", "complete", "analysing", "sending", "done", "failed")
        return {name: int(self.metric(f'clnet_studies{{state="{name}"}}')) for name in names}

    def wait_until(self, seconds=900, **numbers):
        """Wait for as many studies in these states."""
        return wait_for(
            lambda: all(self.states()[name] == number for name, number in numbers.items()),
            lambda: not self.process.is_alive() and self.log.read_text()[-4000:],
            seconds,
        )

    def events(self, name):
        """The lines of the log about an event."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == name]


class NodeHere(ServedNode):
    """A node in a thread of this process, where what it imports has been imported already."""

    def start(self):
        """Start it; returns when it listens."""
        self.handler = logging.FileHandler(self.log)
        self.handler.setFormatter(JsonLines())
        logging.getLogger().addHandler(self.handler)
        logging.getLogger("clnet").setLevel(logging.INFO)
        from clnet.serve.node import Node  # not for those that need no model

        self.node = Node(read_settings(self.config))
        self.process = threading.Thread(target=self.node.run)
        self.process.start()
        wait_for(lambda: self.status_of("/ready") == 200, lambda: not self.process.is_alive())
        return self

    def stop(self):
        """End it gently."""
        self.node.stop()
        self.process.join(120)
        logging.getLogger().removeHandler(self.handler)
        self.handler.close()


@contextmanager
def serving(folder, **settings):
    """A node that is stopped at the end."""
    node = NodeHere(folder, **settings)
    try:
        yield node.start()
    finally:
        node.stop()


def write_study(folder, study):
    """The files of a study in a new folder."""
    folder.mkdir(parents=True)
    for number, image in enumerate(study):
        (folder / f"{number}.dcm").write_bytes(bytes_of(image))
    return folder


def storescu(port, *paths, called="CLNET", calling="STORESCU", words=()):
    """Send files or folders by dcmtk; the outcome as of `subprocess.run`."""
    command = ["storescu", "-v", *words, "-aet", calling, "-aec", called, "+sd", "+r", "127.0.0.1", str(port)]
    return subprocess.run(
        [*command, *map(str, paths)], capture_output=True, text=True, check=False, timeout=300
    )


@contextmanager
def storescp(folder, port=None):
    """A storage provider of dcmtk, which writes into a folder; yields its port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    process = subprocess.Popen(
        ["storescp", "-aet", "STORESCP", "-od", str(folder), "--fork", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: echo(port, "STORESCP") == 0)
        yield port
    finally:
        process.terminate()
        process.wait()


def echo(port, called, calling="STORESCU"):
    """The exit status of dcmtk's echoscu."""
    command = ["echoscu", "-aet", calling, "-aec", called, "127.0.0.1", str(port)]
    return subprocess.run(command, capture_output=True, check=False).returncode


def make_certificate(folder, name, authority=None):
    """(key, certificate) of this machine, by openssl; self-signed, or signed by another such pair."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    signed = ["-CAkey", authority[0], "-CA", authority[1]] if authority else []
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *signed]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return key, certificate
