"""Deflated DICOM files: small ones may inflate to more than memory holds, so the size is known beforehand."""

import zlib
from pathlib import Path
from typing import Any, BinaryIO

import pydicom
from pydicom.dataset import Dataset
from pydicom.filereader import read_dataset, read_preamble
from pydicom.uid import DeflatedExplicitVRLittleEndian

from clnet.data.image_errors import ImageTooLargeError

MOST_INFLATED = 512 * 2**20
"""Bytes; ten times the largest mammogram."""
PIECE = 2**20


def read_tags_of(stream: BinaryIO, file: Path, **options: Any) -> Dataset:
    """`pydicom.dcmread` of an open file; a deflated one is refused if it inflates to too much."""
    _check_inflated_size(stream, file)
    stream.seek(0)
    return pydicom.dcmread(stream, **options)


def _check_inflated_size(stream: BinaryIO, file: Path) -> None:
    stream.seek(0)
    read_preamble(stream, force=False)
    meta = read_dataset(
        stream, is_implicit_VR=False, is_little_endian=True, stop_when=lambda tag, _vr, _size: tag.group != 2
    )
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    inflater, inflated = zlib.decompressobj(-zlib.MAX_WBITS), 0
    while piece := inflater.unconsumed_tail or stream.read(PIECE):
        inflated += len(inflater.decompress(piece, PIECE))
        if inflated > MOST_INFLATED:
            raise ImageTooLargeError(
                f"{file}: its deflated content is more than {MOST_INFLATED // 2**20} MB, ten times the "
                "largest mammogram. Store it uncompressed if it is an image after all."
            )
