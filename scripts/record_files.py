"""The JSON files of runs, evaluations and records."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, content: Any, indent: int = 1) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def cpu_hours(epochs: Sequence[Mapping[str, Any]]) -> float:
    """CPU time of a training in hours; the clock of the process starts again when the training is resumed."""
    seconds = [line["cpu_seconds"] for line in epochs]
    ends = [now for now, later in zip(seconds, [*seconds[1:], 0.0], strict=True) if later < now]
    return sum(ends) / 3600
