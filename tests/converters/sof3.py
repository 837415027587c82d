"""A tiny encoder of lossless JPEG (T.81, process 14), written for tests from the standard's text.

Every category has a code of five bits, so the streams are long but simple. The encoder of DDSM, by the
Portable Video Research Group, departs from the standard in the first row: it keeps the chosen predictor and
takes half of the range for the row above, where the standard uses the left neighbour.
"""

import struct

import numpy as np

PREDICTORS = {
    1: lambda a, b, c: a,
    2: lambda a, b, c: b,
    3: lambda a, b, c: c,
    4: lambda a, b, c: a + b - c,
    5: lambda a, b, c: a + ((b - c) >> 1),
    6: lambda a, b, c: b + ((a - c) >> 1),
    7: lambda a, b, c: (a + b) >> 1,
}


def encode(pixels, bits=16, predictor=1, as_pvrg=False, size=None):
    """The bytes of `pixels` [rows, columns]; `size` is what the header claims, if it differs."""
    rows, columns = size or pixels.shape
    values = pixels.astype(int).reshape(rows, columns)
    code = "".join(_bits_of(d) for d in differences(values, bits, predictor, as_pvrg))
    code += "1" * (-len(code) % 8)
    scan = bytes(int(code[i : i + 8], 2) for i in range(0, len(code), 8)).replace(b"\xff", b"\xff\x00")
    table = bytes([0x00, 0, 0, 0, 0, 17, *[0] * 11, *range(17)])
    return b"".join(
        [
            b"\xff\xd8",
            _segment(0xC3, struct.pack(">BHHBBBB", bits, rows, columns, 1, 1, 0x11, 0)),
            _segment(0xC4, table),
            _segment(0xDA, bytes([1, 1, 0x00, predictor, 0, 0])),
            scan,
            b"\xff\xd9",
        ]
    )


def differences(values, bits, predictor, as_pvrg):
    half = 1 << (bits - 1)
    for y, row in enumerate(values.tolist()):
        above = values[y - 1].tolist() if y else [half] * len(row)
        for x, value in enumerate(row):
            if x == 0:
                prediction = above[0]
            elif y == 0 and not as_pvrg:
                prediction = row[x - 1]
            else:
                prediction = PREDICTORS[predictor](row[x - 1], above[x], above[x - 1])
            yield (value - prediction + 32767) % 65536 - 32767  # in -32767 to 32768


def film(rows, columns, bits, seed=0):
    """Similar to a film: a gradient with a little noise, far from the middle of the range."""
    y, x = np.mgrid[:rows, :columns]
    noise = np.random.default_rng(seed).integers(0, 9, (rows, columns))
    return ((0.6 + 0.3 * x / columns + 0.05 * y / rows) * 2**bits + noise).astype(np.uint16)


def _bits_of(difference):
    category = abs(difference).bit_length()
    code = format(category, "05b")
    if category in (0, 16):  # 32768 alone has 16 bits, and needs no more
        return code
    return code + format(difference if difference > 0 else difference + 2**category - 1, f"0{category}b")


def _segment(marker, content):
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content
