"""What the DICOM reports of a study say: its breasts, their lesions, and a name for each of their boxes.

Lesions are numbered in each breast, the surest first: L1, L2, R1. All objects of a study, and the picture,
use these names. A report belongs to the patient and study of its first image. Where images come from several
studies, as every film of CBIS-DDSM does, it lists the others as other pertinent evidence.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from PIL import Image
from pydicom.dataset import Dataset
from pydicom.uid import UID

from clnet import __version__
from clnet.data.counted import counted
from clnet.data.image_errors import refusing_damage
from clnet.data.pair import VIEW_NAMES
from clnet.errors import ClnetError
from clnet.findings.lesions import Lesion
from clnet.findings.types import Detection

LONGEST_TEXT = 64  # characters of a DICOM long string (LO)

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
    """An image that a DICOM report cannot refer to."""


@dataclass(frozen=True)
class BreastReport:
    """What reports say about one breast.

    Attributes:
        laterality: "L" or "R".
        lesions: those to report, the surest first.
        sources: the tags of each view that was analysed, see `report_source`.
        picture: the views with boxes and links; None if they must not be drawn.
        warning: that the two views may not be of one breast, in words; "" if they fit together.
    """

    laterality: str
    lesions: tuple[Lesion, ...]
    sources: Mapping[str, Dataset]
    picture: Image.Image | None = None
    warning: str = ""

    @property
    def summary(self) -> str:
        """The number of lesions in words, such as "2 masses found"."""
        return f"{counted(len(self.lesions), 'mass')} found" if self.lesions else "no masses found"


@dataclass(frozen=True)
class Region:
    """The box of a lesion in one view.

    Attributes:
        laterality: of the breast.
        name: of the lesion, such as "L1"; the same in both views.
        view: "cc" or "mlo".
        lesion: which it is.
        elsewhere: what the other view shows, in words; "" if there is no other view.
        source: the tags of the image.
        uid: identifies the box; the two boxes of a linked lesion differ.
        lesion_uid: identifies the lesion; the same for its two boxes.
    """

    laterality: str
    name: str
    view: str
    lesion: Lesion
    elsewhere: str
    source: Dataset
    uid: UID
    lesion_uid: UID

    @property
    def detection(self) -> Detection:
        """The box and its score."""
        return self.lesion.views[self.view]

    @property
    def name_in_view(self) -> str:
        """Such as "L1 CC, also in MLO"."""
        return ", ".join(filter(None, (f"{self.name} {self.view.upper()}", self.elsewhere)))

    @property
    def label(self) -> str:
        """What is shown beside the box, such as "L1 CC 0.87, also in MLO"."""
        return ", ".join(
            filter(None, (f"{self.name} {self.view.upper()} {self.detection.score:.2f}", self.elsewhere))
        )


@dataclass(frozen=True)
class StudyReport:
    """What the reports of a study say.

    Attributes:
        breasts: those that were analysed, one of each side at most, and at least one.
        version: of the model, with a digest of its weights.
        notice: a sentence on its use.
        min_score: the least score of a lesion.
    """

    breasts: tuple[BreastReport, ...]
    version: str
    notice: str
    min_score: float

    @cached_property
    def sources(self) -> tuple[Dataset, ...]:
        """The tags of all images, breast by breast."""
        return tuple(source for breast in self.breasts for source in breast.sources.values())

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """All boxes, lesion by lesion; a lesion in both views has two, one after the other."""
        return tuple(self._regions())

    @property
    def summary(self) -> str:
        """The number of lesions on each side, such as "2 L, none R"."""
        return ", ".join(f"{len(breast.lesions) or 'none'} {breast.laterality}" for breast in self.breasts)

    def description(self, what: str) -> str:
        """A series description: what it is, the number of lesions and, if there is room, the notice."""
        text = f"CL-Net {what}: {self.summary}"
        whole = f"{text}. {self.notice}"
        return whole if self.notice and len(whole) <= LONGEST_TEXT else text

    def uid(self, *parts: object) -> UID:
        """A UID that depends on the images, the model, its settings, and on these words alone."""
        images = (source.SOPInstanceUID for source in self.sources)
        return uid_of("report", __version__, self.version, self.min_score, *images, *parts)

    def _regions(self) -> Iterator[Region]:
        for breast in self.breasts:
            for number, lesion in enumerate(breast.lesions, start=1):
                name = f"{breast.laterality}{number}"
                whole = self.uid("lesion", name)
                for view in lesion.views:
                    uid = self.uid("lesion", name, view) if lesion.is_linked else whole
                    elsewhere = _elsewhere(breast, lesion, view)
                    source = breast.sources[view]
                    yield Region(breast.laterality, name, view, lesion, elsewhere, source, uid, whole)


def uid_of(*words: object) -> UID:
    """A UID that depends on these words alone."""
    digest = hashlib.sha256("/".join(map(str, ("clnet", *words))).encode()).digest()
    return UID(f"2.25.{int.from_bytes(digest[:16], 'big')}")


def _elsewhere(breast: BreastReport, lesion: Lesion, view: str) -> str:
    (other,) = (name for name in VIEW_NAMES if name != view)
    if other not in breast.sources:
        return ""
    return f"{'also' if other in lesion.views else 'not seen'} in {other.upper()}"


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
                source.pop(keyword, None)  # its element is that of `tags`
                setattr(source, keyword, "")
        return source
