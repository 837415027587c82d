"""What the structured reports of a breast share: their source images, identity, algorithm and codes.

A report belongs to the patient and study of its first view, CC where there is one. Where the views come from
two studies, as every film of CBIS-DDSM does, the other view is listed as other pertinent evidence.
"""

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from highdicom.sr.coding import CodedConcept
from highdicom.sr.sop import ComprehensiveSR
from pydicom.dataset import Dataset
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code
from pydicom.uid import UID

from clnet.data.image_errors import refusing_damage
from clnet.data.tags import text_of
from clnet.errors import ClnetError
from clnet.findings.lesions import Lesion

MANUFACTURER = "clnet"
ALGORITHM = "CL-Net"
MASS = codes.SCT.MammographicBreastMass
VIEWS: Mapping[str, Code] = {
    "cc": codes.cid4014.CranioCaudal,
    "mlo": codes.cid4014.MedioLateralObliqueProjection,
}
SIDES: Mapping[str, Code] = {"L": codes.SCT.LeftBreast, "R": codes.SCT.RightBreast}
# The score of a box, and of a link; TID 4005 and 4006, in percent.
CERTAINTY_OF_FINDING = codes.DCM.CertaintyOfFinding
CERTAINTY_OF_FEATURE = codes.DCM.CertaintyOfFeature
PERCENT = codes.UCUM.Percent

_NEEDED = ("SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID")
# What a report must hold, if only empty, and the form of a valid value.
_FORMS: Mapping[str, str] = {
    "PatientName": ".*",
    "PatientID": ".*",
    "PatientBirthDate": r"(\d{8})?",
    "PatientSex": "[MFO]?",
    "AccessionNumber": ".{0,16}",
    "StudyID": ".{0,16}",
    "StudyDate": r"(\d{8})?",
    "StudyTime": r"(\d{2}(\d{2}(\d{2}(\.\d{1,6})?)?)?)?",
    "ReferringPhysicianName": ".*",
}


class ReportSourceError(ClnetError):
    """An image that a structured report cannot refer to."""


@dataclass(frozen=True)
class BreastReport:
    """What the reports of a breast say.

    Attributes:
        laterality: "L" or "R".
        lesions: those to report, the surest first.
        sources: the tags of each view that was analysed, see `report_source`.
        version: of the model.
        notice: a sentence on its use.
        key: identifies the report; the same key gives the same UIDs.
    """

    laterality: str
    lesions: tuple[Lesion, ...]
    sources: Mapping[str, Dataset]
    version: str
    notice: str
    key: str

    def uid(self, *parts: object) -> UID:
        """A UID that depends on the key and on these words alone."""
        words = "/".join(map(str, ("clnet report", self.key, *parts)))
        return UID(f"2.25.{int.from_bytes(hashlib.sha256(words.encode()).digest()[:16], 'big')}")


def report_source(tags: Dataset, file: str | Path) -> Dataset:
    """The tags of an image as reports copy them: an invalid value there becomes empty.

    Args:
        tags: of the image.
        file: what messages call it.
    """
    with refusing_damage(Path(file)):
        for keyword in _NEEDED:
            if not tags.get(keyword):
                raise ReportSourceError(f"{file}: {keyword} is missing; a report cannot refer to this image")
        source = Dataset(dict(tags.items()))
        for keyword, form in _FORMS.items():
            value = str(source.get(keyword) or "")
            if keyword not in source or not re.fullmatch(form, value):
                setattr(source, keyword, "")
        return source


def make_document(report: BreastReport, kind: str, content: Dataset, number: int) -> ComprehensiveSR:
    """A document of the patient and the study of the first view, with all views in its evidence."""
    sources = list(report.sources.values())
    with _quiet():
        document = ComprehensiveSR(
            evidence=sources,
            content=content,
            series_instance_uid=report.uid(kind, "series"),
            series_number=number,
            sop_instance_uid=report.uid(kind, "instance"),
            instance_number=1,
            manufacturer=MANUFACTURER,
            is_complete=True,
            manufacturer_model_name=ALGORITHM,
            software_versions=report.version,
            device_serial_number=report.version,
            series_description=report.notice or ALGORITHM,
        )
    document.SeriesDate, document.SeriesTime = document.ContentDate, document.ContentTime
    return document


def save_report(document: Dataset, path: Path) -> None:
    """Write a report."""
    with _quiet():
        document.save_as(path, enforce_file_format=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings of highdicom and pydicom, which quote the patient's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def orientation_of(source: Dataset) -> list[str]:
    """The directions of rows and columns; [] where the tag holds something else, as in CBIS-DDSM."""
    directions = text_of(source, "PatientOrientation").split("\\")
    return directions if len(directions) == 2 else []


def outline(box: Any) -> list[tuple[float, float]]:
    """The closed polyline [(column, row), …] of an xyxy box; DICOM's pixel edges are ours."""
    x_min, y_min, x_max, y_max = (float(edge) for edge in box)
    return [(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max), (x_min, y_min)]


def percent(score: float) -> float:
    """A score in [0, 1] in percent, with as many digits as DICOM's decimal strings take."""
    return round(100 * score, 6)


def concept(code: Code) -> CodedConcept:
    """A code in the form of highdicom; pydicom's tables hide a blank of no width after some slashes."""
    return CodedConcept(code.value, code.scheme_designator, code.meaning.replace("\u200b", ""))
