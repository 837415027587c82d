"""The real MONAI Label server on the loopback interface."""

import os
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from servers import free_port, running

from clnet.predict.shipped import copy_bundle

ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".venv-label" / "bin" / "python"
TOKEN = "token-of-the-tests"  # noqa: S105
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
    env = {"CLNET_LABEL_TOKEN": TOKEN, **env}
    with running(command, app / "server.txt", f"{address}/clnet/", env, cwd=app):
        yield address
