"""From files to grey values: decoding, the grey scale of DICOM, PNG, JPEG, NIfTI, and MONAI's view of it."""

import pickle
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest
from dicom_files import mammogram, ramp, save, texture
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.transforms import EnsureChannelFirstd, LoadImaged
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.uid import JPEG2000, JPEG2000Lossless, RLELossless

from clnet.data.header import read_header
from clnet.data.image_errors import ImageError
from clnet.data.monai_reader import MammogramReader
from clnet.data.pixels import to_grey
from clnet.data.reader import read_image

CODECS = Path(__file__).parent / "codecs"
FILM = Path(__file__).parent / "cbis-ddsm"


def lut(first, values, bits=12, explanation=None):
    """One LUT item; values as 16-bit words."""
    item = Dataset()
    item.add_new("LUTDescriptor", "US" if first >= 0 else "SS", [len(values), first, bits])
    item.add_new("LUTData", "OW", np.asarray(values, "<u2").tobytes())
    if explanation:
        item.LUTExplanation = explanation
    return item


def short_lut():
    """A LUT that holds fewer entries than it says."""
    item = lut(0, np.arange(4096))
    item.LUTData = item.LUTData[:100]
    return item


GREY_SCALES = {
    "nothing": {},
    "rescale": {"RescaleSlope": 2.5, "RescaleIntercept": -100},
    "window": {"WindowCenter": 1800, "WindowWidth": 1500},
    "first of two windows": {"WindowCenter": [1800, 100], "WindowWidth": [1500, 10]},
    "rescale and window": {
        "RescaleSlope": 0.5,
        "RescaleIntercept": 7,
        "WindowCenter": 900,
        "WindowWidth": 700,
    },
    "exact window": {"WindowCenter": 1800, "WindowWidth": 1500, "VOILUTFunction": "LINEAR_EXACT"},
    "sigmoid": {"WindowCenter": 1800, "WindowWidth": 1500, "VOILUTFunction": "SIGMOID"},
    "window of width 1": {"WindowCenter": 1800, "WindowWidth": 1},
    "VOI LUT": {"VOILUTSequence": [lut(1000, np.arange(2000) ** 2 // 1000)]},
    "VOI LUT before window": {
        "VOILUTSequence": [lut(0, np.arange(4096)[::-1])],
        "WindowCenter": 1800,
        "WindowWidth": 15,
    },
    "empty VOI LUT before window": {
        "VOILUTSequence": [Dataset()],
        "WindowCenter": 1800,
        "WindowWidth": 1500,
    },
    "modality LUT": {"ModalityLUTSequence": [lut(5, np.arange(4000) * 3, bits=16)]},
    "modality LUT and window": {
        "ModalityLUTSequence": [lut(5, np.arange(4000) * 3, bits=16)],
        "WindowCenter": 5000,
        "WindowWidth": 3000,
    },
}


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("tags", GREY_SCALES.values(), ids=GREY_SCALES)
def test_grey_values_are_those_of_pydicom(tmp_path, tags, photometric):
    path = save(
        tmp_path / "image.dcm", mammogram(ramp(70, 60), PhotometricInterpretation=photometric, **tags)
    )
    dataset = pydicom.dcmread(path)
    expected = apply_voi_lut(apply_modality_lut(dataset.pixel_array, dataset), dataset)
    if (
        photometric == "MONOCHROME1"
    ):  # the picture holds the whole range, so its extremes are those of the range
        expected = expected.max() + expected.min() - expected.astype(np.float64)
    image = read_image(path)
    assert image.pixels.dtype == np.float32
    np.testing.assert_array_equal(image.pixels, expected.astype(np.float32))


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("window", [{}, {"WindowCenter": 10, "WindowWidth": 300}])
def test_signed_pixels_keep_their_sign(tmp_path, window, photometric):
    stored = ramp(70, 60, -2048, 2047, np.int16)
    path = save(tmp_path / "i.dcm", mammogram(stored, PhotometricInterpretation=photometric, **window))
    expected = apply_voi_lut(stored, pydicom.dcmread(path)).astype(np.float64)
    if photometric == "MONOCHROME1":
        expected = expected.max() + expected.min() - expected
    np.testing.assert_array_equal(read_image(path).pixels, expected.astype(np.float32))


@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
def test_an_inverted_monochrome1_is_the_same_image_as_its_monochrome2(tmp_path, bits):
    top = 2**bits - 1
    stored = ramp(high=top // 2, dtype=np.uint8 if bits == 8 else np.uint16)
    white = save(tmp_path / "2.dcm", mammogram(stored, BitsStored=bits))
    black = save(
        tmp_path / "1.dcm",
        mammogram(stored.dtype.type(top) - stored, BitsStored=bits, PhotometricInterpretation="MONOCHROME1"),
    )
    np.testing.assert_array_equal(read_image(black).pixels, read_image(white).pixels)
    np.testing.assert_array_equal(read_image(white).pixels, stored)


@settings(max_examples=50)
@given(st.integers(1, 15), st.integers(0, 2**16 - 1), st.booleans())
def test_bits_beside_the_stored_ones_are_no_part_of_a_value(bits, word, signed):
    """By hand: the lowest `bits` of a 16-bit word, the highest of them being the sign if there is one."""
    value = word % 2**bits
    if signed and value >= 2 ** (bits - 1):
        value -= 2**bits
    stored = np.array([[word]], np.uint16)
    dataset = mammogram(stored, BitsStored=bits, PixelRepresentation=int(signed))
    pixels, _, _ = to_grey(stored.view(np.int16) if signed else stored, dataset, apply_voi=True)
    assert pixels[0, 0] == value


def test_values_in_the_high_bits_are_moved_down():
    stored = np.array([[0x1230, 0xFFFF]], np.uint16)
    pixels, _, _ = to_grey(stored, mammogram(stored, BitsStored=12, HighBit=15), apply_voi=True)
    assert pixels.tolist() == [[0x123, 0xFFF]]


def test_a_lut_of_8_bits_with_many_entries_does_not_wrap_around(tmp_path):
    values = np.arange(4096) // 16
    path = save(tmp_path / "i.dcm", VOILUTSequence=[lut(0, values, bits=8)])
    np.testing.assert_array_equal(read_image(path).pixels, ramp() // 16)


def test_a_modality_lut_of_12_bits_is_applied(tmp_path):
    path = save(tmp_path / "i.dcm", ModalityLUTSequence=[lut(0, np.arange(4096)[::-1], bits=12)])
    np.testing.assert_array_equal(read_image(path).pixels, 4095 - ramp())


def test_of_several_voi_luts_the_first_is_used_and_named(tmp_path):
    luts = [lut(0, np.arange(4096) // 2, explanation="NORMAL"), lut(0, np.arange(4096) // 4)]
    image = read_image(save(tmp_path / "i.dcm", VOILUTSequence=luts))
    np.testing.assert_array_equal(image.pixels, ramp() // 2)
    assert "VOI LUT NORMAL, the first of 2 applied" in image.steps


def test_padding_becomes_the_darkest_grey(tmp_path):
    stored = np.array([[0, 4095, 100, 3000]], np.uint16)
    inverted = {"PhotometricInterpretation": "MONOCHROME1", "pixels": stored}
    plain = read_image(save(tmp_path / "a.dcm", **inverted))
    assert plain.pixels.tolist() == [[4095, 0, 3995, 1095]]
    padded = read_image(save(tmp_path / "b.dcm", **inverted, PixelPaddingValue=0))
    assert padded.pixels.tolist() == [[0, 0, 3995, 1095]]
    assert "padding set to the darkest grey" in padded.steps
    ranged = save(tmp_path / "c.dcm", **inverted, PixelPaddingValue=0, PixelPaddingRangeLimit=100)
    assert read_image(ranged).pixels.tolist() == [[0, 0, 0, 1095]]


def test_the_steps_tell_the_whole_chain(tmp_path):
    tags = {"RescaleSlope": 1, "RescaleIntercept": 0, "WindowCenter": 2000, "WindowWidth": 4000}
    path = save(tmp_path / "i.dcm", PhotometricInterpretation="MONOCHROME1", **tags)
    assert read_image(path).steps == (
        "Explicit VR Little Endian decoded",
        "modality LUT: slope 1, intercept 0",
        "window 2000/4000 linear applied",
        "MONOCHROME1 inverted",
    )
    raw = read_image(path, apply_voi=False)
    assert "VOI not applied, by setting (the file offers window 2000/4000 linear)" in raw.steps
    np.testing.assert_array_equal(raw.pixels, 4095 - ramp())


@pytest.mark.parametrize(
    "tags",
    [
        {"WindowCenter": 2000, "WindowWidth": 0},
        {"WindowCenter": 2000, "WindowWidth": 100, "VOILUTFunction": "ODD"},
        {"VOILUTSequence": [short_lut()]},
    ],
)
def test_an_invalid_voi_is_passed_over_with_a_warning(tmp_path, tags):
    image = read_image(save(tmp_path / "i.dcm", **tags))
    np.testing.assert_array_equal(image.pixels, ramp())
    assert image.warnings[0].startswith("invalid VOI, not applied")


@pytest.mark.parametrize("syntax", [RLELossless, JPEG2000Lossless, JPEG2000], ids=lambda uid: uid.keyword)
@pytest.mark.parametrize("bits", [8, 12, 16])
def test_what_pydicom_compresses_is_read_back(tmp_path, syntax, bits):
    stored = texture(bits=8) if bits == 8 else texture() * (2 ** (bits - 12))
    dataset = mammogram(stored, BitsStored=bits)
    if syntax == JPEG2000:
        dataset.compress(syntax, j2k_psnr=[90])
    else:
        dataset.compress(syntax)
    image = read_image(save(tmp_path / "i.dcm", dataset))
    np.testing.assert_allclose(image.pixels, stored, atol=2**bits / 100 if syntax == JPEG2000 else 0)
    assert image.steps[0] == f"{syntax.name} decoded"


def test_compressed_signed_pixels_keep_their_sign(tmp_path):
    stored = ramp(64, 48, -2048, 2047, np.int16)
    for syntax in (RLELossless, JPEG2000Lossless):
        dataset = mammogram(stored)
        dataset.compress(syntax)
        np.testing.assert_array_equal(read_image(save(tmp_path / "i.dcm", dataset)).pixels, stored)


@pytest.mark.parametrize(
    ("name", "bits", "tolerance"),
    [
        ("jpeg_baseline_8bit", 8, 6),
        ("jpeg_extended_12bit", 12, 30),
        ("jpeg_lossless", 12, 0),
        ("jpeg_lossless_sv1", 12, 0),
        ("jpeg_ls_lossless", 12, 0),
        ("jpeg_ls_near_lossless", 12, 2),
    ],
)
def test_what_dcmtk_compressed_is_read(name, bits, tolerance):
    """The files come from another library than the decoders; lossless ones must be exact."""
    image = read_image(CODECS / f"{name}.dcm")
    np.testing.assert_allclose(image.pixels, texture(bits=bits), atol=tolerance)


def test_real_film_is_read():
    """Reduced copies of CBIS-DDSM: bright tissue on a dark background that is not zero everywhere."""
    for name in ("left_cc", "left_mlo", "right_cc", "right_mlo"):
        image = read_image(FILM / f"{name}.dcm")
        side, view = name.split("_")
        assert (image.header.view, image.header.laterality) == (view.upper(), side[0].upper())
        assert image.pixels.shape == (image.header.rows, image.header.columns)
        assert 0 <= image.pixels.min() < image.pixels.max() <= 65535
        assert image.warnings == ("no pixel spacing: sizes in millimetres are unknown",)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_grey_png_is_read_as_it_is(tmp_path, dtype):
    stored = ramp(high=np.iinfo(dtype).max, dtype=dtype)
    Image.fromarray(stored).save(tmp_path / "i.png")
    image = read_image(tmp_path / "i.png")
    np.testing.assert_array_equal(image.pixels, stored)
    assert image.header.bits_stored == 8 * np.dtype(dtype).itemsize
    assert (image.header.view, image.header.laterality, image.header.spacing_mm) == (None, None, None)


def film_of_8_bits():
    """A real film in the 8 bits of a JPEG."""
    return (read_image(FILM / "right_mlo.dcm").pixels / 257).round().astype(np.uint8)


@pytest.mark.parametrize("progressive", [False, True])
def test_a_grey_jpeg_of_a_real_film_is_read(tmp_path, progressive):
    """At quality 95, JPEG loses less than one grey value in the mean."""
    film = film_of_8_bits()
    Image.fromarray(film).save(tmp_path / "i.jpg", quality=95, progressive=progressive)
    image = read_image(tmp_path / "i.jpg")
    assert image.pixels.dtype == np.float32 and image.pixels.shape == film.shape
    assert np.abs(image.pixels - film).mean() < 1
    assert (image.header.rows, image.header.columns, image.header.bits_stored) == (*film.shape, 8)
    assert (image.header.view, image.header.laterality, image.header.spacing_mm) == (None, None, None)
    assert image.steps == ("JPEG of 8 bits decoded",)
    assert read_header(tmp_path / "i.jpg") == image.header


@pytest.mark.parametrize(
    ("name", "bits", "tolerance"),
    [("jpeg_extended_12bit", 12, 30), ("jpeg_lossless", 16, 0), ("jpeg_ls_lossless", 16, 0)],
)
def test_a_jpeg_file_of_more_than_8_bits_is_read(tmp_path, name, bits, tolerance):
    """The stream of a DICOM file, as a file of its own; dcmtk wrote it."""
    dataset = pydicom.dcmread(CODECS / f"{name}.dcm")
    (tmp_path / "i.jpg").write_bytes(pydicom.encaps.get_frame(dataset.PixelData, 0))
    image = read_image(tmp_path / "i.jpg")
    np.testing.assert_allclose(image.pixels, texture(), atol=tolerance)
    assert image.steps == (f"JPEG of {bits} bits decoded",)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_three_equal_channels_are_taken_as_grey_and_said_so(tmp_path, kind):
    path, grey = tmp_path / "i", tmp_path / "grey"
    film = Image.fromarray(film_of_8_bits())
    film.convert("RGB").save(path, kind)
    film.save(grey, kind)
    image = read_image(path)
    np.testing.assert_array_equal(image.pixels, read_image(grey).pixels)
    assert image.steps == (f"{kind} of 8 bits decoded", "three equal channels: one taken as grey")


def test_an_exif_orientation_turns_nothing_and_is_said(tmp_path):
    stored = ramp(20, 12, high=255, dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to show it
    Image.fromarray(stored).save(tmp_path / "i.jpg", quality=100, exif=exif)
    image = read_image(tmp_path / "i.jpg")
    np.testing.assert_allclose(image.pixels, stored, atol=4)
    assert [words for words in image.warnings if "EXIF" in words] == [
        "EXIF orientation 6 is ignored: the image and its boxes are as stored, not turned"
    ]
    for exif in (Image.Exif(), b"Exif\0\0 damaged"):
        Image.fromarray(stored).save(tmp_path / "upright.jpg", exif=exif)
        assert "EXIF" not in str(read_image(tmp_path / "upright.jpg").warnings)


@pytest.mark.parametrize("name", ["i.nii", "i.nii.gz"])
@pytest.mark.parametrize("trailing", [(), (1,), (1, 1)])
def test_nifti_is_column_first_and_read_rows_first(tmp_path, name, trailing):
    stored = ramp(20, 12)
    nibabel.save(nibabel.Nifti1Image(stored.T.reshape(12, 20, *trailing), np.eye(4)), tmp_path / name)
    image = read_image(tmp_path / name)
    np.testing.assert_array_equal(image.pixels, stored)
    assert image.pixels.flags.c_contiguous
    assert (image.header.rows, image.header.columns, image.header.view) == (20, 12, None)


@pytest.mark.filterwarnings("ignore:NvImgCodec")  # MONAI tries a decoder for GPUs first
def test_monai_loads_rows_first_with_what_was_done(tmp_path):
    path = save(tmp_path / "image", WindowCenter=2000, WindowWidth=4000)
    load = LoadImaged("cc", reader=MammogramReader(apply_voi=False))
    image = EnsureChannelFirstd("cc")(load({"cc": str(path)}))["cc"]
    assert image.shape == (1, 20, 12)
    np.testing.assert_array_equal(image[0].numpy(), ramp())
    assert image.meta["view"] == "CC" and image.meta["laterality"] == "L"
    assert "VOI not applied, by setting" in image.meta["steps"]
    assert "secret" not in str(image.meta).lower()


def test_the_monai_reader_knows_its_formats_by_content(tmp_path):
    path = save(tmp_path / "image.txt")
    Image.new("L", (12, 20)).save(tmp_path / "image", "JPEG")
    assert MammogramReader().verify_suffix(tmp_path / "image")
    (tmp_path / "note.dcm").write_text("not an image")
    assert MammogramReader().verify_suffix(path)
    assert not MammogramReader().verify_suffix([path, tmp_path / "note.dcm"])
    with pytest.raises(ImageError, match="2 files given as one image"):
        MammogramReader().read([path, path])


def test_errors_survive_the_way_between_processes(tmp_path):
    with pytest.raises(ImageError) as refusal:
        read_image(tmp_path / "missing.dcm")
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)  # noqa: S301
