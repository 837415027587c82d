"""The DICOM reports of a breast, by name: a new one is a file in this folder and a line here."""

from collections.abc import Callable

from pydicom import Dataset

from clnet.reports.sr_document import BreastReport
from clnet.reports.sr_mammography_cad import mammography_cad_report
from clnet.reports.sr_measurements import measurement_report

DICOM_REPORTS: dict[str, Callable[[BreastReport], Dataset]] = {
    "measurements": measurement_report,
    "mammography_cad": mammography_cad_report,
}
"""Each is written as ``<name>.dcm`` beside the findings."""
