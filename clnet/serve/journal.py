"""What a node says: a structured log without identities, and an audit log that may hold them.

The log names studies and images by digests. Other libraries may quote patients in their messages, so of these
only the name of the logger, the level and the place in the code are written.
"""

import json
import logging
import os
import socket
import sys
import threading
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

_logger = logging.getLogger("clnet.serve")


def log(event: str, **facts: Any) -> None:
    """Write a line of the structured log; no fact may identify a patient."""
    _logger.info(event, extra={"facts": facts})


def warn(event: str, **facts: Any) -> None:
    """Write a warning of the structured log."""
    _logger.warning(event, extra={"facts": facts})


class JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower()}
        if record.name.startswith("clnet"):
            line |= {"event": record.getMessage(), **getattr(record, "facts", {})}
        else:
            line |= {"event": "library", "logger": record.name, "place": f"{record.module}:{record.lineno}"}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def write_log_to_stderr() -> None:
    """Make the structured log all that this process says."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("clnet").setLevel(logging.INFO)
    for name in ("pynetdicom", "pydicom", "procrastinate"):  # each refused object is a warning to them
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    threading.excepthook = lambda died: _logger.error(
        "thread died",
        extra={"facts": {"error": getattr(died.exc_type, "__name__", "")}},
    )


class Audit:
    """Who sent what, who got what, who looked: a file of JSON lines that only its owner may read.

    Args:
        folder: where it is; one file for each machine.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = os.open(
            folder / f"{socket.gethostname()}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
        )

    def write(self, event: str, **facts: Any) -> None:
        """Add a line."""
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"time": time, "event": event, **facts}, ensure_ascii=False)
        os.write(self._file, f"{line}\n".encode())  # one call, so that lines of several threads stay apart

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
