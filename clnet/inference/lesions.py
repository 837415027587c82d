"""From detections and links to lesions: what a person wants to hear of a breast."""

from dataclasses import dataclass

from clnet.data.pair import VIEW_NAMES
from clnet.inference.findings import Detections, PairFindings


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


def find_lesions_of_pair(pair: PairFindings, min_score: float, min_link_score: float = 0.5) -> list[Lesion]:
    """Join detections that are linked, and take the others as they are; the surest lesion first.

    Links are taken by falling score, and each detection joins one lesion at the most. A detection below
    `min_score` is shown only with a partner that reaches it: the other view vouches for it.

    Args:
        pair: findings of a breast.
        min_score: that at least one detection of a lesion reaches.
        min_link_score: below it a link is none.
    """
    free = {name: set(range(len(view))) for name, view in pair.views.items()}
    lesions: list[Lesion] = []
    alone: dict[tuple[str, int], float] = {}
    for link in sorted(pair.links, key=lambda link: -link.score):
        if link.score < min_link_score:
            break
        if link.cc is None or link.mlo is None:
            view, index = ("mlo", link.mlo) if link.cc is None else ("cc", link.cc)
            if index is not None:
                alone.setdefault((view, index), link.score)
        elif link.cc in free["cc"] and link.mlo in free["mlo"]:
            free["cc"].remove(link.cc)
            free["mlo"].remove(link.mlo)
            score = max(_score(pair.cc, link.cc), _score(pair.mlo, link.mlo))
            lesions.append(Lesion(link.cc, link.mlo, score, link.score))
    for name in VIEW_NAMES:
        for index in sorted(free.get(name, ())):
            score, link_score = _score(pair.views[name], index), alone.get((name, index))
            cc, mlo = (index, None) if name == "cc" else (None, index)
            lesions.append(Lesion(cc, mlo, score, link_score))
    return sorted((lesion for lesion in lesions if lesion.score >= min_score), key=lambda item: -item.score)


def _score(detections: Detections | None, index: int) -> float:
    return float(detections.scores[index]) if detections is not None else 0.0
