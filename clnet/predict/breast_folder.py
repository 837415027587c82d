"""The folder of one breast's results, which appears complete or not at all.

``breasts/<breast_id>/``:

====================  ====================================================================
breast.json           what was analysed, with its warnings; `BreastResult` without findings
findings.json         its findings, see `clnet.findings.types`
measurements.dcm      DICOM SR, TID 1500
mammography_cad.dcm   DICOM SR, TID 4000
picture.png           both views, boxes, links and scores
====================  ====================================================================

The folder is filled under another name and renamed at the end.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clnet.findings.result import BreastResult, ViewResult
from clnet.findings.types import FINDINGS_FILE, Findings, read_findings, write_findings

BREASTS = "breasts"
RECORD = "breast.json"
PICTURE = "picture.png"


def write_breast(output: Path, result: BreastResult, model: str, write_more: Callable[[Path], None]) -> None:
    """Write a breast's folder.

    Args:
        output: of the run.
        result: what to write.
        model: the name of the model.
        write_more: writes reports and picture into a folder.
    """
    final = output / BREASTS / result.breast_id
    unfinished = final.with_name(f".{final.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    write_more(unfinished)
    write_findings(Findings(model, (result.findings,)), unfinished / FINDINGS_FILE)
    (unfinished / RECORD).write_text(json.dumps(_record(result), indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(final, ignore_errors=True)  # of other settings or files
    unfinished.rename(final)


def read_breast(output: Path, breast_id: str, key: str) -> BreastResult | None:
    """The result that was written for a breast; None if there is none with this key."""
    folder = output / BREASTS / breast_id
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if record["key"] != key:
        return None
    (findings,) = read_findings(folder / FINDINGS_FILE).pairs
    views = {
        name: ViewResult(**{**view, "warnings": tuple(view["warnings"])})
        for name, view in record["views"].items()
    }
    return BreastResult(
        **{**record, "views": views, "warnings": tuple(record["warnings"])}, findings=findings
    )


def remove_unfinished(output: Path) -> None:
    """Remove what a killed run left behind."""
    for folder in (output / BREASTS).glob(".*.unfinished"):
        shutil.rmtree(folder, ignore_errors=True)


def _record(result: BreastResult) -> dict[str, Any]:
    return {
        "breast_id": result.breast_id,
        "laterality": result.laterality,
        "key": result.key,
        "min_score": result.min_score,
        "views": {name: asdict(view) for name, view in result.views.items()},
        "refused": dict(result.refused),
        "warnings": list(result.warnings),
    }
