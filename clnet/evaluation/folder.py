"""The folder of an evaluation.

``metrics.json`` holds every number, ``errors.json`` every error, ``record.npz`` what `clnet compare` needs;
``froc.png`` is the curve and ``report.html`` the report.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clnet.data.datalist import Datalist, read_datalist
from clnet.errors import ClnetError
from clnet.evaluation.cohort import CohortError
from clnet.evaluation.error_types import Error
from clnet.evaluation.figure import draw_froc
from clnet.evaluation.metrics import SCHEMA_VERSION, Evaluation, evaluate
from clnet.evaluation.protocols import EvaluationSettings, Rules, find_protocol, protocol_words
from clnet.evaluation.record import iou_words, pair_key, read_record, write_record
from clnet.evaluation.report import MAX_PAIRS, write_report
from clnet.files import make_folder
from clnet.findings.coco_results import is_coco_results, read_coco_results
from clnet.findings.types import Findings, FindingsError, read_findings

METRICS_FILE = "metrics.json"
ERRORS_FILE = "errors.json"


class FolderError(ClnetError):
    """A folder without an evaluation; the message names the file."""


def evaluate_files(
    datalist: str | Path,
    findings: str | Path,
    section: str = "test",
    output: str | Path | None = None,
    settings: EvaluationSettings | None = None,
    report: bool = True,
    max_pairs: int = MAX_PAIRS,
    coco_images: str | Path | None = None,
) -> Evaluation:
    """Evaluate a findings file on a section of a datalist; `clnet.evaluate`.

    Args:
        datalist: a datalist, or a folder with one.
        findings: the findings file, or COCO results (see `clnet.findings.coco_results`).
        section: the section of the datalist to evaluate on.
        output: the folder to write metrics, errors, curves and the report to; None writes nothing.
        settings: None for the defaults.
        report: whether to write ``report.html``.
        max_pairs: the maximum number of pairs in the report's viewer.
        coco_images: the COCO file whose ``images`` have the ids of the COCO results; None if these ids are
            file names.
    """
    data = read_datalist(datalist)
    found = _read_findings(findings, data, section, coco_images)
    try:
        evaluation = evaluate(data[section], found, settings)
    except CohortError as error:
        raise CohortError(f"{findings} on section {section!r} of {datalist}: {error}") from error
    if output is None:
        return evaluation
    output, metrics = Path(output), evaluation.metrics
    metrics["data"] = {
        "name": data.name,
        "section": section,
        "datalist": Path(os.path.relpath(datalist, output)).as_posix(),
        "findings": Path(os.path.relpath(findings, output)).as_posix(),
        "coco_images": coco_images and Path(os.path.relpath(coco_images, output)).as_posix(),
    }
    make_folder(output)
    write_record(evaluation.record, output)
    lines = ",".join(f"\n {_json(asdict(error))}" for error in evaluation.errors)
    (output / ERRORS_FILE).write_text(f"[{lines}]\n", encoding="utf-8")
    chosen = metrics["settings"]
    curves = {iou_words(key, chosen["matching"]): at["curve"] for key, at in metrics["detection"].items()}
    title = f"{metrics['model']}, {protocol_words(chosen)}"
    rates = find_protocol(chosen["protocol"]).shown_rates
    draw_froc({title: curves}, output / "froc.png", rates, chosen["interpolate"])
    if report:
        write_report(output, metrics, evaluation.errors, data[section], found, max_pairs)
    # Last, so that a folder with metrics is complete.
    (output / METRICS_FILE).write_text(_json(metrics, indent=1) + "\n", encoding="utf-8")
    return evaluation


def report_on_folder(folder: str | Path, max_pairs: int = MAX_PAIRS) -> Path:
    """Write the report of a finished evaluation to its folder, and return its path.

    The datalist and the findings that the metrics name must still be where they were.
    """
    folder = Path(folder)
    metrics = read_metrics(folder)
    path = folder / ERRORS_FILE
    try:
        errors = [Error(**error) for error in json.loads(path.read_text(encoding="utf-8"))]
        datalist, findings = (folder / metrics["data"][name] for name in ("datalist", "findings"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FolderError(
            f"{path}: cannot be read as the errors of an evaluation ({error!r}); evaluate again"
        ) from error
    data, section = read_datalist(datalist), metrics["data"]["section"]
    pairs = data[section]
    record = read_record(folder)
    boxes = sum(len(view.boxes) for pair in pairs for view in pair.views.values())
    if [pair_key(pair.pair_id) for pair in pairs] != record.pair_keys.tolist() or boxes != len(
        record.box_image
    ):
        raise FolderError(f"{datalist}: its pairs or boxes have changed since the evaluation; evaluate again")
    coco_images = metrics["data"].get("coco_images")
    found = _read_findings(findings, data, section, coco_images and folder / coco_images)
    return write_report(folder, metrics, errors, pairs, found, max_pairs)


def _read_findings(
    path: str | Path, datalist: Datalist, section: str, coco_images: str | Path | None
) -> Findings:
    if is_coco_results(path):
        return read_coco_results(path, datalist, section, coco_images)
    if coco_images is not None:
        raise FindingsError(f"{path}: --coco-images was given, but this is no list of COCO results")
    return read_findings(path)


def read_metrics(folder: str | Path) -> dict[str, Any]:
    """Read ``metrics.json`` of a folder."""
    path = Path(folder) / METRICS_FILE
    try:
        metrics = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(
            f"{path}: there is no such file; give a folder that `clnet evaluate` wrote"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: cannot be read as JSON: {error}") from error
    if (
        not isinstance(metrics, dict)
        or metrics.get("schema") != SCHEMA_VERSION
        or not ({"detection", "settings"} <= set(metrics))
    ):
        raise FolderError(f"{path}: not an evaluation of schema {SCHEMA_VERSION}; evaluate again")
    # Evaluations written before protocols had names were counted by the rules of the default.
    metrics["settings"] = {**asdict(Rules()), "protocol": "default", **metrics["settings"]}
    return metrics


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, indent=indent, allow_nan=False)
