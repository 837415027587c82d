"""The real MONAI Label server, and those that it needs, on the loopback interface."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from clnet.predict.shipped import copy_bundle

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-label" / "bin" / "python"
PATIENCE = 300  # seconds
NO_SCORING = {"MONAI_LABEL_AUTO_UPDATE_SCORING": "false"}  # which would keep a core busy at first


@cache
def venv():
    """Set up .venv-label; returns why that failed, or None."""
    made = subprocess.run([ROOT / "scripts" / "setup_label"], capture_output=True, text=True, check=False)
    return made.stdout + made.stderr if made.returncode else None


def needs_venv():
    """Skip the test without .venv-label, or fail it in CI."""
    if venv():
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f".venv-label cannot be set up:\n{venv()}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(words, log, address, env=None, cwd=None):
    """A server: started, ready when `address` answers, and stopped with all its children."""
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


def is_up(address):
    try:
        with urllib.request.urlopen(address, timeout=5):  # noqa: S310
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def wait_for(holds, fails=lambda: None, seconds=PATIENCE):
    """The first true value of `holds()`; fails if `fails()` becomes true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = holds()
        if found:
            return found
        assert not fails(), fails()
        time.sleep(0.2)
    raise AssertionError(f"{holds} did not become true within {seconds} seconds")


@contextmanager
def start_server(studies, app, *words, **env):
    """./scripts/label on studies; yields the address of the server."""
    needs_venv()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    app.mkdir(parents=True, exist_ok=True)
    if "bundle" not in words:
        copy_bundle(app / "phantom_bundle", "phantom")
        words = (*words, "--conf", "bundle", app / "phantom_bundle")
    command = [ROOT / "scripts" / "label", studies, "--app", app, "--port", port, *words]
    # The datastore's file locks and MONAI Label's .env are looked for in the working directory.
    with running(command, app / "server.txt", f"{address}/clnet/", env, cwd=app):
        yield address


@contextmanager
def start_orthanc(folder):
    """An Orthanc with its DICOMweb plug-in; yields its address."""
    port = free_port()
    settings = {
        "StorageDirectory": str(folder / "storage"),
        "IndexDirectory": str(folder / "storage"),
        "HttpPort": port,
        "DicomServerEnabled": False,
        "RemoteAccessAllowed": False,
        "AuthenticationEnabled": False,
        "Plugins": ["/usr/share/orthanc/plugins/libOrthancDicomWeb.so"],
        "DicomWeb": {"Enable": True, "Root": "/dicom-web/"},
    }
    (folder / "orthanc.json").write_text(json.dumps(settings))
    address = f"http://127.0.0.1:{port}"
    with running(["Orthanc", folder / "orthanc.json"], folder / "orthanc.txt", f"{address}/system"):
        yield address
