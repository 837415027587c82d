"""What all DICOM objects of a study share: which series they are, who made them, and how they are saved."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydicom.charset import default_encoding
from pydicom.dataelem import DataElement, RawDataElement
from pydicom.dataset import Dataset
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_sequence_item
from pydicom.sequence import Sequence as Items
from pydicom.tag import BaseTag, Tag
from pydicom.uid import UID
from pydicom.valuerep import VR

from clnet.reports.maker import ALGORITHM, MANUFACTURER
from clnet.reports.study import StudyReport

# The number of each series, and what its description calls it.
SERIES: Mapping[str, tuple[int, str]] = {
    "measurements": (9001, "masses"),
    "cad": (9002, "CAD"),
    "presentation": (9003, "boxes"),
    "picture": (9004, "picture"),
}
CODES = frozenset(
    Tag(name) for name in ("ConceptNameCodeSequence", "ConceptCodeSequence", "MeasurementUnitsCodeSequence")
)


def identity(report: StudyReport, kind: str, source: Dataset, instance: int = 1) -> dict[str, Any]:
    """The arguments of highdicom's objects that say which one this is.

    Args:
        report: what it says.
        kind: a key of `SERIES`.
        source: the tags of the image whose patient and study it belongs to.
        instance: its number among those of this kind.
    """
    number, what = SERIES[kind]
    return {
        "series_instance_uid": report.uid(kind, "series", source.StudyInstanceUID),
        "series_number": number,
        "series_description": report.description(what),
        "sop_instance_uid": report.uid(kind, "instance", instance),
        "instance_number": instance,
        "manufacturer": MANUFACTURER,
        "manufacturer_model_name": ALGORITHM,
        "software_versions": report.version,
        "device_serial_number": report.version,
    }


def references(images: Iterable[Dataset]) -> Items:
    """The value of a Referenced Image Sequence; highdicom's own searches its tables of IODs each time."""
    items = []
    for image in images:
        item = Dataset()
        item.ReferencedSOPClassUID = image.SOPClassUID
        item.ReferencedSOPInstanceUID = image.SOPInstanceUID
        items.append(item)
    return Items(items)


def save_object(document: Dataset, path: Path) -> None:
    """Write a DICOM file; `document` cannot be changed afterwards."""
    syntax = document.file_meta.TransferSyntaxUID
    with quiet():
        if "ContentSequence" in document:
            for item in (*_items(document), document):
                _encode_codes(item, syntax)
        document.save_as(path, enforce_file_format=True)


def _items(document: Dataset) -> Iterator[Dataset]:
    """All items of a document's sequences but codes, at every depth."""
    for element in document:
        if element.VR == "SQ" and element.tag not in CODES:
            for item in element.value:
                yield from _items(item)
                yield item


def _encode_codes(item: Dataset, syntax: UID) -> None:
    """Put the bytes of codes in their place: most of a structured report is codes, and always the same ones.

    Besides, pydicom looks for ambiguous VRs in the whole tree below each item of unknown encoding. Structured
    reports have none.
    """
    item.set_original_encoding(syntax.is_implicit_VR, syntax.is_little_endian, item._character_set)
    for tag in CODES & item.keys():
        (code,) = item[tag].value
        words = tuple((element.tag, element.VR, element.value) for element in code)
        if all(isinstance(value, str) and value.isascii() for *_, value in words):
            data = _encoded(words, syntax)
            item[tag] = RawDataElement(
                tag, VR.SQ, len(data), data, 0, syntax.is_implicit_VR, syntax.is_little_endian
            )


@lru_cache(maxsize=512)
def _encoded(words: tuple[tuple[BaseTag, str, str], ...], syntax: UID) -> bytes:
    """A sequence of one item with these elements (tag, VR, value)."""
    buffer = DicomBytesIO()
    buffer.is_implicit_VR, buffer.is_little_endian = syntax.is_implicit_VR, syntax.is_little_endian
    item = Dataset({tag: DataElement(tag, vr, value) for tag, vr, value in words})
    write_sequence_item(buffer, item, [default_encoding])
    return buffer.getvalue()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of highdicom and pydicom, which quote the patient's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
