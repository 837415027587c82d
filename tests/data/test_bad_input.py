"""The table of bad input: for each kind, the exception or the warning it gives.

Whatever a file holds, `read_image` gives an image or an `ImageError`: no other exception, no warning of a
library, no patient in a message.
"""

import os
import random
import sys
import tracemalloc
from pathlib import Path

import nibabel
import numpy as np
import pydicom.pixels.decoders
import pytest
from dicom_files import mammogram, ramp, save, texture
from PIL import Image
from pydicom.uid import DeflatedExplicitVRLittleEndian, JPEG2000Lossless, RLELossless

from clnet.data import decode, deflated
from clnet.data.header import FOR_PROCESSING, TOMOSYNTHESIS, read_header
from clnet.data.image_errors import (
    CodecError,
    ColourImageError,
    DamagedImageError,
    ImageError,
    ImageTooLargeError,
    LateralityConflictError,
    MultiFrameError,
    NotAnImageError,
    UnsupportedPixelsError,
)
from clnet.data.reader import read_image, read_tags
from clnet.data.study import find_pairs
from clnet.preprocessing.breast import find_breast

CODECS = Path(__file__).parent / "codecs"


def dicom(**tags):
    return lambda path: save(path, **tags)


def compressed(syntax, **tags):
    def make(path):
        dataset = mammogram(texture())
        dataset.compress(syntax)
        for name, value in tags.items():
            setattr(dataset, name, value)
        return save(path, dataset)

    return make


def jpeg2000_that_claims(rows, columns):
    """One tile of 64 × 48 in an image said to be larger, in its own header and in the tags."""

    def make(path):
        dataset = mammogram(texture())
        dataset.compress(JPEG2000Lossless)
        size = dataset.PixelData.index(b"\xff\x4f\xff\x51") + 8  # SIZ: columns, rows
        claimed = columns.to_bytes(4, "big") + rows.to_bytes(4, "big")
        dataset.PixelData = dataset.PixelData[:size] + claimed + dataset.PixelData[size + 8 :]
        dataset.Rows, dataset.Columns = rows, columns
        return save(path, dataset)

    return make


def cut(make, length):
    def make_and_cut(path):
        path.write_bytes(make(path).read_bytes()[:length])

    return make_and_cut


