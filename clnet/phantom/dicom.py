"""A view of the phantom as a "Digital Mammography X-Ray Image – For Presentation" DICOM file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.sr.codedict import codes
from pydicom.sr.coding import Code
from pydicom.uid import UID, DigitalMammographyXRayImageStorageForPresentation, ExplicitVRLittleEndian

from clnet.phantom.render import BITS

VIEW_CODES = {"cc": codes.cid4014.CranioCaudal, "mlo": codes.cid4014.MedioLateralObliqueProjection}
# The direction of the rows (left to right) and of the columns (downwards) in the patient.
ORIENTATIONS = {
    ("L", "cc"): ["A", "R"],
    ("R", "cc"): ["P", "L"],
    ("L", "mlo"): ["A", "FR"],
    ("R", "mlo"): ["P", "FL"],
}


@dataclass(frozen=True)
class ImageIdentity:
    """Which image of the phantom a file is.

    Attributes:
        set_name: of the phantom; different phantoms share no patient and no UID.
        patient: number of the patient in the phantom.
        laterality: "L" or "R".
        view: "cc" or "mlo".
    """

    set_name: str
    patient: int
    laterality: str
    view: str

    def uid(self, *parts: str) -> UID:
        """A UID that depends only on the phantom and `parts`."""
        digest = hashlib.sha256("/".join(("clnet phantom", self.set_name, *parts)).encode()).digest()
        return UID(f"2.25.{int.from_bytes(digest[:16], 'big')}")


def write_dicom(
    path: Path,
    pixels: NDArray[np.uint16],
    spacing: float,
    angle: float,
    density: str,
    identity: ImageIdentity,
) -> None:
    """Write one view.

    Args:
        path: the file to write.
        pixels: [rows, columns], of `BITS` bits.
        spacing: mm per pixel.
        angle: between the beam and the vertical, in degrees.
        density: breast composition category, A to D.
        identity: which image this is.
    """
    patient = f"PHANTOM-{identity.set_name}-{identity.patient:05d}"
    study, image = str(identity.patient), f"{identity.patient}/{identity.laterality}/{identity.view}"

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = DigitalMammographyXRayImageStorageForPresentation
    meta.MediaStorageSOPInstanceUID = identity.uid("image", image)
    meta.TransferSyntaxUID = ExplicitVRLittleEndian

    ds = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.SOPClassUID = meta.MediaStorageSOPClassUID
    ds.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    _describe_patient_and_study(ds, patient, identity.uid("study", study))
    ds.SeriesInstanceUID = identity.uid("series", image)
    ds.SeriesNumber = 1 + 2 * (identity.laterality == "R") + (identity.view == "mlo")
    ds.InstanceNumber = 1
    ds.Modality = "MG"
    ds.PresentationIntentType = "FOR PRESENTATION"
    ds.Manufacturer = "clnet"
    ds.ManufacturerModelName = "clnet phantom"
    ds.DeviceSerialNumber = identity.set_name
    ds.SoftwareVersions = "1"

    ds.ImageType = ["DERIVED", "PRIMARY", ""]
    ds.ContentDate, ds.ContentTime = ds.StudyDate, ds.StudyTime
    ds.AcquisitionDate, ds.AcquisitionTime = ds.StudyDate, ds.StudyTime
    ds.DerivationDescription = "Computed from a digital phantom; no patient was imaged"
    ds.QualityControlImage = "NO"
    ds.BurnedInAnnotation = "NO"
    ds.LossyImageCompression = "00"
    _describe_anatomy(ds, identity, angle, density)
    _describe_detector(ds, spacing)
    _add_pixels(ds, pixels)
    ds.save_as(path, enforce_file_format=True)


def _describe_patient_and_study(ds: Dataset, patient: str, study_uid: UID) -> None:
    ds.PatientName = patient.replace("-", "^", 1)
    ds.PatientID = patient
    ds.PatientBirthDate = ""
    ds.PatientSex = "F"
    ds.StudyInstanceUID = study_uid
    ds.StudyDate, ds.StudyTime = "20220101", "120000"
    ds.StudyID = "1"
    ds.AccessionNumber = ""
    ds.ReferringPhysicianName = ""


def _describe_anatomy(ds: Dataset, identity: ImageIdentity, angle: float, density: str) -> None:
    ds.BodyPartExamined = "BREAST"
    ds.AnatomicRegionSequence = Sequence([_code(codes.SCT.Breast)])
    ds.ImageLaterality = identity.laterality
    ds.PatientOrientation = ORIENTATIONS[identity.laterality, identity.view]
    ds.ViewPosition = identity.view.upper()
    view = _code(VIEW_CODES[identity.view])
    view.ViewModifierCodeSequence = Sequence()
    ds.ViewCodeSequence = Sequence([view])
    ds.OrganExposed = "BREAST"
    ds.BreastImplantPresent = "NO"
    ds.PositionerType = "MAMMOGRAPHIC"
    ds.PositionerPrimaryAngle = round(angle if identity.laterality == "R" else -angle, 1)
    ds.ImageComments = f"Breast composition {density}"
    ds.AcquisitionContextSequence = Sequence()


def _describe_detector(ds: Dataset, spacing: float) -> None:
    ds.DetectorType = "DIRECT"
    ds.DetectorID = "PHANTOM"
    ds.ImagerPixelSpacing = [f"{spacing:.6f}"] * 2
    ds.PixelSpacing = ds.ImagerPixelSpacing
    ds.PixelIntensityRelationship = "LOG"
    ds.PixelIntensityRelationshipSign = 1


def _add_pixels(ds: Dataset, pixels: NDArray[np.uint16]) -> None:
    ds.Rows, ds.Columns = pixels.shape
    ds.SamplesPerPixel = 1
    ds.PhotometricInterpretation = "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, BITS, BITS - 1
    ds.PixelRepresentation = 0
    ds.RescaleIntercept, ds.RescaleSlope, ds.RescaleType = 0, 1, "US"
    ds.PresentationLUTShape = "IDENTITY"
    ds.WindowCenter, ds.WindowWidth = 2 ** (BITS - 1), 2**BITS
    ds.WindowCenterWidthExplanation = "FULL RANGE"
    ds.PixelData = pixels.astype("<u2").tobytes()


def _code(concept: Code) -> Dataset:
    code = Dataset()
    code.CodeValue = concept.value
    code.CodingSchemeDesignator = concept.scheme_designator
    code.CodeMeaning = concept.meaning
    return code
