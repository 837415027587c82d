"""Mammogram files for tests, made on the spot: one valid DICOM, changed as a test asks."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import (
    DigitalMammographyXRayImageStorageForPresentation,
    ExplicitVRLittleEndian,
    generate_uid,
)

STUDY = "1.2.826.0.1.3680043.8.498.1"


def ramp(
    rows: int = 20, columns: int = 12, low: int = 0, high: int = 4095, dtype: Any = np.uint16
) -> np.ndarray:
    """A picture that holds its range from `low` (first pixel) to `high` (last pixel), rows first."""
    return np.linspace(low, high, rows * columns).round().astype(dtype).reshape(rows, columns)


def texture(rows: int = 64, columns: int = 48, bits: int = 12) -> np.ndarray:
    """A slope with a fine pattern, for codecs: neither flat nor random; up to 3523 of 4095 at 12 bits."""
    y, x = np.mgrid[:rows, :columns]
    values = 40 * y + 20 * x + (7 * x * y) % 64
    return (values >> (12 - bits)).astype(np.uint8 if bits == 8 else np.uint16)


def code(value: str, scheme: str = "SCT", meaning: str = "") -> Dataset:
    """One item of a code sequence."""
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, scheme, meaning or value
    return item


def mammogram(pixels: np.ndarray | None = None, **tags: Any) -> Dataset:
    """A left CC mammogram for presentation; `tags` are set last, and a tag given as None is removed."""
    pixels = ramp() if pixels is None else pixels
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID = DigitalMammographyXRayImageStorageForPresentation
    dataset.SOPInstanceUID = generate_uid()
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = STUDY, generate_uid()
    dataset.PatientName, dataset.PatientID = "Secret^Name", "secret-id"
    dataset.Modality, dataset.PresentationIntentType = "MG", "FOR PRESENTATION"
    dataset.ImageType = ["ORIGINAL", "PRIMARY", ""]
    dataset.ImageLaterality, dataset.ViewPosition = "L", "CC"
    dataset.ImagerPixelSpacing = [0.07, 0.07]
    dataset.BurnedInAnnotation = "NO"
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.Rows, dataset.Columns = pixels.shape
    dataset.BitsAllocated = pixels.dtype.itemsize * 8
    dataset.BitsStored = 12 if dataset.BitsAllocated == 16 else 8
    dataset.PixelRepresentation = int(pixels.dtype.kind == "i")
    dataset.PixelData = pixels.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tests set invalid values on purpose
        for name, value in tags.items():
            if value is None:
                delattr(dataset, name)
            else:
                setattr(dataset, name, value)
    if "HighBit" not in tags:
        dataset.HighBit = dataset.BitsStored - 1
    dataset["PixelData"].VR = "OW" if dataset.BitsAllocated == 16 else "OB"
    return dataset


def save(path: Path, dataset: Dataset | None = None, **tags: Any) -> Path:
    """Write `dataset`, or a `mammogram` with these tags, and say where."""
    (mammogram(**tags) if dataset is None else dataset).save_as(path, enforce_file_format=True)
    return path
