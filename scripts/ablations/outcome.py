"""The record of an evaluation, packed as small as the numbers in the tables allow.

Recall and link metrics depend on the order of scores, not on their values; on nothing below the score at
which there are too many false positives; and not on names. So a record shrinks to some 30 kB of text.
"""

import base64
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clnet.evaluation.froc import MISSED, RATES, Froc
from clnet.evaluation.links import LinkCounts
from clnet.evaluation.record import EvaluationRecord

MARGIN = 1.25  # a bootstrap resample has at most this many times the false positives per image of the sample
SHARED = ("pair_patient", "image_pair", "box_image", "box_lesion")
UNRANKED = np.iinfo(np.uint16).max


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of each box, breast and image.

    Attributes:
        record: the record of the run; its scores are negative ranks, the highest at -1, and its pairs share
            one key.
        groups: [L] the label of each box by name of the grouping, empty where it has none.
    """

    record: EvaluationRecord
    groups: dict[str, NDArray[np.str_]]

    @property
    def cohort(self) -> str:
        """A digest of the pairs that the record is of."""
        return str(self.record.pair_keys[0])


def pack(record: EvaluationRecord, groups: Mapping[str, Sequence[str | None]]) -> str:
    """Pack a record and the groups of its boxes into one line of text."""
    arrays: dict[str, NDArray[np.generic]] = {name: _smallest(getattr(record, name)) for name in SHARED}
    digest = hashlib.sha256("\n".join(record.pair_keys.tolist()).encode()).hexdigest()[:16]
    arrays |= {"cohort": np.array(digest), "ious": np.array(sorted(record.curves))}
    for name, labels in groups.items():
        arrays[f"group/{name}"] = np.array([label or "" for label in labels])
    for iou, curve in record.curves.items():
        count = int(MARGIN * max(RATES) * curve.images) + 100
        false = curve.false_positives[:count]
        lowest = false[-1] if len(curve.false_positives) > count else -np.inf
        descending = -np.unique(-np.concatenate([false, curve.found_at]))  # the score at rank r is its r-th
        descending = descending[(descending >= lowest) & np.isfinite(descending)]
        if len(descending) >= UNRANKED:
            raise ValueError(f"{len(descending)} distinct scores; there are only {UNRANKED} ranks")
        arrays[f"{iou}/false_positives"] = _smallest(np.diff(_ranks(false, descending), prepend=0))
        arrays[f"{iou}/false_positive_image"] = _smallest(curve.false_positive_image[:count])
        arrays[f"{iou}/found_at"] = _smallest(_ranks(curve.found_at, descending))
        if iou in record.links:
            arrays[f"{iou}/links"] = _smallest(np.stack(record.links[iou]))
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return base64.b64encode(file.getvalue()).decode()


def unpack(text: str) -> Outcome:
    """The outcome in a line of text from `pack`."""
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as file:
        arrays = dict(file)
    shared = {name: arrays[name].astype(np.int64) for name in SHARED}
    curves, links = {}, {}
    for iou in arrays["ious"].tolist():
        false = -1.0 - np.cumsum(arrays[f"{iou}/false_positives"].astype(np.int64))
        found = arrays[f"{iou}/found_at"].astype(np.float64)
        curves[iou] = Froc(
            len(shared["image_pair"]),
            false,
            arrays[f"{iou}/false_positive_image"].astype(np.int64),
            np.where(found == UNRANKED, MISSED, -1.0 - found),
        )
        if f"{iou}/links" in arrays:
            links[iou] = LinkCounts(*arrays[f"{iou}/links"].astype(np.int64))
    keys = np.full(len(shared["pair_patient"]), str(arrays["cohort"]))
    groups = {
        name.removeprefix("group/"): labels for name, labels in arrays.items() if name.startswith("group/")
    }
    return Outcome(EvaluationRecord(keys, **shared, curves=curves, links=links), groups)


def _ranks(scores: NDArray[np.float64], descending: NDArray[np.float64]) -> NDArray[np.int64]:
    """The position of each score in a descending list; `UNRANKED` for scores that are not in it."""
    if not len(descending):
        return np.full(len(scores), UNRANKED)
    position = np.searchsorted(-descending, -scores).clip(max=len(descending) - 1)
    return np.where(descending[position] == scores, position, UNRANKED)


def _smallest(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The same numbers in the smallest integer type that holds them."""
    if not array.size:
        return array
    return array.astype(np.promote_types(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
