"""The folder that an evaluation is written to.

``metrics.json`` is for people and programs; ``errors.json`` lists every error; ``record.npz`` is what
`clnet compare` computes from; ``froc.png`` is the curve.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clnet.data.datalist import read_datalist
from clnet.errors import ClnetError
from clnet.evaluation.cohort import CohortError
from clnet.evaluation.figure import draw_froc
from clnet.evaluation.froc import RATES
from clnet.evaluation.metrics import SCHEMA_VERSION, Evaluation, EvaluationSettings, evaluate
from clnet.evaluation.record import write_record
from clnet.inference.findings import read_findings

METRICS_FILE = "metrics.json"


class FolderError(ClnetError):
    """A folder that holds no evaluation; the message names the file."""


def evaluate_files(
    datalist: str | Path,
    section: str,
    findings: str | Path,
    out: str | Path,
    settings: EvaluationSettings | None = None,
) -> Evaluation:
    """Evaluate a findings file on a section of a datalist, and write everything into the folder `out`."""
    out = Path(out)
    data = read_datalist(datalist)
    try:
        evaluation = evaluate(data[section], read_findings(findings), settings)
    except CohortError as error:
        raise CohortError(f"{findings} on section {section!r} of {datalist}: {error}") from error
    metrics = evaluation.metrics
    metrics["data"] = {
        "name": data.name,
        "section": section,
        "datalist": Path(os.path.relpath(datalist, out)).as_posix(),
        "findings": Path(os.path.relpath(findings, out)).as_posix(),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_record(evaluation.record, out)
    lines = ",".join(f"\n {_json(asdict(error))}" for error in evaluation.errors)
    (out / "errors.json").write_text(f"[{lines}]\n", encoding="utf-8")
    curves = {f"IoU ≥ {key.removeprefix('iou=')}": at["curve"] for key, at in metrics["detection"].items()}
    draw_froc({metrics["model"]: curves}, out / "froc.png", RATES)
    # Last, so that a folder with metrics is a whole one.
    (out / METRICS_FILE).write_text(_json(metrics, indent=1) + "\n", encoding="utf-8")
    return evaluation


def read_metrics(folder: str | Path) -> dict[str, Any]:
    """Read ``metrics.json`` of a folder."""
    path = Path(folder) / METRICS_FILE
    try:
        metrics = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(
            f"{path}: there is no such file; give a folder that `clnet evaluate` wrote"
        ) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FolderError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(metrics, dict) or metrics.get("schema") != SCHEMA_VERSION or "detection" not in metrics:
        raise FolderError(f"{path}: holds no evaluation of schema {SCHEMA_VERSION}; evaluate again")
    return metrics


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
