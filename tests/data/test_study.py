"""Which files of a folder become the pairs, and what is said about the others."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from dicom_files import STUDY, code, mammogram, save
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.uid import generate_uid

from clnet.data.film_names import parse_film_name
from clnet.data.header import (
    FOR_PROCESSING,
    SECONDARY_CAPTURE,
    TOMOSYNTHESIS,
    ImageHeader,
    read_header,
)
from clnet.data.image_errors import NotAnImageError
from clnet.data.study import choose_pairs, find_pairs, scan

PLAIN = ImageHeader(
    file=Path("cc.dcm"),
    view="CC",
    laterality="L",
    rows=3000,
    columns=2000,
    bits_stored=12,
    photometric="MONOCHROME2",
    modality="MG",
    sop_instance_uid="1.5",
    study_uid=STUDY,
)
FILMS = Path(__file__).parent / "cbis-ddsm"
CC = PLAIN
MLO = replace(PLAIN, file=Path("mlo.dcm"), view="MLO", sop_instance_uid="1.6")


def reasons(selection):
    return {item.file.name: item.reason for item in selection.left_out}


def test_the_two_views_of_each_breast_of_each_study_are_paired(tmp_path):
    for study in ("1.1", "1.2"):
        for side in "LR":
            for view in ("CC", "MLO"):
                name = f"{study}{side}{view}"
                save(tmp_path / name, StudyInstanceUID=study, ImageLaterality=side, ViewPosition=view)
    found = find_pairs(tmp_path)
    assert [(pair.study_uid, pair.laterality) for pair in found.pairs] == [
        ("1.1", "L"),
        ("1.1", "R"),
        ("1.2", "L"),
        ("1.2", "R"),
    ]
    for pair in found.pairs:
        assert pair.cc.file.name == f"{pair.study_uid}{pair.laterality}CC"
        assert pair.mlo.file.name == f"{pair.study_uid}{pair.laterality}MLO"
        assert pair.warnings == ()
    assert found.left_out == ()


def test_a_missing_partner_is_normal_and_said():
    (pair,) = choose_pairs([CC]).pairs
    assert (pair.cc, pair.mlo) == (CC, None)
    assert pair.warnings == ("no standard MLO view in this study",)


def test_a_pair_is_of_one_study():
    first, second = choose_pairs([CC, replace(MLO, study_uid="9.9")]).pairs
    assert (first.cc, first.mlo) == (CC, None)
    assert (second.cc is None, second.study_uid) == (True, "9.9")


def film(name, **changes):
    """A film of CBIS-DDSM, with tags as there: view and laterality in unusual ones, a study of its own."""
    side, view = name.split("_")[3:5]
    tags = {"PatientID": name, "StudyInstanceUID": generate_uid(), "SOPClassUID": SECONDARY_CAPTURE}
    tags |= {"ViewPosition": None, "PatientOrientation": view, "ImageLaterality": None, "Laterality": side[0]}
    return mammogram(**(tags | {"SeriesDescription": "full mammogram images"} | changes))


def test_the_real_films_of_a_patient_are_two_breasts_with_both_views():
    found = find_pairs(sorted(FILMS.glob("*.dcm")), secondary_capture=True)
    assert [(pair.laterality, pair.cc.file.name, pair.mlo.file.name) for pair in found.pairs] == [
        ("L", "left_cc.dcm", "left_mlo.dcm"),
        ("R", "right_cc.dcm", "right_mlo.dcm"),
    ]
    assert all(pair.warnings == () for pair in found.pairs)
    assert found.left_out == ()


def test_films_are_paired_by_the_patient_in_their_name(tmp_path):
    for name in ("Mass-Test_P_00820_LEFT_CC", "Mass-Test_P_00820_LEFT_MLO", "Mass-Test_P_00821_LEFT_MLO"):
        save(tmp_path / name, film(name))
    first, second = find_pairs(tmp_path, secondary_capture=True).pairs
    assert (first.cc.file.name, first.mlo.file.name) == (
        "Mass-Test_P_00820_LEFT_CC",
        "Mass-Test_P_00820_LEFT_MLO",
    )
    assert (second.cc, second.mlo.file.name) == (None, "Mass-Test_P_00821_LEFT_MLO")


def test_the_name_of_a_film_gives_view_and_laterality_where_tags_do_not(tmp_path):
    name = "Calc-Training_P_00005_RIGHT_MLO"
    header = read_header(save(tmp_path / "a", film(name, PatientOrientation="", Laterality="")))
    assert (header.view, header.laterality, header.patient_id) == ("MLO", "R", "P_00005")
    header = read_header(save(tmp_path / "b", film(name, PatientOrientation="CC", Laterality="L")))
    assert (header.view, header.laterality) == ("CC", "L")
    assert "the view is CC in its tag, MLO in PatientID: the tag is used" in header.warnings
    assert "the laterality is L in its tag, R in PatientID: the tag is used" in header.warnings


def test_crops_and_masks_of_cbis_ddsm_are_not_taken_for_films(tmp_path):
    for name, words in (
        ("Mass-Test_P_00820_LEFT_CC", "full mammogram images"),
        ("Mass-Test_P_00820_LEFT_CC_1", "ROI mask images"),
        ("Mass-Test_P_00820_LEFT_CC_2", ""),
        ("Mass-Test_P_00820_LEFT_MLO_1", "full mammogram images"),
    ):
        save(tmp_path / name, film(name, SeriesDescription=words))
    found = find_pairs(tmp_path, secondary_capture=True)
    (pair,) = found.pairs
    assert (pair.cc.file.name, pair.mlo.file.name) == (
        "Mass-Test_P_00820_LEFT_CC",
        "Mass-Test_P_00820_LEFT_MLO_1",
    )
    assert reasons(found) == dict.fromkeys(
        ("Mass-Test_P_00820_LEFT_CC_1", "Mass-Test_P_00820_LEFT_CC_2"),
        "special view: crop or mask of an abnormality",
    )


@pytest.mark.parametrize(
    "patient", ["P_00820", "Mass-Test_P_00820_LEFT_ML", "My Mass-Test_P_00820_LEFT_CC", ""]
)
def test_any_other_patient_id_keeps_its_study(patient):
    assert parse_film_name(patient) is None


def test_ml_and_lm_are_not_mlo():
    for view in ("ML", "LM"):
        lateral = replace(MLO, view=view)
        found = choose_pairs([CC, lateral])
        (pair,) = found.pairs
        assert pair.mlo is None
        assert reasons(found) == {"mlo.dcm": f"the view is {view}, not CC or MLO"}
        assert pair.warnings == (
            f"no standard MLO view in this study (left out: mlo.dcm: the view is {view}, not CC or MLO)",
        )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"frames": 60}, "multi-frame image of 60 frames (tomosynthesis), not a 2D mammogram"),
        ({"sop_class_uid": TOMOSYNTHESIS}, "tomosynthesis image, not a 2D mammogram"),
        ({"modality": "US"}, "Modality is US, not MG"),
        ({"modality": ""}, "Modality is missing, not MG"),
        ({"samples": 3, "photometric": "RGB"}, "colour image (RGB)"),
        ({"for_processing": True}, "FOR PROCESSING, not for presentation"),
        ({"modifiers": ("spot compression",)}, "special view: spot compression"),
        ({"modifiers": ("magnification", "implant displaced")}, "special view: magnification"),
        ({"view": None}, "the view is unknown: no ViewPosition and no ViewCodeSequence"),
        ({"laterality": None}, "the breast is unknown: no ImageLaterality L or R"),
        ({"study_uid": ""}, "the study is unknown: no StudyInstanceUID"),
    ],
)
def test_what_is_no_standard_view_is_left_out_with_the_reason(change, reason):
    odd = replace(MLO, **change)
    found = choose_pairs([CC, odd])
    assert [pair.mlo for pair in found.pairs] == [None]
    assert reasons(found) == {"mlo.dcm": reason}


def test_secondary_capture_is_accepted_by_setting_only():
    captured = replace(CC, sop_class_uid=SECONDARY_CAPTURE)
    assert choose_pairs([captured]).pairs == ()
    assert "--secondary-capture accepts these" in reasons(choose_pairs([captured]))["cc.dcm"]
    assert choose_pairs([captured], secondary_capture=True).pairs[0].cc == captured


@pytest.mark.parametrize(
    ("worse", "why"),
    [
        ({"modifiers": ("implant displaced",), "rows": 9000}, "it shows the implant displaced"),
        ({"synthetic": True, "rows": 9000}, "it is synthetic 2D"),
        ({"synthetic": True, "sop_class_uid": TOMOSYNTHESIS}, "it is synthetic 2D"),
        ({"rows": 2999, "sop_instance_uid": "1.1"}, "it is smaller"),
        ({"sop_instance_uid": "1.51"}, "its SOPInstanceUID comes later"),
        ({}, "it is a copy with the same SOPInstanceUID"),
    ],
)
def test_of_two_images_of_one_view_the_better_is_used(worse, why):
    other = replace(CC, file=Path("other.dcm"), **worse)
    for order in ([CC, other], [other, CC]):
        found = choose_pairs([*order, MLO])
        assert found.pairs[0].cc == CC
        assert reasons(found) == {"other.dcm": f"second CC of this breast, cc.dcm is used: {why}"}


def test_full_field_with_implant_displaced_still_comes_after_a_synthetic_standard_view():
    displaced = replace(CC, file=Path("d.dcm"), modifiers=("implant displaced",))
    synthetic = replace(CC, file=Path("s.dcm"), synthetic=True)
    (pair,) = choose_pairs([displaced, synthetic]).pairs
    assert pair.cc == synthetic


def test_an_unusual_view_is_used_where_there_is_no_other_and_said():
    displaced = replace(CC, modifiers=("implant displaced",))
    synthetic = replace(MLO, synthetic=True)
    (pair,) = choose_pairs([displaced, synthetic]).pairs
    assert (pair.cc, pair.mlo) == (displaced, synthetic)
    assert pair.warnings == ("CC shows the implant displaced", "MLO is a synthetic 2D image")


def test_views_of_one_study_with_different_patients_are_questioned_without_naming_them():
    (pair,) = choose_pairs([replace(CC, patient_id="alpha"), replace(MLO, patient_id="beta")]).pairs
    assert len(pair.warnings) == 1 and "different PatientIDs" in pair.warnings[0]
    assert "alpha" not in pair.warnings[0] and "beta" not in pair.warnings[0]


def some_headers():
    return st.builds(
        lambda index, **change: replace(PLAIN, file=Path(f"{index}.dcm"), **change),
        index=st.integers(0, 99),
        view=st.sampled_from(["CC", "MLO", "ML", None]),
        laterality=st.sampled_from(["L", "R", None]),
        study_uid=st.sampled_from(["1.1", "1.2"]),
        rows=st.sampled_from([100, 200]),
        synthetic=st.booleans(),
        modifiers=st.sampled_from([(), ("implant displaced",), ("spot compression",)]),
        sop_instance_uid=st.sampled_from(["1.7", "1.8"]),
    )


@settings(max_examples=100)
@given(st.lists(some_headers(), max_size=12, unique_by=lambda header: header.file), st.randoms())
def test_every_file_is_used_once_or_left_out_once_whatever_the_order(headers, random_source: random.Random):
    found = choose_pairs(headers)
    used = [view.file for pair in found.pairs for view in (pair.cc, pair.mlo) if view]
    assert sorted([*used, *(item.file for item in found.left_out)]) == sorted(
        header.file for header in headers
    )
    assert all(pair.cc or pair.mlo for pair in found.pairs)
    random_source.shuffle(headers)
    assert choose_pairs(headers) == found


def test_a_folder_is_searched_in_depth_and_every_file_accounted_for(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    save(deep / "cc")
    save(tmp_path / "mlo.dicom", ViewPosition="MLO")
    save(tmp_path / "raw.dcm", SOPClassUID=FOR_PROCESSING)
    save(tmp_path / "spot.dcm", ViewModifierCodeSequence=[code("399055006")])
    save(tmp_path / "conflict.dcm", Laterality="R")
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / ".hidden").write_text("hello")
    found = find_pairs(tmp_path)
    (pair,) = found.pairs
    assert (pair.cc.file, pair.mlo.file) == (deep / "cc", tmp_path / "mlo.dicom")
    why = reasons(found)
    assert list(why) == ["conflict.dcm", "raw.dcm", "readme.txt", "spot.dcm"]
    assert "ImageLaterality is L but" in why["conflict.dcm"]
    assert "not a DICOM file" in why["readme.txt"]


def test_a_folder_that_cannot_be_listed_is_accounted_for(tmp_path, monkeypatch):
    save(tmp_path / "cc")
    locked = tmp_path / "locked"
    locked.mkdir()
    listed = os.scandir

    def scandir(path):
        if Path(path) == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = scan(tmp_path)
    assert len(found.headers) == 1
    assert [item.file for item in found.refused] == [locked]


def test_files_can_be_named_one_by_one(tmp_path):
    paths = [save(tmp_path / "cc"), save(tmp_path / "mlo", ViewPosition="MLO")]
    assert len(scan(paths).headers) == 2
    assert len(scan(str(paths[0])).headers) == 1
    with pytest.raises(NotAnImageError, match="no such file or folder"):
        scan(tmp_path / "nowhere")


def test_several_processes_find_the_same_as_one(tmp_path):
    dataset = mammogram()
    for index in range(120):
        dataset.SOPInstanceUID = f"1.2.{index}"
        save(tmp_path / f"{index}.dcm", dataset)
    (tmp_path / "broken.dcm").write_bytes(b"\0" * 128 + b"DICM" + b"\xff" * 40)
    one, two = scan(tmp_path, workers=1), scan(tmp_path, workers=2)
    assert one == two
    assert len(one.headers) == 120 and len(one.refused) == 1


def test_nothing_is_printed_where_there_is_no_terminal(tmp_path, capfd):
    save(tmp_path / "cc")
    scan(tmp_path)
    assert capfd.readouterr() == ("", "")
