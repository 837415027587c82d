"""The folder of one breast's results, which appears complete or not at all.

``breasts/<breast_id>/``:

=============  ====================================================================
breast.json    what was analysed, with its warnings: `BreastResult` without findings, and the digests of
               the other files
findings.json  its findings, see `clnet.findings.types`
picture.png    both views, boxes, links and scores
=============  ====================================================================
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from PIL import Image

from clnet.files import whole_folder
from clnet.findings.result import BreastResult, ViewResult
from clnet.findings.types import FINDINGS_FILE, Findings, read_findings, write_findings
from clnet.predict.result_record import read_record, write_record

BREASTS = "breasts"
RECORD = "breast.json"
PICTURE = "picture.png"


def write_breast(output: Path, result: BreastResult, model: str, picture: Image.Image | None) -> None:
    """Write a breast's folder.

    Args:
        output: of the run.
        result: what to write.
        model: the name of the model.
        picture: of the breast; None if it must not be drawn.
    """
    with whole_folder(output / BREASTS / result.breast_id) as folder:
        if picture is not None:
            picture.save(folder / PICTURE, compress_level=1)  # a fifth larger, in half the time
        write_findings(Findings(model, (result.findings,)), folder / FINDINGS_FILE)
        write_record(folder / RECORD, _record(result))


def read_breast(output: Path, breast_id: str, key: str) -> BreastResult | None:
    """The result that was written for a breast; None if there is none with this key, or if it is damaged."""
    folder = output / BREASTS / breast_id
    record = read_record(folder / RECORD, key)
    if record is None:
        return None
    (findings,) = read_findings(folder / FINDINGS_FILE).pairs
    views = {
        name: ViewResult(**{**view, "warnings": tuple(view["warnings"])})
        for name, view in record["views"].items()
    }
    return BreastResult(
        **{**record, "views": views, "warnings": tuple(record["warnings"])}, findings=findings
    )


def read_picture(output: Path, breast_id: str) -> Image.Image | None:
    """The picture that was written for a breast; None if there is none."""
    file = output / BREASTS / breast_id / PICTURE
    return Image.open(file).convert("RGB") if file.exists() else None


def _record(result: BreastResult) -> dict[str, Any]:
    return {
        "breast_id": result.breast_id,
        "laterality": result.laterality,
        "key": result.key,
        "min_score": result.min_score,
        "min_consistency": result.min_consistency,
        "views": {name: asdict(view) for name, view in result.views.items()},
        "refused": dict(result.refused),
        "warnings": list(result.warnings),
    }
