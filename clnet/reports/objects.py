"""What all DICOM objects of a study share: which series they are, who made them, and how they are saved."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydicom.dataset import Dataset

from clnet.reports.maker import ALGORITHM, MANUFACTURER
from clnet.reports.study import StudyReport

# The number of each series, and what its description calls it.
SERIES: Mapping[str, tuple[int, str]] = {
    "measurements": (9001, "masses"),
    "cad": (9002, "CAD"),
    "presentation": (9003, "boxes"),
    "picture": (9004, "picture"),
}


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


def save_object(document: Dataset, path: Path) -> None:
    """Write a DICOM file."""
    with quiet():
        document.save_as(path, enforce_file_format=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of highdicom and pydicom, which quote the patient's name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
