"""What the tags of a file say about its view, its breast and its pixels."""

import numpy as np
import pytest
from dicom_files import STUDY, code, mammogram, save
from pydicom.dataset import Dataset
from pydicom.sr import codes

from clnet.data.header import read_header
from clnet.data.image_errors import CodecError, DamagedImageError, LateralityConflictError, NotAnImageError
from clnet.data.reader import read_image
from clnet.data.views import MODIFIER_CODES, VIEW_CODES


def header(tmp_path, **tags):
    return read_header(save(tmp_path / "image", **tags))


def view_code(value, *modifiers, scheme="SCT"):
    item = code(value, scheme)
    item.ViewModifierCodeSequence = list(modifiers)
    return [item]


def test_a_plain_mammogram_says_all_about_itself(tmp_path):
    found = header(tmp_path, WindowCenter=2000, WindowWidth=4000, SOPInstanceUID="1.2.3")
    assert (found.view, found.laterality, found.modality) == ("CC", "L", "MG")
    assert (found.rows, found.columns, found.bits_stored, found.photometric) == (20, 12, 12, "MONOCHROME2")
    assert (found.study_uid, found.sop_instance_uid, found.patient_id) == (STUDY, "1.2.3", "secret-id")
    assert found.spacing_mm == (0.07, 0.07)
    assert found.voi == "window 2000/4000 linear"
    assert found.warnings == () and found.modifiers == () and not found.synthetic


def test_the_patient_does_not_show_when_a_header_is_printed(tmp_path):
    assert "secret" not in repr(header(tmp_path)).lower()


@pytest.mark.parametrize(
    ("text", "view", "modifiers"),
    [
        ("CC", "CC", ()),
        (" mlo", "MLO", ()),
        ("ML", "ML", ()),
        ("LM", "LM", ()),
        ("LMO", "LMO", ()),
        ("XCCL", "XCCL", ()),
        ("SIO", "SIO", ()),
        ("CC SPOT", "CC", ("spot compression",)),
        ("MAG-MLO", "MLO", ("magnification",)),
        ("MMLO", "MLO", ("magnification",)),
        ("SCC", "CC", ("spot compression",)),
        ("CCID", "CC", ("implant displaced",)),
        ("MLO RL", "MLO", ("rolled",)),
        ("CC ODD", "CC ODD", ()),
    ],
)
def test_view_position_is_taken_apart(tmp_path, text, view, modifiers):
    found = header(tmp_path, ViewPosition=text)
    assert (found.view, found.modifiers) == (view, modifiers)


def test_without_view_position_the_view_code_counts(tmp_path):
    assert header(tmp_path, ViewPosition=None, ViewCodeSequence=view_code("399368009")).view == "MLO"
    assert header(tmp_path, ViewPosition="", ViewCodeSequence=view_code("R-10242", scheme="SRT")).view == "CC"


def test_without_both_cbis_ddsm_has_the_view_in_patient_orientation(tmp_path):
    assert header(tmp_path, ViewPosition=None, PatientOrientation="MLO").view == "MLO"
    assert header(tmp_path, ViewPosition=None, PatientOrientation=["P", "L"]).view is None


def test_view_position_wins_over_the_view_code_with_a_warning(tmp_path):
    found = header(tmp_path, ViewPosition="CC", ViewCodeSequence=view_code("399368009"))
    assert found.view == "CC"
    assert found.warnings == ("ViewPosition says CC, ViewCodeSequence says MLO: ViewPosition is used",)


def test_the_tables_of_codes_hold_every_code_of_the_standard():
    """Context groups 4014 and 4015 as pydicom knows them."""
    views, modifiers = (
        {getattr(group, name).meaning.lower(): getattr(group, name).value for name in group.dir()}
        for group in (codes.cid4014, codes.cid4015)
    )
    assert set(views.values()) == {value for value in VIEW_CODES if value.isdigit()}
    assert {name: MODIFIER_CODES[value] for name, value in modifiers.items()} == {
        name: name for name in modifiers
    }
    assert len(modifiers) == len([value for value in MODIFIER_CODES if value.isdigit()])
    assert VIEW_CODES[views["cranio-caudal"]] == "CC"
    assert VIEW_CODES[views["medio-lateral oblique"]] == "MLO"
    assert VIEW_CODES[views["medial-lateral"]] == "ML"


@pytest.mark.parametrize(
    ("tags", "modifiers"),
    [
        ({"ViewCodeSequence": view_code("399162004", code("399163009"))}, ("magnification",)),
        ({"ViewModifierCodeSequence": [code("R-102D7", "SRT")]}, ("spot compression",)),
        ({"ViewModifierCodeSequence": [code("X1", "99ODD", "Odd View")]}, ("odd view",)),
        ({"PaddleDescription": "SMALL SPOT"}, ("spot compression",)),
        ({"PaddleDescription": "10CM MAG"}, ("magnification",)),
        ({"PaddleDescription": "18X24 IMAGER"}, ()),
        ({"ImageType": ["DERIVED", "PRIMARY", "STEREO_MINUS"]}, ("stereo",)),
        ({"ImageType": ["DERIVED", "SECONDARY", "CAD"]}, ("CAD result",)),
        ({"SeriesDescription": "Left specimen"}, ("specimen",)),
        ({"SeriesDescription": "Screening with CAD"}, ()),
    ],
)
def test_special_views_are_told_from_several_tags(tmp_path, tags, modifiers):
    assert header(tmp_path, **tags).modifiers == modifiers


