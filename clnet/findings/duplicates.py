"""Several detections of one place are one: the surest stands for all."""

import numpy as np

from clnet.boxes import box_iou
from clnet.findings.types import Detections


def kept_indices(view: Detections, duplicate_iou: float) -> list[int]:
    """For each detection its own index, or that of the surer one that it duplicates.

    Args:
        view: the detections of an image.
        duplicate_iou: a detection that overlaps a surer one, not itself a duplicate, by this IoU or more is
            a duplicate of it.
    """
    overlaps = np.asarray(box_iou(view.boxes, view.boxes)) if len(view) else np.zeros((0, 0))
    kept = list(range(len(view)))
    surest: list[int] = []
    for index in np.argsort(-view.scores, kind="stable").tolist():
        repeats = [other for other in surest if overlaps[index, other] >= duplicate_iou]
        if repeats:
            kept[index] = repeats[0]
        else:
            surest.append(index)
    return kept
