"""Finished runs, kept as small files in docs/evidence/runs, so that nobody has to train them again."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablations.outcome import Outcome, unpack
from ablations.runs import Plan, changes

from clnet.files import write_text


class KeptRun:
    """A finished run, as in its file."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.content = content

    def outcome(self, section: str) -> Outcome:
        """The outcome on a section."""
        return unpack(self.content["sections"][section]["outcome"])


def write_run(content: Mapping[str, Any], folder: Path, name: str) -> None:
    """Keep a run."""
    write_text(folder / f"{name}.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_runs(folder: Path) -> dict[tuple[str, int], KeptRun]:
    """The runs of a folder, by setting and seed."""
    runs = (KeptRun(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json")))
    return {(run.content["setting"], run.content["seed"]): run for run in runs}


def differences(kept: Mapping[str, Any], plan: Plan, fingerprint: str) -> Iterator[str]:
    """How a kept run differs from the planned one; nothing if it does not."""
    if kept["data_fingerprint"] != fingerprint:
        yield "different data"
    yield from changes(kept["settings"], plan.settings())
