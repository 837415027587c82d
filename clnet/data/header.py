"""The tags of an image file that decide how it is read and which view it is.

`read_header` reads tags only, never pixels, so that a large archive can be scanned quickly. DICOM, PNG, JPEG
and NIfTI are told apart by their content: archives name DICOM files `.dcm`, `.dicom`, or nothing at all.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import nibabel
from PIL import Image
from pydicom.dataset import Dataset

from clnet.data.deflated import read_tags_of
from clnet.data.film_names import CROP_OR_MASK, FilmName, parse_film_name
from clnet.data.image_errors import DamagedImageError, NotAnImageError, refusing_damage
from clnet.data.jpeg import SIGNATURE, JpegFrame, read_frame
from clnet.data.pixels import describe_voi
from clnet.data.tags import code_of, numbers_of, text_of
from clnet.data.views import Laterality, is_synthetic, laterality_of, modifiers_of, view_of

Format = Literal["DICOM", "PNG", "JPEG", "NIfTI"]
FORMATS: tuple[Format, ...] = get_args(Format)

SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"  # and its multi-frame kinds, which add ".1" to ".4"
TOMOSYNTHESIS = "1.2.840.10008.5.1.4.1.1.13.1.3"
BURNED_IN = "BurnedInAnnotation is YES"
FOR_PROCESSING = "1.2.840.10008.5.1.4.1.1.1.2.1"

KEYWORDS = [
    *("SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID", "PatientID"),
    *("Modality", "ImageType"),
    *("PresentationIntentType", "SeriesDescription", "PaddleDescription", "BurnedInAnnotation"),
    *("ViewPosition", "ViewCodeSequence", "ViewModifierCodeSequence", "PatientOrientation"),
    *("ImageLaterality", "Laterality", "SharedFunctionalGroupsSequence", "BreastImplantPresent"),
    *("Rows", "Columns", "BitsAllocated", "BitsStored", "PixelRepresentation", "PhotometricInterpretation"),
    *("SamplesPerPixel", "NumberOfFrames", "ImagerPixelSpacing", "PixelSpacing"),
    *("WindowCenter", "WindowWidth", "VOILUTFunction", "VOILUTSequence"),
]
_REQUIRED_KEYWORDS = (
    *("SamplesPerPixel", "PhotometricInterpretation"),
    *("BitsAllocated", "BitsStored", "PixelRepresentation"),
)
_NO_TAGS = "no tags in this format: view, laterality and pixel spacing are unknown"


@dataclass(frozen=True)
class ImageHeader:
    """What a file says about its image; PNG, JPEG and NIfTI say little more than their size.

    Attributes:
        file: where it was read.
        view: "CC", "MLO", another view's abbreviation, the file's own text if that is none, or None.
        laterality: the breast, "L" or "R", or None.
        rows, columns: size of the stored image in pixels.
        bits_stored: bits of a stored value.
        photometric: PhotometricInterpretation, such as "MONOCHROME2".
        spacing_mm: distance of neighbouring rows and columns at the detector, or None (scanned film).
        modality: "MG" for a mammogram.
        voi: the VOI transform that the file offers, in words; "none" without.
        warnings: what a user should know about this file.
        sop_instance_uid, series_uid, study_uid, patient_id: the file's identifiers, "" without; study and
            patient of a film of CBIS-DDSM are those of `clnet.data.film_names`.
        series_description: free text in capitals; it tells a mask from a crop in CBIS-DDSM.
        sop_class_uid: what kind of object it is.
        frames, samples: the number of frames, and of values (colours) per pixel.
        for_processing: raw detector data, not meant for reading by a person.
        modifiers: what makes the view a special one, such as "spot compression".
        synthetic: a 2D image computed from tomosynthesis.
    """

    file: Path
    view: str | None
    laterality: Laterality | None
    rows: int
    columns: int
    bits_stored: int
    photometric: str
    spacing_mm: tuple[float, float] | None = None
    modality: str = ""
    voi: str = "none"
    warnings: tuple[str, ...] = ()
    sop_instance_uid: str = ""
    series_uid: str = ""
    series_description: str = field(default="", repr=False)  # free text may hold anything
    study_uid: str = ""
    patient_id: str = field(default="", repr=False)  # never shown by accident
    sop_class_uid: str = ""
    frames: int = 1
    samples: int = 1
    for_processing: bool = False
    modifiers: tuple[str, ...] = ()
    synthetic: bool = False


def may_show_text(warnings: Iterable[str]) -> bool:
    """Whether warnings say that text is burnt into an image: it may name the patient, so never draw it."""
    return any(BURNED_IN in warning for warning in warnings)


def read_header(file: str | Path) -> ImageHeader:
    """Read the tags of a DICOM, PNG, JPEG or NIfTI file, without its pixels.

    Raises:
        ImageError: the file is none of these, is damaged, or names two different breasts.
    """
    file = Path(file)
    with open_image(file) as (kind, stream), refusing_damage(file):
        if kind == "DICOM":
            return dicom_header(stream, file)
        if kind == "PNG":
            with Image.open(stream) as image:
                return png_header(image, file)
        if kind == "JPEG":
            return jpeg_header(read_frame(stream, file), file)
        return nifti_header(nibabel.load(file), file)


@contextmanager
def open_image(file: Path) -> Iterator[tuple[Format, BinaryIO]]:
    """Open a file and recognise its format by its first bytes; the stream is at the beginning."""
    if not file.is_file():  # a pipe would keep us waiting
        raise NotAnImageError(f"{file}: no such file, or not a plain one. Check the path.")
    try:
        stream = file.open("rb")
    except OSError as error:
        raise NotAnImageError(f"{file}: cannot be opened ({error.strerror}).") from error
    with stream:
        try:
            start = stream.read(348)
        except OSError as error:
            raise NotAnImageError(f"{file}: cannot be read ({error.strerror}).") from error
        kind = _format_of(start, file)
        stream.seek(0)
        yield kind, stream


def image_format(file: Path) -> Format:
    """The format of a file, by its first bytes."""
    with open_image(file) as (kind, _):
        return kind


def _format_of(start: bytes, file: Path) -> Format:
    if start[128:132] == b"DICM":
        return "DICOM"
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if start.startswith(SIGNATURE):
        return "JPEG"
    if start[344:347] == b"n+1" or start[4:7] == b"n+2" or start.startswith(b"\x1f\x8b"):
        return "NIfTI"
    raise NotAnImageError(
        f"{file}: not a DICOM file (bytes 129 to 132 are not 'DICM'), nor PNG, JPEG or NIfTI. "
        "Remove it, or export the image as DICOM."
    )


def dicom_header(stream: BinaryIO, file: Path) -> ImageHeader:
    """Read and check the tags of an open DICOM file, up to its pixels."""
    tags = read_tags_of(stream, file, stop_before_pixels=True, specific_tags=KEYWORDS)
    return header_of_tags(tags, file)


def header_of_tags(dataset: Dataset, file: Path) -> ImageHeader:
    """Check the tags of a DICOM object; `file` is where it is, or will be."""
    modality = code_of(dataset, "Modality")
    if not dataset.get("Rows") or not dataset.get("Columns"):
        raise NotAnImageError(
            f"{file}: (0028,0010) Rows or (0028,0011) Columns is missing or 0 (Modality "
            f"{modality or 'missing'}): this object holds no image, or is truncated. Leave it out, "
            "or fetch it again from its source."
        )
    for keyword in _REQUIRED_KEYWORDS:
        if dataset.get(keyword) in (None, ""):
            raise DamagedImageError(
                f"{file}: {keyword} is missing, and without it the pixels mean nothing. Fetch the file again."
            )
    view, warnings = view_of(dataset)
    for_processing = (
        text_of(dataset, "PresentationIntentType") == "FOR PROCESSING"
        or text_of(dataset, "SOPClassUID") == FOR_PROCESSING
    )
    spacing = spacing_of(dataset)
    if for_processing:
        warnings.append("FOR PROCESSING: raw detector data, which looks unlike an image for presentation")
    if spacing is None:
        warnings.append("no pixel spacing: sizes in millimetres are unknown")
    if text_of(dataset, "BurnedInAnnotation") == "YES":
        warnings.append(f"{BURNED_IN}: the pixels may show text, even the patient's name")
    if text_of(dataset, "BreastImplantPresent") == "YES":
        warnings.append("BreastImplantPresent is YES: an implant may show")
    header = ImageHeader(
        file=file,
        view=view,
        laterality=laterality_of(dataset, file),
        rows=int(dataset.Rows),
        columns=int(dataset.Columns),
        bits_stored=int(dataset.BitsStored),
        photometric=code_of(dataset, "PhotometricInterpretation"),
        spacing_mm=spacing,
        modality=modality,
        voi=describe_voi(dataset),
        warnings=tuple(warnings),
        sop_instance_uid=text_of(dataset, "SOPInstanceUID"),
        series_uid=text_of(dataset, "SeriesInstanceUID"),
        series_description=text_of(dataset, "SeriesDescription"),
        study_uid=text_of(dataset, "StudyInstanceUID"),
        patient_id=str(dataset.get("PatientID") or ""),
        sop_class_uid=text_of(dataset, "SOPClassUID"),
        frames=int(dataset.get("NumberOfFrames") or 1),
        samples=int(dataset.SamplesPerPixel),
        for_processing=for_processing,
        modifiers=modifiers_of(dataset),
        synthetic=is_synthetic(dataset),
    )
    film = parse_film_name(header.patient_id)
    return _with_film_name(header, film) if film else header


def _with_film_name(header: ImageHeader, film: FilmName) -> ImageHeader:
    """The header of a film of CBIS-DDSM: its name gives patient and study, and whatever tags do not say."""
    warnings = [
        f"the {name} is {tagged} in its tag, {named} in PatientID: the tag is used"
        for name, tagged, named in (
            ("view", header.view, film.view),
            ("laterality", header.laterality, film.laterality),
        )
        if tagged and tagged != named
    ]
    is_part = film.is_numbered and "FULL MAMMOGRAM" not in header.series_description
    return replace(
        header,
        view=header.view or film.view,
        laterality=header.laterality or film.laterality,
        patient_id=film.patient,
        study_uid=film.study,
        modifiers=(*header.modifiers, CROP_OR_MASK) if is_part else header.modifiers,
        warnings=(*header.warnings, *warnings),
    )


def png_header(image: Image.Image, file: Path) -> ImageHeader:
    """Size and bits of an opened PNG; its `photometric` is Pillow's name for the kind of pixels."""
    return ImageHeader(
        file=file,
        view=None,
        laterality=None,
        rows=image.height,
        columns=image.width,
        bits_stored=16 if image.mode.startswith("I") else 8,
        photometric=image.mode,
        samples=len(image.getbands()),
        warnings=(_NO_TAGS,),
    )


