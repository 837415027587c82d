"""The whole files that are mutated: every format and every transfer syntax that is read here."""

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.uid import (
    JPEG2000,
    UID,
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    RLELossless,
)
from tortures import mutations
from tortures.readers import Read, read_datalist_file, read_dicom_file, read_findings_file, read_picture

from clnet.data.decode import DECODERS, UNCOMPRESSED
from clnet.phantom import PhantomSettings, make_phantom

CODECS = Path(__file__).parents[2] / "tests" / "data" / "codecs"
SECRET = "Secret^Name"  # noqa: S105  of the patient, which no message may hold
HIGH_THROUGHPUT = ("1.2.840.10008.1.2.4.201", "1.2.840.10008.1.2.4.202", "1.2.840.10008.1.2.4.203")


@dataclass(frozen=True)
class Sample:
    """A file that is read without an error.

    Attributes:
        name: of its kind.
        suffix: of its name.
        data: its bytes.
        mutate: ways to damage it.
        read: reads it.
    """

    name: str
    suffix: str
    data: bytes
    mutate: tuple[Callable[..., bytes], ...]
    read: Read


def all_samples(folder: Path) -> list[Sample]:
    """One of each kind; what must be made on the way is written to the folder."""
    make_phantom(folder, PhantomSettings(2, rows=160, columns=112), workers=1)
    image = next(iter(sorted((folder / "images").glob("*.dcm"))))
    ways = (mutations.mutate_bytes, mutations.mutate_dicom)
    samples = [
        Sample(f"DICOM, {syntax}", ".dcm", data, ways, read_dicom_file)
        for syntax, data in _dicom_files(image).items()
    ]
    samples += [
        Sample(name, suffix, data, (mutations.mutate_bytes,), read_picture)
        for name, suffix, data in _pictures(image)
    ]
    json_ways = (mutations.mutate_json, mutations.mutate_json, mutations.mutate_bytes)
    return [
        *samples,
        Sample("datalist", ".json", (folder / "datalist.json").read_bytes(), json_ways, read_datalist_file),
        Sample("findings", ".json", json.dumps(FINDINGS).encode(), json_ways, read_findings_file),
    ]


def _dicom_files(image: Path) -> dict[str, bytes]:
    """A file of each transfer syntax, by its name."""
    files = {}
    for syntax in (ImplicitVRLittleEndian, ExplicitVRLittleEndian, DeflatedExplicitVRLittleEndian):
        files[syntax] = _bytes_of(_small(image), syntax)
    big = _small(image)
    big.PixelData = big.pixel_array.byteswap().tobytes()
    files[ExplicitVRBigEndian] = _bytes_of(big, ExplicitVRBigEndian)
    compressed: dict[UID, dict[str, Any]] = {RLELossless: {}, JPEG2000Lossless: {}, JPEG2000: {"j2k_cr": [4]}}
    for syntax, more in compressed.items():
        dataset = _small(image)
        dataset.compress(syntax, **more)
        files[syntax] = _bytes_of(dataset, syntax)
    for name in HIGH_THROUGHPUT:  # nothing here encodes these; the decoder goes by the stream
        files[UID(name)] = _bytes_of(pydicom.dcmread(io.BytesIO(files[JPEG2000Lossless])), UID(name))
    for file in sorted(CODECS.glob("*.dcm")):
        dataset = pydicom.dcmread(file)
        dataset.PatientName = SECRET
        files[dataset.file_meta.TransferSyntaxUID] = _bytes_of(dataset, dataset.file_meta.TransferSyntaxUID)
    missing = {*DECODERS, *UNCOMPRESSED, DeflatedExplicitVRLittleEndian} - files.keys()
    if missing:
        raise RuntimeError(f"no sample of the transfer syntaxes {sorted(missing)}")
    return {UID(syntax).name: data for syntax, data in files.items()}


def _small(image: Path) -> Dataset:
    dataset = pydicom.dcmread(image)
    pixels = np.ascontiguousarray(dataset.pixel_array[:64, :48])
    dataset.Rows, dataset.Columns = pixels.shape
    dataset.PixelData, dataset.PatientName = pixels.tobytes(), SECRET
    return dataset


def _bytes_of(dataset: Dataset, syntax: UID) -> bytes:
    file = io.BytesIO()
    dataset.file_meta.TransferSyntaxUID, dataset.preamble = syntax, bytes(128)
    order = {"implicit_vr": syntax.is_implicit_VR, "little_endian": syntax.is_little_endian}
    dataset.walk(lambda _dataset, _element: None)  # what is still in the order of its file
    pydicom.dcmwrite(file, dataset, **order, force_encoding=True)
    return file.getvalue()


def _pictures(image: Path) -> list[tuple[str, str, bytes]]:
    """PNG, JPEG and NIfTI files: name, suffix and bytes."""
    grey = pydicom.dcmread(image).pixel_array[:64, :48]
    eight = Image.fromarray((grey >> 4).astype(np.uint8))
    found = []
    for name, kind, picture in (
        ("PNG of 8 bits", "PNG", eight),
        ("PNG of 16 bits", "PNG", Image.fromarray(grey.astype(np.uint16))),
        ("JPEG", "JPEG", eight),
        ("JPEG in RGB", "JPEG", eight.convert("RGB")),
    ):
        file = io.BytesIO()
        picture.save(file, format=kind)
        found.append((name, f".{kind.lower()}", file.getvalue()))
    for codec in ("jpeg_extended_12bit", "jpeg_lossless", "jpeg_ls_lossless"):
        dataset = pydicom.dcmread(CODECS / f"{codec}.dcm")
        found.append(
            (f"{codec.replace('_', ' ')}, bare", ".jpg", pydicom.encaps.get_frame(dataset.PixelData, 0))
        )
    nifti = nibabel.Nifti1Image(grey.astype(np.uint16).T, np.eye(4)).to_bytes()
    return [*found, ("NIfTI", ".nii", nifti), ("NIfTI, compressed", ".nii.gz", gzip.compress(nifti))]


FINDINGS = {
    "schema": 1,
    "model": "a model",
    "pairs": [
        {
            "pair_id": f"pair {number}",
            "views": {
                "cc": {"boxes": [[1, 2, 30, 40], [5, 6, 7.5, 8]], "scores": [0.9, 0.1]},
                "mlo": {"boxes": [[3, 4, 50, 60]], "scores": [0.7]},
            },
            "links": [
                {"cc": 0, "mlo": 0, "score": 0.8, "attention": {"cc": [0.1, 0.2, 0.7], "mlo": [0.4, 0.6]}},
                {"cc": 1, "mlo": None, "score": 0.3},
            ],
        }
        for number in range(2)
    ],
}
