"""Small studies for the tests of the node."""

import io
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pydicom

from clnet.phantom import PhantomSettings, make_phantom

SECRETS = ("Secret^Name", "secret-id", "19500102")


@cache
def studies(number=2, seed=0, rows=128, columns=96):
    """Studies of four images, as data sets of a patient whose name nobody may see."""
    with TemporaryDirectory() as folder:
        make_phantom(Path(folder), PhantomSettings(2 * number, seed, rows, columns), workers=1)
        found = {}
        for file in sorted((Path(folder) / "images").glob("*.dcm")):
            dataset = pydicom.dcmread(file)
            dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = SECRETS
            dataset.pixel_array  # noqa: B018  the file goes away
            found.setdefault(dataset.StudyInstanceUID, []).append(dataset)
    return list(found.values())


def bytes_of(dataset):
    """A data set as a DICOM file."""
    file = io.BytesIO()
    dataset.save_as(file, enforce_file_format=True)
    return file.getvalue()


def copy_of(study, number):
    """The same pixels as another study of another patient."""
    copies = []
    for image, dataset in enumerate(study):
        copied = pydicom.dcmread(io.BytesIO(bytes_of(dataset)))
        copied.StudyInstanceUID = f"2.25.77{number}"
        copied.SeriesInstanceUID = f"2.25.78{number}0{image}"
        copied.SOPInstanceUID = copied.file_meta.MediaStorageSOPInstanceUID = f"2.25.79{number}0{image}"
        copied.PatientID = f"secret-id-{number}"
        copies.append(copied)
    return copies
