"""From a DICOM data set to its stored values, or to a clear refusal.

Decoders trust what they are given: they allocate what a file asks for, return half an image for half a
stream, and reshape a 48 × 64 image to 64 × 48. So tags and pixel data are compared before.
"""

import struct
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from numpy.typing import NDArray
from pydicom.dataset import Dataset

from clnet.data.header import TOMOSYNTHESIS, ImageHeader
from clnet.data.image_errors import (
    CodecError,
    ColourImageError,
    DamagedImageError,
    ImageTooLargeError,
    MultiFrameError,
    UnsupportedPixelsError,
)
from clnet.data.jpeg import SIGNATURE, check_end, find_frame
from clnet.data.tags import code_of

START_OF_TILE = b"\xff\x90"
MAX_PIXELS = 100_000_000  # the largest film scans have about 40 million

_JPEG = "1.2.840.10008.1.2.4."
# Transfer syntaxes that are read, and who decodes them: the package on PyPI and the module in it.
_RLE, _LIBJPEG, _OPENJPEG = (
    ("pylibjpeg-rle", "rle"),
    ("pylibjpeg-libjpeg", "libjpeg"),
    ("pylibjpeg-openjpeg", "openjpeg"),
)
DECODERS: dict[str, tuple[str, str]] = {
    "1.2.840.10008.1.2.5": _RLE,
    **{_JPEG + end: _LIBJPEG for end in ("50", "51", "57", "70", "80", "81")},  # JPEG, JPEG-LS
    **{_JPEG + end: _OPENJPEG for end in ("90", "91", "201", "202", "203")},  # JPEG 2000, HTJ2K
}
UNCOMPRESSED = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.2")


def check_size(header: ImageHeader) -> None:
    """Refuse, before anything is allocated, what is too large, has several frames or is in colour."""
    if header.rows * header.columns > MAX_PIXELS:
        raise ImageTooLargeError(
            f"{header.file}: Rows × Columns is {_size(header)}, more than {MAX_PIXELS:,} pixels; no "
            "mammogram is that large. Check the file, or raise clnet.data.decode.MAX_PIXELS."
        )
    if header.frames > 1:
        kind = "a tomosynthesis stack" if header.sop_class_uid == TOMOSYNTHESIS else "a multi-frame image"
        raise MultiFrameError(
            f"{header.file}: NumberOfFrames is {header.frames}: {kind}, where one image is expected. Use the "
            "full-field or synthetic 2D image of the same view."
        )
    if header.samples > 1 or header.photometric in ("PALETTE COLOR", "P"):  # "P": palette of a PNG
        raise ColourImageError(
            f"{header.file}: colour pixels (SamplesPerPixel {header.samples}, {header.photometric}), where "
            "grey values are expected. It may be a screenshot; use the original image."
        )


def decode(dataset: Dataset, header: ImageHeader) -> NDArray[Any]:
    """The stored values [rows, columns], integers of 8 or 16 bits."""
    check_size(header)
    _check_pixel_data(dataset, header)
    syntax = dataset.file_meta.TransferSyntaxUID
    try:
        return dataset.pixel_array
    except BaseException as error:
        # pylibjpeg-rle panics in Rust where Rows × Columns are too few; a panic is no `Exception` in Python.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        package, module = DECODERS.get(syntax, ("", ""))
        if module and not (find_spec("pylibjpeg") and find_spec(module)):
            raise CodecError(
                f"{header.file}: (0002,0010) TransferSyntaxUID {_syntax(dataset)} cannot be decoded, "
                f"because {package} is not installed. Run: pip install pylibjpeg {package}"
            ) from error
        raise DamagedImageError(
            f"{header.file}: {_syntax(dataset)} does not decode to Rows × Columns {_size(header)}: the file "
            "is damaged or truncated, or these tags are wrong. Fetch it again from its source."
        ) from error