def jpeg_header(frame: JpegFrame, file: Path) -> ImageHeader:
    """Size and bits of a JPEG; its `photometric` is "L", "RGB" or "CMYK", as Pillow names kinds of pixels."""
    not_turned = (
        f"EXIF orientation {frame.orientation} is ignored: the image and its boxes are as stored, not turned",
    )
    return ImageHeader(
        file=file,
        view=None,
        laterality=None,
        rows=frame.rows,
        columns=frame.columns,
        bits_stored=frame.bits,
        photometric={1: "L", 3: "RGB", 4: "CMYK"}.get(frame.samples, "unknown"),
        samples=frame.samples,
        warnings=(_NO_TAGS, *(not_turned if frame.orientation != 1 else ())),
    )


def nifti_header(image: Any, file: Path) -> ImageHeader:
    """Size and bits of a NIfTI opened by nibabel, with axes (column, row); further axes count as frames."""
    columns, rows, *others = (*image.shape, 1, 1) if len(image.shape) < 2 else image.shape
    kind = image.get_data_dtype()
    return ImageHeader(
        file=file,
        view=None,
        laterality=None,
        rows=rows,
        columns=columns,
        bits_stored=8 * kind.itemsize,
        photometric=str(kind),
        samples=len(kind.names or (0,)),
        frames=math.prod(others),
        warnings=(_NO_TAGS,),
    )


def spacing_of(dataset: Dataset) -> tuple[float, float] | None:
    """Millimetres between neighbouring rows and columns, at the detector where known; None without."""
    for keyword in ("ImagerPixelSpacing", "PixelSpacing"):
        numbers = numbers_of(dataset, keyword)
        if len(numbers) == 2 and min(numbers) > 0:
            return numbers[0], numbers[1]
    return None
