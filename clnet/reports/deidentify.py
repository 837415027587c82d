"""Reports without the identity of the patient, by the Basic Application Confidentiality Profile (PS3.15).

Reports copy what they say about patient, study and equipment from the images. So the identity is taken away
there: of an image's tags the technical ones alone are left, and its UIDs are replaced; those of the reports
follow from them. What else a report says is written by us and names nobody: these are the profile's options
to clean structured content, graphics and descriptors. Dates become dummies.

A UID is always replaced by the same one, so that reports fit each other, and images that are treated alike:
2.25 and the first 16 bytes of the SHA-256 of ``clnet/deidentified/<UID>`` as a number.
"""

from collections.abc import Iterable
from dataclasses import replace

from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from pydicom.sr.codedict import codes

from clnet.reports.sr_document import concept
from clnet.reports.study import StudyReport, report_source, uid_of

UIDS = ("SOPInstanceUID", "SeriesInstanceUID", "StudyInstanceUID")
TECHNICAL = (
    *("SOPClassUID", "Modality", "Rows", "Columns", "SamplesPerPixel", "PhotometricInterpretation"),
    *("PatientOrientation", "ImagerPixelSpacing", "PixelSpacing"),
    *("RescaleIntercept", "RescaleSlope", "RescaleType", "WindowCenter", "WindowWidth", "VOILUTFunction"),
)
TABLES = ("ModalityLUTSequence", "VOILUTSequence")
OF_TABLES = ("LUTDescriptor", "ModalityLUTType", "LUTData")
DUMMIES = {"DA": "19000101", "TM": "000000", "DT": "19000101000000"}
DUMMY_SERIAL_NUMBER = "0"
METHODS = (
    codes.DCM.BasicApplicationConfidentialityProfile,
    codes.DCM.CleanStructuredContentOption,
    codes.DCM.CleanGraphicsOption,
    codes.DCM.CleanDescriptorsOption,
)


def without_identity(report: StudyReport) -> StudyReport:
    """The same report, about images that name nobody."""
    breasts = (
        replace(breast, sources={view: _clean(source) for view, source in breast.sources.items()})
        for breast in report.breasts
    )
    return replace(report, breasts=tuple(breasts))


def mark_deidentified(document: Dataset) -> None:
    """Make dummies of the dates of a report of `without_identity`, and say what was done to it."""

    def replace_dates(_: Dataset, element: DataElement) -> None:
        if element.VR in DUMMIES and element.value:
            element.value = DUMMIES[element.VR]

    document.walk(replace_dates)
    document.DeviceSerialNumber = DUMMY_SERIAL_NUMBER
    document.PatientIdentityRemoved = "YES"
    document.DeidentificationMethod = "Basic Profile of PS3.15 by clnet"
    document.DeidentificationMethodCodeSequence = Sequence(map(concept, METHODS))
    document.LongitudinalTemporalInformationModified = "REMOVED"


def _clean(source: Dataset) -> Dataset:
    clean = _only(source, TECHNICAL)
    for name in TABLES:
        if name in source:
            setattr(clean, name, Sequence(_only(item, OF_TABLES) for item in source[name].value))
    for keyword in UIDS:
        setattr(clean, keyword, uid_of("deidentified", source[keyword].value))
    clean = report_source(clean, "image")
    # A patient for each study: a digest of a patient's number could be undone by trying all numbers.
    clean.PatientID = clean.PatientName = clean.StudyInstanceUID.removeprefix("2.25.")[:12]
    return clean


def _only(dataset: Dataset, keywords: Iterable[str]) -> Dataset:
    return Dataset({dataset[name].tag: dataset[name] for name in keywords if name in dataset})
