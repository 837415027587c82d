"""Findings as COCO, with three keys of our own: the lesion, the breast and the view.

Boxes are [x, y, width, height] in pixels of the stored image. Annotations with the same breast_id and
lesion_id are one lesion in its two views.
"""

from collections.abc import Iterable
from typing import Any

from clnet.findings.result import BreastResult


def coco_of(results: Iterable[BreastResult], model: str, notice: str) -> dict[str, Any]:
    """The COCO object of these breasts; its annotations are the lesions of the reports."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for result in results:
        for name, view in result.views.items():
            images.append(
                {
                    "id": len(images) + 1,
                    "file_name": view.file,
                    "width": view.columns,
                    "height": view.rows,
                    "breast_id": result.breast_id,
                    "laterality": result.laterality,
                    "view": name,
                }
            )
            for number, lesion in enumerate(result.lesions, start=1):
                if name not in lesion.views:
                    continue
                seen = lesion.views[name]
                x_min, y_min, x_max, y_max = seen.box
                width, height = x_max - x_min, y_max - y_min
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": len(images),
                        "category_id": 1,
                        "bbox": [x_min, y_min, width, height],
                        "area": width * height,
                        "iscrowd": 0,
                        "score": seen.score,
                        "lesion_id": number,
                        "link_score": lesion.link_score,
                        "breast_id": result.breast_id,
                        "view": name,
                    }
                )
    return {
        "info": {"description": notice, "model": model},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "mass"}],
    }
