"""DDSM's lossless JPEG comes back bit by bit."""

from pathlib import Path

import numpy as np
import pytest
from sof3 import encode, film

from clnet.converters.datasets.ddsm_ljpeg import PREDICTORS, decode_ljpeg
from clnet.data.image_errors import DamagedImageError, ImageTooLargeError, UnsupportedPixelsError

FILE = Path("B_3024_1.LEFT_CC.LJPEG")


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("bits", [12, 16])
def test_every_predictor_is_decoded_exactly(bits, predictor):
    pixels = film(23, 31, bits)
    stream = encode(pixels, bits, predictor, as_pvrg=True)
    decoded = decode_ljpeg(stream, FILE)
    np.testing.assert_array_equal(decoded, pixels)
    assert decoded.dtype == np.uint16


def test_the_encoder_of_ddsm_and_the_standard_really_differ_in_the_first_row():
    pixels = film(5, 40, 12)
    differing = {p for p in PREDICTORS if encode(pixels, 12, p, True) != encode(pixels, 12, p, False)}
    assert differing == {2, 3, 6, 7}


@pytest.mark.parametrize("predictor", [1, 7])
def test_values_that_fill_all_16_bits_are_decoded_exactly(predictor):
    pixels = np.random.default_rng(5).integers(0, 2**16, (9, 14)).astype(np.uint16)
    pixels[0] = np.linspace(60000, 65535, 14)
    np.testing.assert_array_equal(decode_ljpeg(encode(pixels, 16, predictor, True), FILE), pixels)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_images_of_a_row_or_a_column_are_decoded(size):
    pixels = film(*size, 12)
    np.testing.assert_array_equal(decode_ljpeg(encode(pixels, 12, 7, True), FILE), pixels)


def test_rows_and_columns_that_the_header_swaps_keep_the_order_of_the_pixels():
    pixels = film(12, 8, 12)
    decoded = decode_ljpeg(encode(pixels, 12, 1, True, size=(8, 12)), FILE)
    assert decoded.shape == (8, 12)
    np.testing.assert_array_equal(decoded.reshape(12, 8), pixels)


def test_a_truncated_stream_is_refused():
    with pytest.raises(DamagedImageError, match=r"LEFT_CC.LJPEG: .*no end marker \(FFD9\)"):
        decode_ljpeg(encode(film(20, 20, 12), 12)[:-60], FILE)


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8", b"\xff\xd8\xff", b"no jpeg at all, but long enough", b"\xff" * 99]
)
def test_what_is_no_lossless_jpeg_is_refused(data):
    with pytest.raises(DamagedImageError, match=r"not a lossless JPEG \(SOF3\)"):
        decode_ljpeg(data, FILE)


def test_absurd_sizes_are_refused_before_memory_is_spent():
    stream = encode(film(4, 4, 12), 12).replace(b"\x00\x04\x00\x04", b"\xff\xff\xff\xff")
    with pytest.raises(ImageTooLargeError, match="65535 × 65535"):
        decode_ljpeg(stream, FILE)


@pytest.mark.parametrize("predictor", [1, 7])
@pytest.mark.parametrize("size", [(4, 6), (2, 3), (65535, 65535)])
def test_a_stream_with_two_headers_is_refused_as_they_may_differ(predictor, size):
    stream = encode(film(4, 5, 12), 12, predictor)
    (first, _, rest) = stream.partition(b"\xff\xc3")
    header = encode(film(4, 5, 12), 12, size=(4, 5)).partition(b"\xff\xc3")[2][:11]
    other = header.replace(b"\x00\x04\x00\x05", b"".join(n.to_bytes(2, "big") for n in size))
    with pytest.raises(DamagedImageError, match=r"not a lossless JPEG \(SOF3\)"):
        decode_ljpeg(first + b"\xff\xc3" + other + b"\xff\xc3" + rest, FILE)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (4, 0), (0, 0)])
def test_a_stream_without_rows_or_columns_is_refused_at_once(rows, columns):
    stream = encode(film(4, 5, 12), 12, size=(4, 5)).replace(
        b"\x00\x04\x00\x05", bytes([0, rows, 0, columns])
    )
    with pytest.raises(DamagedImageError, match=f"header says {rows} × {columns}"):
        decode_ljpeg(stream, FILE)


@pytest.mark.parametrize("bits", [0, 1, 17, 65, 255])
@pytest.mark.parametrize("predictor", [1, 7])
def test_a_stream_of_impossible_bits_is_refused(bits, predictor):
    stream = bytearray(encode(film(4, 5, 12), 12, predictor))
    stream[stream.index(b"\xff\xc3") + 4] = bits
    with pytest.raises(DamagedImageError, match=f"header says {bits} bits"):
        decode_ljpeg(bytes(stream), FILE)


def test_a_point_transform_is_refused_where_it_could_be_misread():
    stream = bytearray(encode(film(4, 4, 12), 12, predictor=7))
    stream[stream.index(b"\xff\xda") + 9] = 2
    with pytest.raises(UnsupportedPixelsError, match="point transform 2"):
        decode_ljpeg(bytes(stream), FILE)
