"""The record of an evaluation, packed as small as the numbers in the tables allow.

Recall and link metrics depend on the order of scores, not on their values; on nothing below the score at
which there are too many false positives; and not on names. So a record shrinks to some 20 kB of text.
"""

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clnet.data.pair import VIEW_NAMES, Pair
from clnet.evaluation.froc import MISSED, RATES, Froc
from clnet.evaluation.links import LinkCounts
from clnet.evaluation.record import EvaluationRecord

MARGIN = 1.25  # a bootstrap resample has at most this many times the false positives per image of the sample
SHARED = ("pair_patient", "image_pair", "box_image", "box_lesion")
UNRANKED = np.iinfo(np.uint16).max


@dataclass(frozen=True, eq=False)
class Outcome:
    """A record whose scores are negative ranks, the highest score at -1, and whose pairs share one key.

    Attributes:
        record: the record of the run.
        image_view: [I] 0 for CC, 1 for MLO.
    """

    record: EvaluationRecord
    image_view: NDArray[np.int64]

    def of_view(self, view: str) -> EvaluationRecord:
        """The record of the images of one view alone; without links."""
        record = self.record
        kept = self.image_view == VIEW_NAMES.index(view)
        number = np.cumsum(kept) - 1
        boxes = kept[record.box_image]
        curves = {}
        for iou, curve in record.curves.items():
            false = kept[curve.false_positive_image]
            curves[iou] = Froc(
                int(kept.sum()),
                curve.false_positives[false],
                number[curve.false_positive_image[false]],
                curve.found_at[boxes],
            )
        _, lesion = np.unique(record.box_lesion[boxes], return_inverse=True)
        return EvaluationRecord(
            record.pair_keys,
            record.pair_patient,
            record.image_pair[kept],
            number[record.box_image[boxes]],
            lesion,
            curves,
            {},
        )


def image_views(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    """The view of each image, in the order of the images of a record."""
    return np.array([VIEW_NAMES.index(view) for pair in pairs for view in pair.views], np.int64)


def pack(record: EvaluationRecord, image_view: NDArray[np.int64]) -> str:
    """Pack a record and the view of each image into one line of text."""
    arrays: dict[str, NDArray[np.generic]] = {name: getattr(record, name) for name in SHARED}
    digest = hashlib.sha256("\n".join(record.pair_keys.tolist()).encode()).hexdigest()[:16]
    arrays |= {"pairs": np.array(digest), "image_view": image_view, "ious": np.array(sorted(record.curves))}
    strictest = record.curves[max(record.curves)]  # its false positives include those of all others
    count = min(len(strictest.false_positives), int(MARGIN * max(RATES) * strictest.images) + 100)
    lowest = strictest.false_positives[count - 1] if count < len(strictest.false_positives) else -np.inf
    scores = [strictest.false_positives[:count], *(curve.found_at for curve in record.curves.values())]
    descending = -np.unique(-np.concatenate(scores))  # the score at rank r is descending[r]
    descending = descending[(descending >= lowest) & np.isfinite(descending)]
    if len(descending) >= UNRANKED:
        raise ValueError(f"{len(descending)} distinct scores; there are only {UNRANKED} ranks")
    arrays["false_positives"] = np.diff(_ranks(strictest.false_positives[:count], descending), prepend=0)
    arrays["false_positive_image"] = strictest.false_positive_image[:count]
    for number, (_, curve) in enumerate(sorted(record.curves.items())):
        arrays[f"also_{number}"] = np.packbits(_subsequence(curve, strictest, count))
        arrays[f"found_at_{number}"] = _ranks(curve.found_at, descending)
    for number, (_, links) in enumerate(sorted(record.links.items())):
        arrays[f"links_{number}"] = np.stack(links)
    file = io.BytesIO()
    np.savez_compressed(file, **{name: _smallest(array) for name, array in arrays.items()})
    return base64.b64encode(file.getvalue()).decode()


def unpack(text: str) -> Outcome:
    """The outcome in a line of text from `pack`."""
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as arrays:
        shared = {name: arrays[name].astype(np.int64) for name in SHARED}
        images = len(shared["image_pair"])
        ranks = np.cumsum(arrays["false_positives"].astype(np.int64))
        image = arrays["false_positive_image"].astype(np.int64)
        curves, links = {}, {}
        for number, iou in enumerate(arrays["ious"].tolist()):
            also = np.unpackbits(arrays[f"also_{number}"], count=len(ranks)).astype(bool)
            found = arrays[f"found_at_{number}"].astype(np.float64)
            found_at = np.where(found == UNRANKED, MISSED, -1.0 - found)
            curves[iou] = Froc(images, -1.0 - ranks[also], image[also], found_at)
            if f"links_{number}" in arrays:
                links[iou] = LinkCounts(*arrays[f"links_{number}"].astype(np.int64))
        keys = np.full(len(shared["pair_patient"]), str(arrays["pairs"]))
        return Outcome(
            EvaluationRecord(keys, **shared, curves=curves, links=links),
            arrays["image_view"].astype(np.int64),
        )


def _ranks(scores: NDArray[np.float64], descending: NDArray[np.float64]) -> NDArray[np.int64]:
    """The position of each score in a descending list; `UNRANKED` for scores that are not in it."""
    if not len(descending):
        return np.full(len(scores), UNRANKED)
    position = np.searchsorted(-descending, -scores).clip(max=len(descending) - 1)
    return np.where(descending[position] == scores, position, UNRANKED)


def _subsequence(curve: Froc, strictest: Froc, count: int) -> NDArray[np.bool_]:
    """Which of the first `count` false positives of the strictest curve are in this curve too."""
    mine = list(zip(curve.false_positives.tolist(), curve.false_positive_image.tolist(), strict=True))
    also = np.zeros(count, bool)
    next_ = 0
    for position in range(count):
        here = (float(strictest.false_positives[position]), int(strictest.false_positive_image[position]))
        if next_ < len(mine) and mine[next_] == here:
            also[position] = True
            next_ += 1
    if next_ < len(mine) and count and mine[next_][0] > strictest.false_positives[count - 1]:
        raise ValueError("a false positive at a low IoU is none at a higher IoU; were duplicates counted?")
    return also


def _smallest(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The same numbers in the smallest integer type that holds them."""
    if array.dtype.kind not in "iu" or not array.size:
        return array
    return array.astype(np.promote_types(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
