"""JPEG files: what their first segments say, and their pixels.

Pillow decodes 8 bits, baseline and progressive. What it refuses (12 bits, lossless, JPEG-LS) is left to
libjpeg, which also decodes these inside DICOM.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.ExifTags import Base

from clnet.data.image_errors import CodecError, DamagedImageError

SIGNATURE = b"\xff\xd8\xff"
END = b"\xff\xd9"
STARTS_OF_FRAME = (*(m for m in range(0xC0, 0xD0) if m not in (0xC4, 0xC8, 0xCC)), 0xF7)  # F7: JPEG-LS
START_OF_SCAN, APPLICATION_1 = 0xDA, 0xE1
PILLOW_READS = (0xC0, 0xC1, 0xC2)  # baseline, extended and progressive, of 8 bits


@dataclass(frozen=True)
class JpegFrame:
    """What a JPEG says about itself.

    Attributes:
        rows, columns: its size; `rows` is 0 if it is only given after the first scan.
        bits: of a value.
        samples: values per pixel: 1 for grey, 3 for colour.
        process: the second byte of its start of frame marker, such as 0xC2 for progressive.
        orientation: how EXIF wants the image to be turned, 1 to 8; 1 is not at all.
    """

    rows: int
    columns: int
    bits: int
    samples: int
    process: int
    orientation: int = 1


def read_frame(stream: BinaryIO, file: Path) -> JpegFrame:
    """Read the beginning of an open JPEG file."""
    frame = find_frame(stream)
    if frame is None or not frame.rows or not frame.columns:
        raise DamagedImageError(
            f"{file}: a JPEG that does not give its size (start of frame): it is damaged or truncated. Fetch "
            "the file again from its source."
        )
    return frame


def find_frame(stream: BinaryIO) -> JpegFrame | None:
    """Read the segments of a JPEG up to its start of frame; None if there is none before the first scan."""
    orientation = 1
    stream.seek(2, 1)  # the start of image
    while len(start := stream.read(4)) == 4 and start[0] == 0xFF:
        marker = start[1]
        if marker == 0xFF:  # padding before a marker
            stream.seek(-3, 1)
            continue
        if marker == START_OF_SCAN:
            return None
        content = stream.read(max(0, int.from_bytes(start[2:], "big") - 2))
        if marker in STARTS_OF_FRAME:
            if len(content) < 6:
                return None
            rows, columns = (int.from_bytes(content[at : at + 2], "big") for at in (1, 3))
            return JpegFrame(rows, columns, content[0], content[5], marker, orientation)
        if marker == APPLICATION_1 and content.startswith(b"Exif\0\0"):
            orientation = _exif_orientation(content)
    return None


def _exif_orientation(content: bytes) -> int:
    exif = Image.Exif()
    try:
        exif.load(content)
        return int(exif.get(Base.Orientation, 1))
    except Exception:  # whatever Pillow says about damaged EXIF: the image itself may be whole
        return 1


def decode_jpeg(stream: BinaryIO, frame: JpegFrame, file: Path) -> NDArray[Any]:
    """The values [rows, columns] or [rows, columns, samples] as stored, turned by no EXIF orientation."""
    if frame.bits == 8 and frame.process in PILLOW_READS:
        with Image.open(stream) as image:
            return np.asarray(image)
    data = stream.read()
    check_end(data, file)
    try:
        from libjpeg.utils import decode  # its wheels are not there for every platform
    except ImportError as error:
        raise CodecError(
            f"{file}: a JPEG of {frame.bits} bits cannot be decoded, because pylibjpeg-libjpeg is not "
            "installed. Run: pip install pylibjpeg-libjpeg"
        ) from error
    return decode(data)


def check_end(data: bytes, file: Path) -> None:
    """Refuse a truncated stream: of half a stream libjpeg makes half an image without a word."""
    if END not in data[-32:]:  # a little padding and pydicom's delimiter may follow
        raise DamagedImageError(
            f"{file}: the compressed image has no end (marker FFD9): it is truncated. Fetch the file again "
            "from its source."
        )
