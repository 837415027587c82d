"""Findings as a Secondary Capture: a picture for workstations that show nothing else.

All breasts of a study side by side, the right one on the left as they hang: CC and MLO, boxes, links, scores
and the notice. A breast that must not be drawn is left out.
"""

import numpy as np
from highdicom.sc.sop import SCImage
from pydicom.uid import ExplicitVRLittleEndian

from clnet.data.pictures import sheet
from clnet.reports.objects import identity, quiet, references
from clnet.reports.study import StudyReport


def picture_captures(report: StudyReport) -> list[SCImage]:
    """The object; none if there is nothing to draw. `save_object` writes it."""
    breasts = sorted(report.breasts, key=lambda breast: breast.laterality, reverse=True)
    pictures = [breast.picture for breast in breasts if breast.picture is not None]
    if not pictures:
        return []
    with quiet():
        capture = SCImage.from_ref_dataset(
            report.sources[0],
            np.asarray(sheet(pictures, columns=len(pictures))),
            photometric_interpretation="RGB",
            bits_allocated=8,
            coordinate_system="PATIENT",
            patient_orientation=("L", "F"),
            transfer_syntax_uid=ExplicitVRLittleEndian,
            **identity(report, "picture", report.sources[0]),
        )
    for keyword in ("PatientOrientation", "Laterality"):
        setattr(capture, keyword, None)  # a sheet of images has none
    capture.BurnedInAnnotation = "NO"  # none that names the patient
    capture.DerivationDescription = report.notice or capture.SeriesDescription
    capture.SourceImageSequence = references(report.sources)
    return [capture]
