"""From detections and links to lesions: what a person wants to hear of a breast."""

from dataclasses import dataclass

import numpy as np

from clnet.boxes import box_iou
from clnet.data.pair import VIEW_NAMES
from clnet.findings.types import Detections, PairFindings

SAME_PLACE = 0.5  # IoU from which two detections of a view are one


@dataclass(frozen=True)
class Lesion:
    """One lesion of a breast.

    Attributes:
        cc, mlo: the index of its detection in each view; None where it was not seen.
        score: the highest of its detections'.
        link_score: how sure it is that the detections are one lesion, or, for a lesion in one view, that the
            other view does not show it; None if the model does not say.
    """

    cc: int | None
    mlo: int | None
    score: float
    link_score: float | None

    @property
    def is_linked(self) -> bool:
        """Whether both views show it."""
        return self.cc is not None and self.mlo is not None


def merge_into_lesions(pair: PairFindings, min_score: float, min_link_score: float = 0.5) -> list[Lesion]:
    """Join detections that are linked, and take the others as they are; the surest lesion first.

    A detection that repeats a surer one, at an IoU of 0.5 or more, is that one. Links are taken by falling
    score, one to the dustbin like any other, and each detection joins one lesion at the most. A detection
    below `min_score` is shown only with a partner that reaches it: the other view vouches for it.

    Args:
        pair: findings of a breast.
        min_score: that at least one detection of a lesion reaches.
        min_link_score: below it a link is none.
    """
    kept_index = {name: suppress_duplicates(view) for name, view in pair.views.items()}
    free = {name: set(surest) for name, surest in kept_index.items()}
    lesions: list[Lesion] = []

    def take(ends: dict[str, int], link_score: float | None) -> None:
        for name, index in ends.items():
            free[name].remove(index)
        score = max(float(pair.views[name].scores[index]) for name, index in ends.items())
        lesions.append(Lesion(ends.get("cc"), ends.get("mlo"), score, link_score))

    for link in sorted(pair.links, key=lambda link: -link.score):
        if link.score < min_link_score:
            break
        ends = {
            name: kept_index[name][index] for name in VIEW_NAMES if (index := getattr(link, name)) is not None
        }
        if all(index in free[name] for name, index in ends.items()):
            take(ends, link.score)
    for name in VIEW_NAMES:
        for index in sorted(free.get(name, ())):
            take({name: index}, None)
    return sorted((lesion for lesion in lesions if lesion.score >= min_score), key=lambda item: -item.score)


def suppress_duplicates(view: Detections) -> list[int]:
    """For each detection, itself or the surer one that it repeats."""
    overlaps = np.asarray(box_iou(view.boxes, view.boxes)) if len(view) else np.zeros((0, 0))
    kept_index = list(range(len(view)))
    surest: list[int] = []
    for index in np.argsort(-view.scores, kind="stable").tolist():
        repeats = [other for other in surest if overlaps[index, other] >= SAME_PLACE]
        if repeats:
            kept_index[index] = repeats[0]
        else:
            surest.append(index)
    return kept_index
