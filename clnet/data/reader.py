"""Read a mammogram: the one way from a file to grey values, for training, inference, Label and Deploy.

The chain for DICOM: decode, modality LUT or rescale, VOI LUT or window (a setting), inversion of MONOCHROME1.
PNG (8 or 16-bit grey) and NIfTI carry no tags and are taken as they are. Whatever the format, the result is
[H, W], rows first, float32, and bright is dense.

A 2D NIfTI is stored as (column, row), as SimpleITK and MONAI write images, so its axes are swapped here; no
axis is flipped.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image

from clnet.data.decode import check_size, decode
from clnet.data.header import ImageHeader, dicom_header, image_format, nifti_header, png_header
from clnet.data.image_errors import UnsupportedPixelsError, refusing_damage
from clnet.data.pixels import to_grey


@dataclass(frozen=True, eq=False)
class Mammogram:
    """One image and how it came about.

    Attributes:
        pixels: [H, W] float32, rows first, bright where the tissue is dense.
        header: what the file says about itself.
        steps: what was done to the stored values, in order, in words.
        warnings: the header's, and those of the steps.
    """

    pixels: NDArray[np.float32]
    header: ImageHeader
    steps: tuple[str, ...]
    warnings: tuple[str, ...]


def read_image(file: str | PathLike[str], apply_voi: bool = True) -> Mammogram:
    """Read a DICOM, PNG or NIfTI file.

    Args:
        file: its path; the format is told from the content.
        apply_voi: whether to apply the file's VOI LUT or window (the first, if it offers several).

    Raises:
        ImageError: the file is refused; the message says why and what to do.
    """
    file = Path(file)
    read = {"DICOM": _read_dicom, "PNG": _read_png, "NIfTI": _read_nifti}[image_format(file)]
    with refusing_damage(file):
        return read(file, apply_voi)


def _read_dicom(file: Path, apply_voi: bool) -> Mammogram:
    # The header first: where pixel data are cut off, pydicom gives up the other tags as well.
    header = dicom_header(file)
    dataset = pydicom.dcmread(file)
    stored = decode(dataset, header)
    pixels, steps, warnings = to_grey(stored, dataset, apply_voi)
    decoded = f"{dataset.file_meta.TransferSyntaxUID.name} decoded"
    return Mammogram(pixels, header, (decoded, *steps), (*header.warnings, *warnings))


def _read_png(file: Path, _: bool) -> Mammogram:
    with Image.open(file) as image:
        header = png_header(image, file)
        check_size(header)
        if header.photometric not in ("L", "I;16", "I"):  # older Pillow says "I" for 16 bits
            raise UnsupportedPixelsError(
                f"{file}: a PNG of {header.photometric} pixels; grey of 8 or 16 bits is expected. Convert it."
            )
        pixels = np.asarray(image).astype(np.float32)
    return Mammogram(pixels, header, (f"PNG of {header.bits_stored} bits decoded",), header.warnings)


def _read_nifti(file: Path, _: bool) -> Mammogram:
    image: Any = nibabel.load(file)
    header = nifti_header(image, file)
    check_size(header)
    pixels = np.asarray(image.dataobj)
    if pixels.dtype.kind not in "iuf" or not np.isfinite(pixels).all():
        raise UnsupportedPixelsError(
            f"{file}: a NIfTI of {pixels.dtype}; finite real numbers are expected. Convert it."
        )
    pixels = np.ascontiguousarray(pixels.reshape(header.columns, header.rows).T, dtype=np.float32)
    return Mammogram(pixels, header, ("NIfTI read", "axes swapped to rows first"), header.warnings)
