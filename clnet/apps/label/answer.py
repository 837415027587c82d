"""Findings of a pair in the forms that leave the server: lesions, and Slicer's markups."""

from typing import Any

from clnet.data.pair import VIEW_NAMES
from clnet.inference.findings import PairFindings
from clnet.inference.lesions import find_lesions_of_pair


def lesions_of(findings: PairFindings, min_score: float) -> list[dict[str, Any]]:
    """The lesions of a pair, the surest first: a box in one view or in both."""
    lesions = []
    for number, lesion in enumerate(find_lesions_of_pair(findings, min_score), start=1):
        views: dict[str, Any] = dict.fromkeys(VIEW_NAMES)
        for view, detections in findings.views.items():
            index = getattr(lesion, view)
            if index is not None:
                # The shortest decimals that read back as the same float32, as in findings.json.
                box = [float(str(edge)) for edge in detections.boxes[index]]
                views[view] = {"box": box, "score": float(detections.scores[index])}
        lesions.append(
            {"lesion_id": str(number), "score": lesion.score, "link_score": lesion.link_score, **views}
        )
    return lesions
