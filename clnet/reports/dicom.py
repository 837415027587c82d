"""The DICOM reports of a study, by name: a new one is a file in this folder and a line here."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydicom import Dataset

from clnet.reports.deidentify import mark_deidentified, without_identity
from clnet.reports.objects import save_object
from clnet.reports.presentation import presentation_states
from clnet.reports.secondary_capture import picture_captures
from clnet.reports.sr_mammography_cad import mammography_cad_report
from clnet.reports.sr_measurements import measurement_report
from clnet.reports.study import StudyReport

DICOM_REPORTS: Mapping[str, Callable[[StudyReport], Sequence[Dataset]]] = {
    "measurements": lambda report: [measurement_report(report)],
    "presentation": presentation_states,
    "picture": picture_captures,
    "cad": lambda report: [mammography_cad_report(report)],
}
"""Each is written as ``<name>.dcm``; where one is not enough, the others as ``<name>_2.dcm`` and so on."""
DEFAULT_REPORTS = ("measurements", "presentation", "picture")


def write_reports(
    report: StudyReport, kinds: Sequence[str], folder: Path, deidentify: bool = False
) -> list[str]:
    """Write the reports of a study.

    Args:
        report: what they say.
        kinds: keys of `DICOM_REPORTS`.
        folder: where to.
        deidentify: leave out who the patient is.

    Returns:
        The names of the files.
    """
    names = []
    report = without_identity(report) if deidentify else report
    for kind in kinds:
        for number, document in enumerate(DICOM_REPORTS[kind](report), start=1):
            names.append(f"{kind}.dcm" if number == 1 else f"{kind}_{number}.dcm")
            if deidentify:
                mark_deidentified(document)
            save_object(document, folder / names[-1])
    return names
