"""The record of an evaluation: what intervals and comparisons are computed from, without boxes or pixels.

It is a file of plain arrays, so two runs can be compared without their findings or images. It holds no names:
patients are numbers, pairs are digests of their ids.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clnet.errors import ClnetError
from clnet.evaluation.cohort import Cohort
from clnet.evaluation.froc import MISSED, Froc
from clnet.evaluation.hits import Matching
from clnet.evaluation.links import LinkCounts

FILE_NAME = "record.npz"
UNITS = ("image", "lesion", "breast", "case")
"""What recall is computed over: lesion boxes in single images; lesions, breasts with lesions, and patients
with lesions, each found if one of its lesion boxes is hit in at least one view."""


class RecordError(ClnetError):
    """A record that cannot be read; the message names the file."""


@dataclass(frozen=True, eq=False)
class EvaluationRecord:
    """P pairs with I images and L lesion boxes, and their outcomes at each IoU threshold.

    Attributes:
        pair_keys: [P] text, a digest of each pair's id, to check that two records are of the same pairs.
        pair_patient: [P] int, the patient of each pair.
        image_pair: [I] int, the pair of each image.
        box_image: [L] int, the image of each lesion box.
        box_lesion: [L] int, the lesion of each lesion box.
        curves: by IoU threshold.
        links: by IoU threshold; empty if the findings have no links.
    """

    pair_keys: NDArray[np.str_]
    pair_patient: NDArray[np.int64]
    image_pair: NDArray[np.int64]
    box_image: NDArray[np.int64]
    box_lesion: NDArray[np.int64]
    curves: dict[float, Froc]
    links: dict[float, LinkCounts]

    @property
    def patients(self) -> int:
        """The number of patients."""
        return int(self.pair_patient.max()) + 1

    @property
    def image_patient(self) -> NDArray[np.int64]:
        """[I] int, the patient of each image."""
        return self.pair_patient[self.image_pair]

    def lesions_of_pair(self) -> NDArray[np.int64]:
        """[P] int, the number of lesions of each breast."""
        _, first = np.unique(self.box_lesion, return_index=True)
        return np.bincount(self.image_pair[self.box_image[first]], minlength=len(self.pair_keys))

    def has_single_pair(self) -> NDArray[np.bool_]:
        """[P] whether a breast has exactly one lesion, and that a box in each view."""
        boxes = np.bincount(self.image_pair[self.box_image], minlength=len(self.pair_keys))
        return (self.lesions_of_pair() == 1) & (boxes == 2)

    def units(self, unit: str, iou: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The score at which each unit of a kind (see `UNITS`) is found, [N], and its patient, [N] int."""
        box_patient = self.image_patient[self.box_image]
        unit_of_box = {
            "image": np.arange(len(self.box_image)),
            "lesion": self.box_lesion,
            "breast": self.image_pair[self.box_image],
            "case": box_patient,
        }[unit]
        _, first, number = np.unique(unit_of_box, return_index=True, return_inverse=True)
        found_at = np.full(len(first), MISSED)
        np.maximum.at(found_at, number, self.curves[iou].found_at)
        return found_at, box_patient[first]


def make_record(
    cohort: Cohort, curves: dict[float, Froc], links: dict[float, LinkCounts]
) -> EvaluationRecord:
    """The record of a cohort."""
    return EvaluationRecord(
        pair_keys=np.array([pair_key(pair.pair_id) for pair in cohort.pairs]),
        pair_patient=cohort.pair_patient,
        image_pair=cohort.image_pair,
        box_image=cohort.box_image,
        box_lesion=cohort.box_lesion,
        curves=curves,
        links=links,
    )


_SHARED = ("pair_keys", "pair_patient", "image_pair", "box_image", "box_lesion")
_CURVE = ("false_positives", "false_positive_image", "found_at")


def pair_key(pair_id: str) -> str:
    """A digest of a pair's id, which may contain a patient's."""
    return hashlib.sha256(pair_id.encode()).hexdigest()[:16]


def iou_key(iou: float) -> str:
    """The name of an IoU threshold in files: iou=0.5."""
    return f"iou={iou:g}"


def iou_words(key: str, matching: Matching) -> str:
    """An `iou_key` as people read it, IoU ≥ 0.5; or IoU > 0.5 where the threshold must be exceeded."""
    return key.replace("iou=", "IoU ≥ " if matching == "by_score" else "IoU > ")


def write_record(record: EvaluationRecord, folder: Path) -> None:
    """Write the record to a folder."""
    arrays = {name: getattr(record, name) for name in _SHARED}
    for iou, curve in record.curves.items():
        arrays |= {f"{iou_key(iou)}/{name}": getattr(curve, name) for name in _CURVE}
    for iou, links in record.links.items():
        arrays[f"{iou_key(iou)}/links"] = np.stack(links)
    np.savez(folder / FILE_NAME, **arrays)


def read_record(folder: str | Path) -> EvaluationRecord:
    """Read the record of an evaluation from its folder."""
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise RecordError(f"{path}: there is no such file; give a folder that `clnet evaluate` wrote")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            shared = {name: arrays[name] for name in _SHARED}
            ious = [
                float(key.split("/")[0].removeprefix("iou=")) for key in arrays if key.endswith("/found_at")
            ]
            curves = {
                iou: Froc(len(shared["image_pair"]), *(arrays[f"{iou_key(iou)}/{name}"] for name in _CURVE))
                for iou in ious
            }
            links = {
                iou: LinkCounts(*arrays[f"{iou_key(iou)}/links"])
                for iou in ious
                if f"{iou_key(iou)}/links" in arrays
            }
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise RecordError(f"{path}: cannot be read as the record of an evaluation: {error}") from error
    return EvaluationRecord(**shared, curves=curves, links=links)
