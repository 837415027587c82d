"""The `.LJPEG` files of DDSM: lossless JPEG (T.81, SOF3) as the Portable Video Research Group wrote it.

Its encoder departs from the standard in the first row: it keeps the chosen predictor there and takes half of
the range for the row above, where the standard uses the left neighbour. With predictors 1, 4 and 5 the result
is the same. With the others, a standard decoder draws a gradient across the image, so the differences are
taken from the stream and the values are rebuilt from them here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from libjpeg.utils import decode
from numpy.typing import NDArray

from clnet.data.decode import MAX_PIXELS
from clnet.data.image_errors import DamagedImageError, ImageTooLargeError, UnsupportedPixelsError

Predictor = Callable[[Any, Any, Any], Any]

# T.81, table H.1, with the neighbours a (left), b (above) and c (above left).
PREDICTORS: dict[int, Predictor] = {
    1: lambda a, b, c: a,
    2: lambda a, b, c: b,
    3: lambda a, b, c: c,
    4: lambda a, b, c: a + b - c,
    5: lambda a, b, c: a + ((b - c) >> 1),
    6: lambda a, b, c: b + ((a - c) >> 1),
    7: lambda a, b, c: (a + b) >> 1,
}
FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # T.81, table B.1: markers that begin a header
LIKE_STANDARD = (1, 4, 5)  # these predict a if b equals c, as in the first row


@dataclass(frozen=True)
class _Stream:
    """What the markers say, and the positions of two of their bytes."""

    rows: int
    columns: int
    bits: int
    predictor: int
    point_transform: int
    restarts: int
    at_bits: int
    at_predictor: int


def decode_ljpeg(data: bytes, file: Path) -> NDArray[np.uint16]:
    """The values [rows, columns] of a lossless JPEG with one component; `file` is named in errors.

    Rows and columns are those of the stream, which some files of DDSM have swapped.
    """
    stream = _parse(data, file)
    if not stream.rows or not stream.columns:  # libjpeg would look for ever for the rows
        raise DamagedImageError(
            f"{file}: its header says {stream.rows} × {stream.columns}: it is damaged. Download it again."
        )
    if not 2 <= stream.bits <= 16:
        raise DamagedImageError(
            f"{file}: its header says {stream.bits} bits; lossless JPEG has 2 to 16. Download it again."
        )
    if stream.rows * stream.columns > MAX_PIXELS:
        raise ImageTooLargeError(
            f"{file}: its header says {stream.rows} × {stream.columns}, more than {MAX_PIXELS:,} pixels; no "
            "film is that large. Download it again."
        )
    if b"\xff\xd9" not in data[-32:]:
        raise DamagedImageError(
            f"{file}: the compressed image has no end marker (FFD9): it is truncated. Download it again."
        )
    if stream.predictor in LIKE_STANDARD:
        return _decode_standard(data, stream, file)
    if stream.point_transform or stream.restarts:
        raise UnsupportedPixelsError(
            f"{file}: lossless JPEG with predictor {stream.predictor}, point transform "
            f"{stream.point_transform} and restart interval {stream.restarts}; expected 0 for both."
        )
    return _rebuild(_differences(data, stream, file), stream)


def _parse(data: bytes, file: Path) -> _Stream:
    def number(at: int) -> int:
        return int.from_bytes(data[at : at + 2], "big")

    frame: tuple[int, int, int, int] | None = None
    restarts, at = 0, 2
    while data.startswith(b"\xff\xd8") and at + 10 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in FRAMES:
            if frame or marker != 0xC3 or data[at + 9] != 1:  # libjpeg would go by the first of two
                break
            frame = (data[at + 4], number(at + 5), number(at + 7), at + 4)
        elif marker == 0xDD:
            restarts = number(at + 4)
        elif marker == 0xDA and frame and data[at + 4] == 1 and data[at + 7] in PREDICTORS:
            bits, rows, columns, at_bits = frame
            transform = data[at + 9] & 15
            return _Stream(rows, columns, bits, data[at + 7], transform, restarts, at_bits, at + 7)
        elif marker == 0xDA:
            break
        at += 2 + number(at + 2)
    raise DamagedImageError(
        f"{file}: not a lossless JPEG (SOF3) with one component, as the .LJPEG files of DDSM are. "
        "Download it again."
    )


def _decode_standard(data: bytes, stream: _Stream, file: Path) -> NDArray[np.uint16]:
    try:
        values = decode(data)
    except (RuntimeError, ValueError) as error:
        raise DamagedImageError(
            f"{file}: does not decode ({error}): it is damaged. Download it again."
        ) from error
    if values.size != stream.rows * stream.columns:
        raise DamagedImageError(
            f"{file}: decodes to {values.size} values, but its header says {stream.rows} × {stream.columns}: "
            "it is damaged. Download it again."
        )
    return values.reshape(stream.rows, stream.columns).astype(np.uint16)


def _differences(data: bytes, stream: _Stream, file: Path) -> NDArray[np.int64]:
    """The differences in the stream, modulo 2¹⁶.

    Decoded as 16 bits with predictor 1, each value is the sum of the differences to its left and nothing is
    clipped, so subtracting neighbours recovers the differences.
    """
    changed = bytearray(data)
    changed[stream.at_bits], changed[stream.at_predictor] = 16, 1
    sums = _decode_standard(bytes(changed), stream, file).astype(np.int64)
    differences = np.empty_like(sums)
    differences[0, 0] = sums[0, 0] - 2**15
    differences[1:, 0] = np.diff(sums[:, 0])
    differences[:, 1:] = np.diff(sums, axis=1)
    return differences


def _rebuild(differences: NDArray[np.int64], stream: _Stream) -> NDArray[np.uint16]:
    predict, half = PREDICTORS[stream.predictor], 1 << (stream.bits - 1)
    rows, columns = differences.shape
    values = differences.copy()
    values[:, 0] = (half + np.cumsum(differences[:, 0])) & 0xFFFF
    for column in range(1, columns):
        predicted = predict(int(values[0, column - 1]), half, half)
        values[0, column] = (differences[0, column] + predicted) & 0xFFFF
    if columns > 1:
        # A value needs its left and upper neighbours, so the values of a diagonal are computed together.
        flat = values.reshape(-1)
        for diagonal in range(2, rows + columns - 1):
            top, bottom = max(1, diagonal - columns + 1), min(rows - 1, diagonal - 1)
            here = np.arange(top, bottom + 1) * (columns - 1) + diagonal
            predicted = predict(flat[here - 1], flat[here - columns], flat[here - columns - 1])
            flat[here] = (flat[here] + predicted) & 0xFFFF
    return values.astype(np.uint16)
