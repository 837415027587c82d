"""The record of a folder of results: what it is about, the key it was made with, and that it is undamaged."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clnet.files import are_intact, digests

FILES, RECORD = "files", "record"


def write_record(file: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a folder whose other files are complete.

    Args:
        file: of the record.
        record: has a ``key``, which changes with whatever the results depend on.
    """
    content = {**record, FILES: digests(file.parent)}
    text = json.dumps({**content, RECORD: _digest(content)}, indent=1)
    file.write_text(text + "\n", encoding="utf-8")


def read_record(file: Path, key: str) -> dict[str, Any] | None:
    """The record of a folder; None if it has another key, or if a file there is damaged or missing."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["key"] != key or content.pop(RECORD) != _digest(content):
            return None
        return content if are_intact(file.parent, content.pop(FILES)) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