def half_a_stream(path):
    """A well-formed DICOM around the first half of a JPEG-LS image; decoders return half an image of it."""
    dataset = pydicom.dcmread(CODECS / "jpeg_ls_lossless.dcm")
    stream = pydicom.encaps.get_frame(dataset.PixelData, 0)
    dataset.PixelData = pydicom.encaps.encapsulate([stream[: len(stream) // 2]])
    save(path, dataset)


def without_rows(path):
    """A JPEG that says 0 rows, which may be given after its scan; libjpeg searches for them for ever."""
    dataset = pydicom.dcmread(CODECS / "jpeg_lossless.dcm")
    stream = bytearray(pydicom.encaps.get_frame(dataset.PixelData, 0))
    at = stream.index(b"\xff\xc3") + 5
    stream[at : at + 2] = bytes(2)
    dataset.PixelData = pydicom.encaps.encapsulate([bytes(stream)])
    save(path, dataset)


def turned_stream(path):
    dataset = pydicom.dcmread(CODECS / "jpeg_lossless.dcm")
    dataset.Rows, dataset.Columns = dataset.Columns, dataset.Rows
    save(path, dataset)


def unknown_codec(path):
    dataset = mammogram(texture())
    dataset.compress(RLELossless)
    dataset.file_meta.TransferSyntaxUID = "1.2.840.10008.1.2.4.100"
    save(path, dataset)


def picture(kind, mode, size=(12, 20), colour=0):
    return lambda path: Image.new(mode, size, colour).save(path, format=kind) or path


def png(mode, **options):
    return picture("PNG", mode, **options)


def jpeg(mode, **options):
    return picture("JPEG", mode, **options)


def one_coloured_mark(kind):
    """A grey film on which somebody drew."""

    def make(path):
        image = Image.new("RGB", (120, 200), (90, 90, 90))
        image.paste((255, 0, 0), (40, 50, 60, 70))
        image.save(path, format=kind)

    return make


def jpeg_of_12_bits(path):
    dataset = pydicom.dcmread(CODECS / "jpeg_extended_12bit.dcm")
    path.write_bytes(pydicom.encaps.get_frame(dataset.PixelData, 0))
    return path


def jpeg_that_claims(rows, columns):
    """A JPEG whose start of frame lies about its size."""

    def make(path):
        data = bytearray(jpeg("L")(path).read_bytes())
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = rows.to_bytes(2, "big") + columns.to_bytes(2, "big")
        path.write_bytes(data)

    return make


def nifti(array):
    return lambda path: nibabel.save(nibabel.Nifti1Image(array, np.eye(4)), path)


REFUSED = {
    "conflicting laterality": (dicom(Laterality="R"), LateralityConflictError, "ImageLaterality is L"),
    "multi-frame": (dicom(NumberOfFrames=3), MultiFrameError, "NumberOfFrames is 3: a multi-frame image"),
    "tomosynthesis": (
        dicom(NumberOfFrames=60, SOPClassUID=TOMOSYNTHESIS),
        MultiFrameError,
        "NumberOfFrames is 60: a tomosynthesis stack",
    ),
    "colour": (
        dicom(SamplesPerPixel=3, PhotometricInterpretation="RGB"),
        ColourImageError,
        "SamplesPerPixel 3, RGB",
    ),
    "palette": (dicom(PhotometricInterpretation="PALETTE COLOR"), ColourImageError, "PALETTE COLOR"),
    "colour PNG": (png("RGB", colour=(9, 8, 7)), ColourImageError, "a PNG in colour"),
    "PNG with one coloured mark": (one_coloured_mark("PNG"), ColourImageError, "use the original image"),
    "PNG with transparency": (png("LA"), ColourImageError, "LA"),
    "PNG with a palette": (png("P"), ColourImageError, "P"),
    "PNG of one bit": (png("1"), UnsupportedPixelsError, "grey of 8 or 16 bits"),
    "truncated, uncompressed": (
        cut(dicom(), -100),
        DamagedImageError,
        "PixelData has 380 bytes, .* need 480",
    ),
    "truncated, compressed": (cut(compressed(RLELossless), -900), DamagedImageError, "PixelData is missing"),
    "truncated in the tags": (cut(dicom(), 700), NotAnImageError, "truncated"),
    "truncated stream": (half_a_stream, DamagedImageError, "no end .* truncated"),
    "truncated PNG": (
        cut(png("L", size=(500, 500)), 300),
        DamagedImageError,
        "damaged",
    ),
    "colour JPEG": (jpeg("RGB", colour=(90, 80, 70)), ColourImageError, "a JPEG in colour"),
    "JPEG with one coloured mark": (one_coloured_mark("JPEG"), ColourImageError, "use the original image"),
    "JPEG for print": (jpeg("CMYK"), ColourImageError, "CMYK"),
    "truncated JPEG": (cut(jpeg("L", size=(500, 500)), -20), DamagedImageError, "damaged or truncated"),
    "JPEG truncated in its header": (cut(jpeg("L"), 80), DamagedImageError, "does not give its size"),
    "truncated JPEG of 12 bits": (cut(jpeg_of_12_bits, -100), DamagedImageError, "no end .* truncated"),
    "huge JPEG": (jpeg_that_claims(65535, 65535), ImageTooLargeError, "65535 × 65535"),
    "JPEG without rows": (jpeg_that_claims(0, 12), DamagedImageError, "does not give its size"),
    "no pixel data": (dicom(PixelData=b""), DamagedImageError, "PixelData is missing"),
    "not a DICOM at all": (lambda path: path.write_text("hello"), NotAnImageError, "not a DICOM file"),
    "an empty file": (lambda path: path.write_bytes(b""), NotAnImageError, "not a DICOM file"),
    "no file": (lambda path: None, NotAnImageError, "no such file"),
    "a folder": (lambda path: path.mkdir(), NotAnImageError, "not a plain one"),
    "a pipe": (os.mkfifo, NotAnImageError, "not a plain one"),
    "no rows in the stream": (without_rows, DamagedImageError, "compressed image is 0 × 48, but Rows"),
    "unknown codec": (unknown_codec, CodecError, "TransferSyntaxUID 1.2.840.10008.1.2.4.100 .*MPEG2"),
    "fewer Rows than stored": (dicom(Rows=19), DamagedImageError, "PixelData has 480 bytes, .* need 456"),
    "more Rows than stored": (dicom(Rows=21), DamagedImageError, "PixelData has 480 bytes, .* need 504"),
    "fewer Rows, RLE": (compressed(RLELossless, Rows=60), DamagedImageError, "RLE .* 60 × 48"),
    "more Rows, RLE": (compressed(RLELossless, Rows=70), DamagedImageError, "RLE .* 70 × 48"),
    "fewer Rows, JPEG 2000": (
        compressed(JPEG2000Lossless, Rows=60),
        DamagedImageError,
        "the compressed image is 64 × 48, but Rows × Columns is 60 × 48",
    ),
    "JPEG 2000 without most of its tiles": (
        jpeg2000_that_claims(10000, 9999),
        DamagedImageError,
        f"the compressed image has 1 of its {157 * 209} tiles",  # 10000 / 64 by 9999 / 48
    ),
    "Rows and Columns exchanged, JPEG": (
        turned_stream,
        DamagedImageError,
        "the compressed image is 64 × 48, but Rows × Columns is 48 × 64",
    ),
    "huge dimensions": (dicom(Rows=65535, Columns=65535), ImageTooLargeError, "65535 × 65535"),
    "huge dimensions, compressed": (
        compressed(JPEG2000Lossless, Rows=65535, Columns=65535),
        ImageTooLargeError,
        "65535 × 65535",
    ),
    "no dimensions": (dicom(Rows=0), NotAnImageError, "Rows"),
    "32 bits": (dicom(BitsAllocated=32, BitsStored=32), UnsupportedPixelsError, "BitsAllocated 32"),
    "more bits stored than allocated": (dicom(BitsStored=20), DamagedImageError, "BitsStored is 20"),
    "a volume as NIfTI": (nifti(np.zeros((4, 5, 6), np.uint8)), MultiFrameError, "NumberOfFrames is 6"),
    "NIfTI that is not finite": (
        nifti(np.full((4, 5), np.nan, np.float32)),
        UnsupportedPixelsError,
        "finite",
    ),
}


@pytest.mark.parametrize(("make", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_by_name(tmp_path, recwarn, make, error, words):
    path = tmp_path / "image.nii"  # NIfTI needs the suffix; the other formats are known by their content
    make(path)
    recwarn.clear()
    with pytest.raises(error, match=words) as refusal:
        read_image(path)
    message = str(refusal.value)
    assert message.startswith(str(path)), "the message names the file"
    assert "secret" not in message.lower(), "the message does not name the patient"
    assert len(recwarn) == 0, "no warning of a library leaks"


def test_a_codec_that_is_not_installed_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(pydicom.pixels.decoders.JPEGLSLosslessDecoder, "_available", {})
    monkeypatch.setitem(sys.modules, "libjpeg", None)
    with pytest.raises(CodecError, match=r"JPEG-LS Lossless .* pip install pylibjpeg pylibjpeg-libjpeg"):
        read_image(CODECS / "jpeg_ls_lossless.dcm")


def test_size_is_checked_before_anything_is_decoded(tmp_path, monkeypatch):
    path = save(tmp_path / "image.dcm")
    monkeypatch.setattr(decode, "MAX_PIXELS", 20 * 12 - 1)
    monkeypatch.setattr(pydicom.Dataset, "pixel_array", property(lambda _: pytest.fail("decoded")))
    with pytest.raises(ImageTooLargeError):
        read_image(path)


WARNED = {
    "no spacing": ({"ImagerPixelSpacing": None}, "no pixel spacing"),
    "BurnedInAnnotation=YES": ({"BurnedInAnnotation": "YES"}, "BurnedInAnnotation is YES"),
    "FOR PROCESSING": ({"PresentationIntentType": "FOR PROCESSING"}, "FOR PROCESSING"),
    "FOR PROCESSING by class": ({"SOPClassUID": FOR_PROCESSING}, "FOR PROCESSING"),
    "implant": ({"BreastImplantPresent": "YES"}, "BreastImplantPresent is YES"),
    "invalid window": ({"WindowCenter": 10, "WindowWidth": 0}, "invalid VOI"),
}


@pytest.mark.parametrize(("tags", "warning"), WARNED.values(), ids=WARNED)
def test_what_can_be_read_is_read_with_a_warning(tmp_path, tags, warning):
    image = read_image(save(tmp_path / "image.dcm", **tags))
    np.testing.assert_array_equal(image.pixels, ramp())
    assert [text.startswith(warning) for text in image.warnings] == [True]


SILENT = {
    "MONOCHROME1": ({"PhotometricInterpretation": "MONOCHROME1"}, ramp(), 4095 - ramp()),
    "8 bit": ({}, ramp(high=255, dtype=np.uint8), ramp(high=255)),
    "12 bit": ({}, ramp(), ramp()),
    "16 bit": ({"BitsStored": 16}, ramp(high=65535), ramp(high=65535)),
    "signed": ({}, ramp(low=-2048, high=2047, dtype=np.int16), ramp(low=-2048, high=2047, dtype=np.int16)),
}


@pytest.mark.parametrize(("tags", "stored", "expected"), SILENT.values(), ids=SILENT)
def test_what_is_merely_unusual_is_read_without_a_word(tmp_path, tags, stored, expected):
    image = read_image(save(tmp_path / "image.dcm", mammogram(stored, **tags)))
    np.testing.assert_array_equal(image.pixels, expected)
    assert image.warnings == ()


CHOSEN = {  # name of the file: its tags; the pair; what is said of the others
    "FOR PROCESSING": (
        {"cc": {}, "raw": {"PresentationIntentType": "FOR PROCESSING"}},
        ("cc", None),
        {"raw": "FOR PROCESSING"},
    ),
    "two CCs": (
        {"a": {"SOPInstanceUID": "1.1"}, "b": {"SOPInstanceUID": "1.2"}, "mlo": {"ViewPosition": "MLO"}},
        ("a", "mlo"),
        {"b": "second CC of this breast, a is used"},
    ),
    "ML only": (
        {"cc": {}, "ml": {"ViewPosition": "ML"}},
        ("cc", None),
        {"ml": "the view is ML, not CC or MLO"},
    ),
    "conflicting laterality": (
        {"cc": {}, "mlo": {"ViewPosition": "MLO", "Laterality": "R"}},
        ("cc", None),
        {"mlo": "ImageLaterality is L but"},
    ),
}


@pytest.mark.parametrize(("files", "chosen", "left_out"), CHOSEN.values(), ids=CHOSEN)
def test_a_study_with_bad_input_gives_what_can_be_used(tmp_path, files, chosen, left_out):
    for name, tags in files.items():
        save(tmp_path / name, **tags)
    found = find_pairs(tmp_path)
    (pair,) = found.pairs
    assert tuple(view.file.name if view else None for view in (pair.cc, pair.mlo)) == chosen
    assert (pair.mlo is None) == any("no standard MLO view" in warning for warning in pair.warnings)
    assert [item.file.name for item in found.left_out] == list(left_out)
    assert all(left_out[item.file.name] in item.reason for item in found.left_out)


def test_cc_and_mlo_of_different_studies_make_no_pair(tmp_path):
    save(tmp_path / "cc", StudyInstanceUID="1.1")
    save(tmp_path / "mlo", StudyInstanceUID="1.2", ViewPosition="MLO")
    assert [(pair.cc is None, pair.mlo is None) for pair in find_pairs(tmp_path).pairs] == [
        (False, True),
        (True, False),
    ]


def drawn_breast(background=0, label=None, implant=False):
    """A half disc of tissue at the left edge of 400 × 300 pixels, 150 deep, of 12 bits."""
    y, x = np.mgrid[:400, :300]
    inside = np.hypot(y - 200, x) < 150
    image = np.where(inside, 1500 + 4 * (150 - x), background)
    if label is not None:
        image[label] = 3800
    if implant:
        image[np.hypot(y - 200, x) < 90] = 3900
    return image.astype(np.uint16)


def breast_in(tmp_path, stored, **tags):
    image = read_image(save(tmp_path / "image.dcm", mammogram(stored, **tags)))
    return find_breast(image.pixels, image.header.laterality)


@pytest.mark.parametrize(
    "stored",
    [
        drawn_breast(background=300),
        drawn_breast(label=np.s_[60:75, 110:140]),
        drawn_breast(implant=True),
    ],
    ids=["non-zero background", "label touching the breast", "implant"],
)
def test_the_breast_is_found_whole_and_alone(tmp_path, stored):
    x_min, y_min, x_max, y_max = breast_in(tmp_path, stored).box
    assert x_min <= 2 and y_min <= 52 and x_max >= 148 and y_max >= 348
    assert x_max <= 180 and y_min >= 25 and y_max <= 375


def test_an_inverted_image_has_its_breast_at_the_same_place(tmp_path):
    stored = drawn_breast()
    upright = breast_in(tmp_path, stored)
    assert breast_in(tmp_path, 4095 - stored, PhotometricInterpretation="MONOCHROME1") == upright


def test_an_all_black_image_is_read_and_said_to_show_no_breast(tmp_path):
    found = breast_in(tmp_path, np.zeros((400, 300), np.uint16))
    assert found.box == (0, 0, 300, 400)
    assert "no breast found" in found.warnings[0]


@pytest.mark.parametrize(
    "name",
    ["plain", "rle", "jpeg2000", "jpeg file", "12-bit file", *sorted(p.stem for p in CODECS.glob("*.dcm"))],
)
def test_files_cut_or_overwritten_anywhere_give_an_image_or_an_image_error(tmp_path, recwarn, name):
    path = tmp_path / "image.dcm"
    makers = {
        "plain": dicom(),
        "rle": compressed(RLELossless),
        "jpeg2000": compressed(JPEG2000Lossless),
        "jpeg file": jpeg("L"),
        "12-bit file": jpeg_of_12_bits,
    }
    whole = makers[name](path).read_bytes() if name in makers else (CODECS / f"{name}.dcm").read_bytes()
    recwarn.clear()
    source = random.Random(name)
    for _ in range(40):
        broken = bytearray(whole)
        at = source.randrange(132, len(whole))
        if source.random() < 0.5:
            del broken[at:]
        else:
            broken[at : at + 4] = source.randbytes(4)
        path.write_bytes(broken)
        try:
            image = read_image(path)
        except ImageError as error:
            assert "secret" not in str(error).lower()
        else:
            assert image.pixels.shape == (image.header.rows, image.header.columns)
    assert len(recwarn) == 0


def deflated_bomb(path, inflated):
    """A valid deflated file whose private tag inflates to so many bytes of zeros."""
    dataset = mammogram(ramp())
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    block = dataset.private_block(0x0011, "clnet test", create=True)
    block.add_new(0x01, "OB", bytes(inflated))
    return save(path, dataset)


@pytest.mark.parametrize("read", [read_image, read_header, read_tags])
def test_a_deflated_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch, read):
    monkeypatch.setattr(deflated, "MOST_INFLATED", 64 * 2**20)
    bomb = deflated_bomb(tmp_path / "bomb.dcm", 400 * 2**20)
    assert bomb.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(ImageTooLargeError, match=r"bomb\.dcm: its deflated content is more than 64 MB"):
        read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 * 2**20


def test_a_deflated_mammogram_is_read(tmp_path):
    assert read_image(deflated_bomb(tmp_path / "image.dcm", 100)).pixels.shape == ramp().shape


def test_a_file_for_which_memory_is_too_small_is_refused(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(deflated.pydicom, "dcmread", full)
    with pytest.raises(ImageTooLargeError, match=r"image\.dcm: takes more memory than there is"):
        read_image(save(tmp_path / "image.dcm"))