@pytest.mark.parametrize(
    ("tags", "synthetic"),
    [
        ({"SeriesDescription": "L CC C-View"}, True),
        ({"SeriesDescription": "R MLO S-VIEW"}, True),
        ({"ImageType": ["DERIVED", "PRIMARY", "TOMOSYNTHESIS", "GENERATED_2D"]}, True),
        ({"SeriesDescription": "L CC Tomosynthesis"}, False),
        ({"SeriesDescription": "L CC"}, False),
    ],
)
def test_synthetic_images_are_known_by_their_names(tmp_path, tags, synthetic):
    assert header(tmp_path, **tags).synthetic is synthetic


def test_laterality_falls_back_to_the_series_and_to_the_frame(tmp_path):
    assert header(tmp_path, ImageLaterality=None, Laterality="R").laterality == "R"
    shared, anatomy = Dataset(), Dataset()
    anatomy.FrameLaterality = "R"
    shared.FrameAnatomySequence = [anatomy]
    assert header(tmp_path, ImageLaterality=None, SharedFunctionalGroupsSequence=[shared]).laterality == "R"
    assert header(tmp_path, ImageLaterality=None).laterality is None
    assert header(tmp_path, ImageLaterality="B").laterality is None


def test_two_tags_that_name_different_breasts_are_refused(tmp_path):
    with pytest.raises(
        LateralityConflictError, match=r"ImageLaterality is L but .* Laterality is R"
    ) as refusal:
        header(tmp_path, ImageLaterality="L", Laterality="R")
    assert "secret" not in str(refusal.value).lower()


def test_spacing_is_the_imagers_or_else_the_pixels(tmp_path):
    both = {"ImagerPixelSpacing": [0.1, 0.2], "PixelSpacing": [0.3, 0.4]}
    assert header(tmp_path, **both).spacing_mm == (0.1, 0.2)
    assert header(tmp_path, ImagerPixelSpacing=None, PixelSpacing=[0.3, 0.4]).spacing_mm == (0.3, 0.4)


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({}, "none"),
        ({"WindowCenter": [500, 600], "WindowWidth": [100, 200]}, "window 500/100 linear, the first of 2"),
        (
            {"WindowCenter": 500, "WindowWidth": 100, "VOILUTFunction": "SIGMOID"},
            "window 500/100 sigmoid",
        ),
    ],
)
def test_the_voi_is_told_in_words(tmp_path, tags, words):
    assert header(tmp_path, **tags).voi == words


def test_the_name_of_a_file_says_nothing_about_its_format(tmp_path):
    for name in ("a.dcm", "a.dicom", "a", "a.png"):
        assert read_header(save(tmp_path / name)).view == "CC"


def test_a_dicom_without_an_image_is_refused(tmp_path):
    report = mammogram(Modality="SR", Rows=None, Columns=None)
    with pytest.raises(NotAnImageError, match="Modality SR"):
        read_header(save(tmp_path / "report.dcm", report))


def test_a_missing_tag_that_gives_pixels_their_meaning_is_refused(tmp_path):
    with pytest.raises(DamagedImageError, match="PixelRepresentation is missing"):
        header(tmp_path, PixelRepresentation=None)


def test_headers_are_read_without_pixels(tmp_path):
    path = save(tmp_path / "cut.dcm", pixels=np.zeros((200, 100), np.uint16))
    path.write_bytes(path.read_bytes()[:-30_000])
    assert read_header(path).rows == 200


def test_free_text_in_a_code_is_shown_escaped_and_cut(tmp_path):
    evil = "\x1b]0;title\x07" + "A" * 9000
    header = read_header(
        save(tmp_path / "a.dcm", Modality=evil, ViewPosition=evil, PhotometricInterpretation=evil)
    )
    assert_escaped_and_cut(header.modality, header.view, header.photometric)


def assert_escaped_and_cut(*texts):
    for shown in texts:
        assert len(shown) == 64
        assert shown.isprintable()
        assert shown.startswith(r"\x1b]0;TITLE")


def test_free_text_about_the_grey_scale_is_shown_escaped_and_cut(tmp_path):
    evil = "\x1b]0;title\x07" + "A" * 900
    window = read_header(save(tmp_path / "w.dcm", WindowCenter=5, WindowWidth=4, VOILUTFunction=evil))
    assert_escaped_and_cut(window.voi.removeprefix("window 5/4 ").replace("]0;title", "]0;TITLE"))
    lut = Dataset()
    lut.LUTDescriptor, lut.LUTData, lut.LUTExplanation = [2, 0, 16], bytes(4), evil
    header = read_header(save(tmp_path / "l.dcm", VOILUTSequence=[lut]))
    assert_escaped_and_cut(header.voi.removeprefix("VOI LUT "))


def test_an_unknown_transfer_syntax_is_shown_escaped_and_cut(tmp_path):
    dataset = mammogram()
    path = save(tmp_path / "a.dcm", dataset)
    syntax = str(dataset.file_meta.TransferSyntaxUID).encode()
    path.write_bytes(path.read_bytes().replace(syntax + b"\0", b"\x1b]0;" + b"9" * (len(syntax) - 3), 1))
    with pytest.raises(CodecError) as refusal:
        read_image(path)
    assert r"TransferSyntaxUID \x1b]0;999" in str(refusal.value)
    assert str(refusal.value).isprintable()
