"""From detections and links to lesions: what a person wants to know about a breast."""

from dataclasses import dataclass

from clnet.data.pair import VIEW_NAMES
from clnet.findings.duplicates import kept_indices
from clnet.findings.types import Detection, PairFindings

SAME_PLACE = 0.5  # IoU from which two detections of a view are one


@dataclass(frozen=True)
class Lesion:
    """One lesion of a breast.

    Attributes:
        score: the highest score of its detections.
        link_score: the score of the link between the two detections or, for a lesion seen in one view, the
            score that the other view does not show it; None if the model says neither.
        cc, mlo: its detection in each view; None where it was not seen.
    """

    score: float
    link_score: float | None
    cc: Detection | None
    mlo: Detection | None

    @property
    def views(self) -> dict[str, Detection]:
        """The detections by name of the view, where it was seen."""
        return {name: seen for name in VIEW_NAMES if (seen := getattr(self, name)) is not None}

    @property
    def is_linked(self) -> bool:
        """Whether it was seen in both views."""
        return len(self.views) == 2


def merge_into_lesions(pair: PairFindings, min_score: float, min_link_score: float = 0.5) -> list[Lesion]:
    """Join linked detections, keep the others as they are, and sort the lesions by falling score.

    A detection that overlaps a surer one at an IoU of 0.5 or more is a duplicate of it. Links are taken by
    falling score, links to the dustbin included, and each detection joins one lesion at most. A detection
    below `min_score` is kept only with a partner that reaches it: the other view vouches for it.

    Args:
        pair: findings of a breast.
        min_score: the least score of a lesion.
        min_link_score: the least score of a link.
    """
    kept_index = {name: kept_indices(view, SAME_PLACE) for name, view in pair.views.items()}
    free = {name: set(surest) for name, surest in kept_index.items()}
    lesions: list[Lesion] = []

    def take(ends: dict[str, int], link_score: float | None) -> None:
        for name, index in ends.items():
            free[name].remove(index)
        seen = {name: pair.views[name][index] for name, index in ends.items()}
        score = max(detection.score for detection in seen.values())
        lesions.append(Lesion(score, link_score, seen.get("cc"), seen.get("mlo")))

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
