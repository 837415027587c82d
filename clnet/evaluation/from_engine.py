"""From what MONAI's evaluator puts out to what the metric takes in."""

from collections.abc import Mapping
from typing import Any

from clnet.data.pair import VIEW_NAMES


def pairs_of_output(output: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pairs of a batch for `MeanRecall`, all in pixels of the stored images.

    Args:
        output: of an engine with `FindLesionsd` as post-processing: ``findings`` and ``lesion_boxes``.
    """
    pairs = []
    for found, lesion_boxes in zip(output["findings"], output["lesion_boxes"], strict=True):
        views = [getattr(found, name) for name in VIEW_NAMES]
        pairs.append(
            {
                "pair_id": found.pair_id,
                "present": [view is not None for view in views],
                "detection_boxes": [view.boxes if view else () for view in views],
                "detection_scores": [view.scores if view else () for view in views],
                "lesion_boxes": lesion_boxes,
            }
        )
    return pairs
