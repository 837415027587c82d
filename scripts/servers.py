"""Servers on the loopback interface: started, ready when they answer, and stopped with all their children."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 300  # seconds
DICOMWEB_PLUGIN = Path("/usr/share/orthanc/plugins/libOrthancDicomWeb.so")


def free_port() -> int:
    """A port that no server uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(
    words: Sequence[Any],
    log: Path,
    address: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[None]:
    """A server that was started by a command and answers.

    Args:
        words: of the command.
        log: the file for what it says.
        address: what it answers when it is ready.
        env: further environment variables.
        cwd: its working directory.
    """
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=file,
            stderr=file,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    try:
        wait_for(lambda: is_up(address), lambda: process.poll() is not None and log.read_text()[-4000:])
        yield
    finally:
        with suppress(ProcessLookupError):  # it may have failed
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def is_up(address: str) -> bool:
    """Whether a server answers, if only with an error."""
    try:
        with urllib.request.urlopen(address, timeout=5):  # noqa: S310  loopback
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def wait_for(
    holds: Callable[[], Any], fails: Callable[[], Any] = lambda: None, seconds: float = PATIENCE
) -> Any:
    """The first true value of `holds()`; raises an error when `fails()` is true, or after some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = holds()
        if found:
            return found
        failure = fails()
        if failure:
            raise AssertionError(failure)
        time.sleep(0.2)
    raise AssertionError(f"{holds} did not become true within {seconds} seconds")


@contextmanager
def start_orthanc(folder: Path, **more: Any) -> Iterator[str]:
    """An Orthanc, with its DICOMweb plug-in if that is installed, which stores in a folder.

    Args:
        folder: exists.
        more: of its settings.

    Yields:
        Its address.
    """
    settings = {
        "StorageDirectory": str(folder / "storage"),
        "IndexDirectory": str(folder / "storage"),
        "HttpPort": free_port(),
        "DicomServerEnabled": False,
        "RemoteAccessAllowed": False,
        "AuthenticationEnabled": False,
        "Plugins": [str(DICOMWEB_PLUGIN)] if DICOMWEB_PLUGIN.exists() else [],
        "DicomWeb": {"Enable": True, "Root": "/dicom-web/"},
        **more,
    }
    (folder / "orthanc.json").write_text(json.dumps(settings))
    address = f"http://127.0.0.1:{settings['HttpPort']}"
    with running(["Orthanc", folder / "orthanc.json"], folder / "orthanc.txt", f"{address}/system"):
        yield address


def ask_orthanc(address: str, path: str, data: bytes | None = None) -> Any:
    """Orthanc's answer to a request of its REST API; with data, a POST."""
    with urllib.request.urlopen(f"{address}{path}", data, timeout=60) as answer:  # noqa: S310  loopback
        return json.load(answer)
