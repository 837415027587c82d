"""A structured report that replaces an earlier one says so: its predecessor documents (PS3.3, C.17.2)."""

from pathlib import Path

import pydicom
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

from clnet.files import whole_file
from clnet.reports.objects import quiet


def refer_to_predecessor(report: Path, predecessor: Path) -> None:
    """Add to a report on disk that it follows another one; the file is replaced whole.

    Args:
        report: the later document.
        predecessor: the earlier one.
    """
    with quiet():
        document, before = pydicom.dcmread(report), pydicom.dcmread(predecessor, stop_before_pixels=True)
        item, series, study = Dataset(), Dataset(), Dataset()
        item.ReferencedSOPClassUID = before.SOPClassUID
        item.ReferencedSOPInstanceUID = before.SOPInstanceUID
        series.SeriesInstanceUID = before.SeriesInstanceUID
        series.ReferencedSOPSequence = Sequence([item])
        study.StudyInstanceUID = before.StudyInstanceUID
        study.ReferencedSeriesSequence = Sequence([series])
        document.PredecessorDocumentsSequence = Sequence([study])
        with whole_file(report) as unfinished:
            document.save_as(unfinished, enforce_file_format=True)
