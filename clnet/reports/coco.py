"""Findings as COCO, with what COCO has no word for: which lesion, which breast, which view.

Boxes are [x, y, width, height] in pixels of the stored image. Annotations with the same breast_id and
lesion_id are one lesion in its two views.
"""

from collections.abc import Iterable
from typing import Any

from clnet.findings.result import BreastResult


def coco_of(results: Iterable[BreastResult], model: str, notice: str) -> dict[str, Any]:
    """The COCO object of these breasts; its annotations are the lesions that the reports show."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for result in results:
        for name, detections in result.findings.views.items():
            view = result.views[name]
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
                index = getattr(lesion, name)
                if index is None:
                    continue
                x_min, y_min, x_max, y_max = (float(edge) for edge in detections.boxes[index])
                width, height = x_max - x_min, y_max - y_min
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": len(images),
                        "category_id": 1,
                        "bbox": [x_min, y_min, width, height],
                        "area": width * height,
                        "iscrowd": 0,
                        "score": float(detections.scores[index]),
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
