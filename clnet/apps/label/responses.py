"""The findings of a pair as the server returns them: lesions, the boxes of one image, 3D Slicer's markups."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from clnet.apps.label.pairs import ImagePair
from clnet.data.pair import VIEW_NAMES
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import PairFindings
from clnet.reports.slicer import slicer_boxes

SCHEMA = (
    "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema/"
    "markups-schema-v1.0.3.json#"
)
IDENTITY = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def lesions_of(findings: PairFindings, min_score: float) -> list[dict[str, Any]]:
    """The lesions of a pair by falling score, each with its box in one view or in both."""
    lesions = []
    for number, lesion in enumerate(merge_into_lesions(findings, min_score), start=1):
        views: dict[str, Any] = dict.fromkeys(VIEW_NAMES)
        for view, seen in lesion.views.items():
            views[view] = {"box": list(seen.box), "score": seen.score}
        lesions.append(
            {"lesion_id": str(number), "score": lesion.score, "link_score": lesion.link_score, **views}
        )
    return lesions


def boxes_of_image(lesions: Sequence[Mapping[str, Any]], pair: ImagePair, view: str) -> list[dict[str, Any]]:
    """The boxes of one image, each with the box of the same lesion in the other view, if there is one."""
    other = next(name for name in VIEW_NAMES if name != view)
    boxes = []
    for lesion in lesions:
        if lesion[view] is None:
            continue
        partner = None
        if lesion[other] is not None:
            partner = {"image": pair.images[other], **lesion[other], "link_score": lesion["link_score"]}
        boxes.append(
            {
                "lesion_id": lesion["lesion_id"],
                **lesion[view],
                "seen_in": "both views" if partner else "one view only",
                "partner": partner,
            }
        )
    return boxes


def slicer_markups(
    boxes: Sequence[Mapping[str, Any]], spacing: tuple[float, float] | None, name: str
) -> dict[str, Any]:
    """The boxes of an image as ROIs that 3D Slicer loads.

    Args:
        boxes: as returned by `boxes_of_image`.
        spacing: see `slicer_boxes`.
        name: of the model, shown beside each box.
    """
    edges = torch.tensor([item["box"] for item in boxes], dtype=torch.float64).reshape(-1, 4)
    markups = []
    for item, place in zip(boxes, slicer_boxes(edges, spacing).tolist(), strict=True):
        label = f"mass {item['lesion_id']}, score {item['score']:.2f}, {item['seen_in']}"
        point = {"id": item["lesion_id"], "label": label, "description": name, "position": place[:3]}
        markups.append(
            {
                "type": "ROI",
                "name": label,
                "coordinateSystem": "LPS",
                "coordinateUnits": "mm",
                "roiType": "Box",
                "center": place[:3],
                "orientation": IDENTITY,
                "size": place[3:],
                "insideOut": False,
                "controlPoints": [{**point, "orientation": IDENTITY, "positionStatus": "defined"}],
                "measurements": [{"name": "score", "enabled": True, "value": item["score"]}],
            }
        )
    return {"@schema": SCHEMA, "markups": markups}
