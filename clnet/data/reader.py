"""Read a mammogram: the one way from a file to grey values, for training, inference, Label and Deploy.

The chain for DICOM: decode, modality LUT or rescale, VOI LUT or window (a setting), inversion of MONOCHROME1.
PNG, JPEG and NIfTI carry no tags and are taken as they are; colour is refused, unless its channels are equal.
Whatever the format, the result is [H, W], rows first, float32, and bright is dense.

A 2D NIfTI is stored as (column, row), as SimpleITK and MONAI write images, so its axes are swapped here; no
axis is flipped.
"""

from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import nibabel
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydicom.dataset import Dataset

from clnet.data.decode import check_size, decode
from clnet.data.deflated import read_tags_of
from clnet.data.header import (
    ImageHeader,
    dicom_header,
    header_of_tags,
    jpeg_header,
    nifti_header,
    open_image,
    png_header,
)
from clnet.data.image_errors import ColourImageError, UnsupportedPixelsError, refusing_damage
from clnet.data.jpeg import decode_jpeg, read_frame
from clnet.data.pixels import to_grey
from clnet.data.views import Laterality

PIXEL_DATA = 0x7FE00010


@dataclass(frozen=True, eq=False)
class Mammogram:
    """One image and how it was read.

    Attributes:
        pixels: [H, W] float32, rows first, bright where the tissue is dense.
        header: the tags that matter here.
        steps: what was done to the stored values, in order, in words.
        warnings: those of the header and of the steps.
        tags: all tags of a DICOM file but its pixels, for reports that refer to it; None for other formats.
    """

    pixels: NDArray[np.float32]
    header: ImageHeader
    steps: tuple[str, ...]
    warnings: tuple[str, ...]
    tags: Dataset | None = field(default=None, repr=False)


def read_image(file: str | PathLike[str], apply_voi: bool = True) -> Mammogram:
    """Read a DICOM, PNG, JPEG or NIfTI file; it is opened once.

    Args:
        file: its path; its content decides the format.
        apply_voi: whether to apply the file's VOI LUT or window (the first, if it offers several).

    Raises:
        ImageError: the file is refused; the message says why and what to do.
    """
    file = Path(file)
    with open_image(file) as (kind, stream), refusing_damage(file):
        if kind == "DICOM":
            return _read_dicom(stream, file, apply_voi)
        if kind == "NIfTI":
            return _read_nifti(file)
        return _read_png(stream, file) if kind == "PNG" else _read_jpeg(stream, file)


def read_tags(file: str | PathLike[str]) -> Dataset:
    """All tags of a DICOM file but its pixels; see `Mammogram.tags`."""
    file = Path(file)
    with open_image(file) as (_, stream), refusing_damage(file):
        return read_tags_of(stream, file, stop_before_pixels=True)


def image_of_array(pixels: NDArray[Any], name: str, view: str, laterality: Laterality) -> Mammogram:
    """An image that is in memory already.

    Args:
        pixels: [H, W] real numbers, rows first, bright where the tissue is dense.
        name: what messages call it.
        view: "CC" or "MLO".
        laterality: of the breast.
    """
    if pixels.ndim != 2 or pixels.size == 0:
        raise UnsupportedPixelsError(f"{name}: an array of shape {list(pixels.shape)}; [H, W] is expected.")
    if pixels.dtype.kind not in "iuf" or not np.isfinite(pixels).all():
        raise UnsupportedPixelsError(f"{name}: an array of {pixels.dtype}; finite real numbers are expected.")
    header = ImageHeader(
        file=Path(name),
        view=view,
        laterality=laterality,
        rows=pixels.shape[0],
        columns=pixels.shape[1],
        bits_stored=8 * pixels.dtype.itemsize,
        photometric="MONOCHROME2",
    )
    check_size(header)
    return Mammogram(np.ascontiguousarray(pixels, dtype=np.float32), header, ("array given",), ())


def read_dicom(stream: BinaryIO, file: Path) -> tuple[Dataset, ImageHeader]:
    """All of an open DICOM file, and its header."""
    dataset = read_tags_of(stream, file)
    if "PixelData" in dataset:
        return dataset, header_of_tags(dataset, file)
    # Where pixel data are cut off, pydicom gives up the other tags as well.
    return dataset, dicom_header(stream, file)


def _read_dicom(stream: BinaryIO, file: Path, apply_voi: bool) -> Mammogram:
    dataset, header = read_dicom(stream, file)
    stored = decode(dataset, header)
    pixels, steps, warnings = to_grey(stored, dataset, apply_voi)
    decoded = f"{dataset.file_meta.TransferSyntaxUID.name} decoded"
    tags = Dataset({tag: dataset.get_item(tag) for tag in dataset.keys() if tag != PIXEL_DATA})  # noqa: SIM118
    return Mammogram(pixels, header, (decoded, *steps), (*header.warnings, *warnings), tags)


def _read_png(stream: BinaryIO, file: Path) -> Mammogram:
    with Image.open(stream) as image:
        header = png_header(image, file)
        _check_grey_or_rgb(header)
        if header.photometric not in ("L", "I;16", "I", "RGB"):  # older Pillow says "I" for 16 bits
            raise UnsupportedPixelsError(
                f"{file}: a PNG of {header.photometric} pixels; grey of 8 or 16 bits is expected. Convert it."
            )
        return _without_tags("PNG", np.asarray(image), header)


def _read_jpeg(stream: BinaryIO, file: Path) -> Mammogram:
    frame = read_frame(stream, file)
    header = jpeg_header(frame, file)
    _check_grey_or_rgb(header)
    stream.seek(0)
    return _without_tags("JPEG", decode_jpeg(stream, frame, file), header)


def _check_grey_or_rgb(header: ImageHeader) -> None:
    """`check_size`, but RGB passes: whether it is colour is seen in the pixels."""
    check_size(replace(header, samples=1) if header.photometric == "RGB" else header)


def _without_tags(kind: str, stored: NDArray[Any], header: ImageHeader) -> Mammogram:
    """The image of stored values [H, W], or [H, W, 3] with three equal channels, as viewers export grey."""
    steps = [f"{kind} of {header.bits_stored} bits decoded"]
    if stored.ndim == 3:
        if (stored != stored[..., :1]).any():
            raise ColourImageError(
                f"{header.file}: a {kind} in colour, where grey values are expected. It may be a screenshot, "
                "or have coloured marks; use the original image."
            )
        stored = stored[..., 0]
        steps.append("three equal channels: one taken as grey")
    pixels = np.ascontiguousarray(stored, dtype=np.float32)
    return Mammogram(pixels, header, tuple(steps), header.warnings)


def _read_nifti(file: Path) -> Mammogram:
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