def _check_pixel_data(dataset: Dataset, header: ImageHeader) -> None:
    """Refuse what is missing, not grey, in an unknown form, or not of the size that the tags say."""
    data = dataset.get("PixelData")
    if not data:
        raise DamagedImageError(
            f"{header.file}: (7FE0,0010) PixelData is missing: the file is truncated, or was stored without "
            "pixels. Fetch it again from its source."
        )
    bits = int(dataset.BitsAllocated)
    if header.photometric not in ("MONOCHROME1", "MONOCHROME2") or bits not in (8, 16):
        raise UnsupportedPixelsError(
            f"{header.file}: PhotometricInterpretation {header.photometric} with BitsAllocated {bits}; "
            "MONOCHROME1 or MONOCHROME2 with 8 or 16 is expected. Convert it."
        )
    if not 1 <= header.bits_stored <= bits:
        raise DamagedImageError(
            f"{header.file}: (0028,0101) BitsStored is {header.bits_stored}; 1 to BitsAllocated, {bits}, is "
            "expected. Correct the tag."
        )
    syntax = dataset.file_meta.TransferSyntaxUID
    if syntax in UNCOMPRESSED:
        _check_length(len(data), bits // 8, header)
    elif syntax not in DECODERS:
        raise CodecError(
            f"{header.file}: (0002,0010) TransferSyntaxUID {_syntax(dataset)} is not read here. Convert it, "
            "for instance with dcmdjpeg or gdcmconv, to an uncompressed file."
        )
    elif DECODERS[syntax] != _RLE:  # RLE has no header of its own to compare with
        _check_stream(bytes(data), header)


def _check_length(length: int, bytes_per_pixel: int, header: ImageHeader) -> None:
    """Uncompressed data must be as long as the tags say; a byte, or less than a row, too much is padding."""
    row = header.columns * bytes_per_pixel
    excess = length - header.rows * row
    if not 0 <= excess < max(row, 2):
        raise DamagedImageError(
            f"{header.file}: (7FE0,0010) PixelData has {length} bytes, but Rows × Columns {_size(header)} "
            f"need {header.rows * row}: the file is truncated, or these tags are wrong. Fetch it again from "
            "its source."
        )


def _check_stream(data: bytes, header: ImageHeader) -> None:
    """A compressed stream must be whole and of the size that the tags say."""
    size = stream_size(data)
    # Where the stream says 0 rows, libjpeg looks for ever for the marker that may give them after the scan.
    if size is not None and size != (header.rows, header.columns):
        raise DamagedImageError(
            f"{header.file}: the compressed image is {size[0]} × {size[1]}, but Rows × Columns is "
            f"{_size(header)}. Correct the tags, or fetch the file again from its source."
        )
    check_end(data, header.file)
    tiles = jpeg2000_tiles(data)
    if tiles is not None and tiles[0] < tiles[1]:
        raise DamagedImageError(
            f"{header.file}: the compressed image has {tiles[0]} of its {tiles[1]} tiles: it is truncated, "
            "or its header is wrong. Fetch the file again from its source."
        )


def jpeg2000_tiles(data: bytes) -> tuple[int, int] | None:
    """How many different tiles a JPEG 2000 stream has, and how many it should have; None for others.

    Of missing tiles OpenJPEG makes black ones without a word. See ITU-T T.800, A.4.2 and A.5.1.
    """
    siz = data.find(b"\xff\x4f\xff\x51", 0, 4096)
    first = data.find(START_OF_TILE, siz)
    if siz < 0 or len(data) < siz + 40:
        return None
    extent_x, extent_y, _, _, tile_x, tile_y, start_x, start_y = struct.unpack_from(">8I", data, siz + 8)
    if not tile_x or not tile_y:
        return 0, 1
    expected = -((start_x - extent_x) // tile_x) * -((start_y - extent_y) // tile_y)
    found: set[int] = set()
    while 0 <= first <= len(data) - 12 and data.startswith(START_OF_TILE, first):
        tile, length = struct.unpack_from(">HI", data, first + 4)
        found.add(tile)
        if length == 0:  # up to the end
            break
        first += length
    return len(found), expected


def stream_size(data: bytes) -> tuple[int, int] | None:
    """(rows, columns) by the own header of an encapsulated JPEG, JPEG-LS or JPEG 2000; None if unknown."""

    def number(at: int, length: int) -> int:
        return int.from_bytes(data[at : at + length], "big")

    siz = data.find(b"\xff\x4f\xff\x51", 0, 4096)  # JPEG 2000: SOC, then SIZ with extent minus offset
    if siz >= 0:
        extent_x, extent_y, offset_x, offset_y = (number(siz + at, 4) for at in (8, 12, 16, 20))
        return extent_y - offset_y, extent_x - offset_x
    stream = BytesIO(data)
    stream.seek(max(0, data.find(SIGNATURE, 0, 4096)))
    frame = find_frame(stream)
    return (frame.rows, frame.columns) if frame else None


def _size(header: ImageHeader) -> str:
    return f"{header.rows} × {header.columns}"


def _syntax(dataset: Dataset) -> str:
    syntax, code = dataset.file_meta.TransferSyntaxUID, code_of(dataset.file_meta, "TransferSyntaxUID")
    return f"{code} ({syntax.name})" if syntax.name != syntax else code
