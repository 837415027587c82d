"""A cohort: the pairs of a section with their findings, indexed by image and by lesion."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES, Pair
from clnet.errors import ClnetError
from clnet.evaluation.hits import ImageResult
from clnet.findings.types import Detections, Findings, PairFindings


class CohortError(ClnetError):
    """Findings that do not match the pairs; the message names the pair and the view."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """P pairs with I images, U lesions and L lesion boxes; a lesion has one box or one per view.

    Attributes:
        pairs, findings: [P] each, in the same order.
        pair_patient: [P] int, patients numbered in order of appearance.
        image_pair: [I] int, the pair of each image.
        image_view: [I] int, 0 for CC and 1 for MLO.
        results: [I] the detections and lesions of each image.
        lesion_pair: [U] int, the pair of each lesion.
        lesion_ids: [U] the id of each lesion within its pair.
        box_image: [L] int, the image of each lesion box.
        box_lesion: [L] int, its lesion.
        skipped_views: how many images the findings do not cover; they count as images without detections.
    """

    pairs: tuple[Pair, ...]
    findings: tuple[PairFindings, ...]
    pair_patient: NDArray[np.int64]
    image_pair: NDArray[np.int64]
    image_view: NDArray[np.int64]
    results: tuple[ImageResult, ...]
    lesion_pair: NDArray[np.int64]
    lesion_ids: tuple[str, ...]
    box_image: NDArray[np.int64]
    box_lesion: NDArray[np.int64]
    skipped_views: int

    @property
    def box_view(self) -> NDArray[np.int64]:
        """[L] 0 for CC, 1 for MLO."""
        return self.image_view[self.box_image]

    def box_of_lesion(self) -> NDArray[np.int64]:
        """[U, 2] int, the box of each lesion in CC and MLO; -1 where it has none."""
        boxes = np.full((len(self.lesion_pair), 2), -1)
        boxes[self.box_lesion, self.box_view] = np.arange(len(self.box_lesion))
        return boxes

    @property
    def in_both_views(self) -> NDArray[np.bool_]:
        """[U] whether a lesion has a box in both views."""
        return np.bincount(self.box_lesion, minlength=len(self.lesion_pair)) == len(VIEW_NAMES)

    def split_by_image(self, of_detections: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """[I] arrays, one per image, from one value per detection [D]."""
        return np.split(of_detections, np.cumsum([len(result.scores) for result in self.results])[:-1])

    def lesions_of_pairs(self) -> list[list[int]]:
        """[P] the lesions of each pair."""
        lesions: list[list[int]] = [[] for _ in self.pairs]
        for lesion, pair in enumerate(self.lesion_pair.tolist()):
            lesions[pair].append(lesion)
        return lesions


def build_cohort(pairs: Sequence[Pair], findings: Findings) -> Cohort:
    """Match findings to pairs. Findings of other pairs are ignored; a pair without findings is an error."""
    found = {pair.pair_id: pair for pair in findings}
    absent = [pair.pair_id for pair in pairs if pair.pair_id not in found]
    if absent:
        raise CohortError(
            f"the findings do not cover {len(absent)} of {len(pairs)} pairs, the first of them "
            f"{absent[0]!r}; a pair in which nothing was found needs an entry with empty boxes"
        )
    if not pairs:
        raise CohortError("there are no pairs to evaluate; choose another section of the datalist")
    number_of_patient: dict[str, int] = {}
    number_of_lesion: dict[tuple[int, str], int] = {}
    image_pair, image_view, box_image, box_lesion = [], [], [], []
    results: list[ImageResult] = []
    skipped = 0
    for number, pair in enumerate(pairs):
        number_of_patient.setdefault(pair.patient_id, len(number_of_patient))
        for view_number, name in enumerate(VIEW_NAMES):
            view, detections = pair.views.get(name), found[pair.pair_id].views.get(name)
            if view is None:
                if detections:
                    raise CohortError(
                        f"pair {pair.pair_id!r}: the findings have {len(detections)} boxes in {name}, "
                        "but the datalist has no such view"
                    )
                continue
            if detections is None:
                skipped += 1
                detections = Detections()
            for lesion_id in view.lesion_ids:
                box_image.append(len(results))
                box_lesion.append(number_of_lesion.setdefault((number, lesion_id), len(number_of_lesion)))
            image_pair.append(number)
            image_view.append(view_number)
            results.append(ImageResult(detections.boxes, detections.scores, view.boxes))
    return Cohort(
        pairs=tuple(pairs),
        findings=tuple(found[pair.pair_id] for pair in pairs),
        pair_patient=np.array([number_of_patient[pair.patient_id] for pair in pairs], np.int64),
        image_pair=np.array(image_pair, np.int64),
        image_view=np.array(image_view, np.int64),
        results=tuple(results),
        lesion_pair=np.array([pair for pair, _ in number_of_lesion], np.int64),
        lesion_ids=tuple(lesion_id for _, lesion_id in number_of_lesion),
        box_image=np.array(box_image, np.int64),
        box_lesion=np.array(box_lesion, np.int64),
        skipped_views=skipped,
    )
