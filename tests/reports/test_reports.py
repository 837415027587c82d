"""The DICOM reports of a study: what they say is what was found, and other people's programs accept them."""

import subprocess

import highdicom
import pydicom
import pytest
from dicom_files import mammogram, save
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag
from report_files import (
    READERS,
    assert_same_lesions,
    children,
    complaints_of_dcmpschk,
    complaints_of_dsrdump,
    errors_of_dciodvfy,
    lesions_of_measurements,
    lesions_of_presentation,
    needs,
)
from report_studies import (
    FOUND,
    NOTHING,
    NOTICE,
    expected_of,
    images,  # noqa: F401
    source_of,
    study_of,
)

from clnet.data.image_errors import DamagedImageError
from clnet.data.reader import read_image, read_tags
from clnet.reports.dicom import DICOM_REPORTS, write_reports
from clnet.reports.study import BreastReport, ReportSourceError, StudyReport, report_source

KINDS = list(DICOM_REPORTS)
SR = ("measurements", "cad")


@pytest.fixture(
    scope="module",
    params=[(found, kind) for found in FOUND for kind in ("phantom", "film")],
    ids=" of ".join,
)
def study(request, images, tmp_path_factory):  # noqa: F811
    """(what was found in each breast, the report, the folder of its files)."""
    found, kind = request.param
    report = study_of(FOUND[found], images[kind])
    folder = tmp_path_factory.mktemp("study")
    write_reports(report, KINDS, folder)
    return FOUND[found], report, folder


@pytest.fixture(scope="module")
def linked(images, tmp_path_factory):  # noqa: F811
    """The folder of a phantom study with a linked lesion in the left breast and none in the right."""
    folder = tmp_path_factory.mktemp("linked")
    write_reports(study_of(FOUND["linked and nothing"], images["phantom"]), KINDS, folder)
    return folder


@pytest.mark.parametrize("kind", READERS)
def test_lesions_boxes_scores_and_links_are_read_back(study, kind):
    found, report, folder = study
    assert_same_lesions(kind, folder, expected_of(report, found))


@needs("dciodvfy", "dicom3tools")
def test_dciodvfy_finds_no_error(study):
    files = sorted(study[2].glob("*.dcm"))
    assert len(files) >= 4
    assert {file.name: errors_of_dciodvfy(file) for file in files} == {file.name: [] for file in files}


@needs("dsrdump", "dcmtk")
@pytest.mark.parametrize("kind", SR)
def test_dcmtk_reads_structured_reports(study, kind):
    assert complaints_of_dsrdump(study[2] / f"{kind}.dcm") == []


@needs("dcmpschk", "dcmtk")
def test_dcmtk_reads_presentation_states(study):
    for file in study[2].glob("presentation*.dcm"):
        assert complaints_of_dcmpschk(file) == []


@needs("dciodvfy", "dicom3tools")
@needs("dsrdump", "dcmtk")
def test_the_checkers_would_find_an_error(linked, tmp_path):
    document = pydicom.dcmread(linked / "cad.dcm")
    document.ContentSequence[2].RelationshipType = "SELECTED FROM"
    del document.CompletionFlag
    document.save_as(tmp_path / "cad.dcm")
    assert errors_of_dciodvfy(tmp_path / "cad.dcm") != []
    assert complaints_of_dsrdump(tmp_path / "cad.dcm") != []
    state = pydicom.dcmread(linked / "presentation.dcm")
    del state.ReferencedSeriesSequence
    state.save_as(tmp_path / "presentation.dcm")
    assert complaints_of_dcmpschk(tmp_path / "presentation.dcm") != []


@pytest.mark.parametrize("name", [f"{kind}.dcm" for kind in KINDS])
def test_patient_and_study_are_those_of_the_first_image(study, name):
    _, report, folder = study
    document, first = pydicom.dcmread(folder / name), report.sources[0]
    for keyword in ("PatientName", "PatientID", "StudyInstanceUID"):
        assert document[keyword].value == first[keyword].value, keyword
    assert document.SeriesInstanceUID != first.SeriesInstanceUID


@pytest.mark.parametrize("kind", SR)
def test_every_image_is_in_the_evidence_under_its_own_study(study, kind):
    _, report, folder = study
    document = pydicom.dcmread(folder / f"{kind}.dcm")
    listed = {
        (study.StudyInstanceUID, image.ReferencedSOPInstanceUID)
        for name in ("CurrentRequestedProcedureEvidenceSequence", "PertinentOtherEvidenceSequence")
        for study in document.get(name, ())
        for series in study.ReferencedSeriesSequence
        for image in series.ReferencedSOPSequence
    }
    assert listed == {(s.StudyInstanceUID, s.SOPInstanceUID) for s in report.sources}


def test_the_name_of_a_series_says_what_it_is_and_what_was_found(linked):
    assert {file.stem: pydicom.dcmread(file).SeriesDescription for file in linked.glob("*.dcm")} == {
        "measurements": f"CL-Net masses: 2 L, none R. {NOTICE}",
        "presentation": f"CL-Net boxes: 2 L, none R. {NOTICE}",
        "picture": f"CL-Net picture: 2 L, none R. {NOTICE}",
        "cad": f"CL-Net CAD: 2 L, none R. {NOTICE}",
    }


def test_a_notice_that_does_not_fit_is_left_out_of_the_series_description(images):  # noqa: F811
    report = StudyReport(study_of({"L": NOTHING}, images["phantom"]).breasts, "1", 64 * "x", 0.3)
    assert report.description("masses") == "CL-Net masses: none L"


LABELS = ["L1 CC 0.91, also in MLO", "L1 MLO 0.55, also in CC", "L2 CC 0.72, not seen in MLO"]


def test_labels_name_the_lesion_and_say_where_else_it_is(linked):
    read = lesions_of_measurements(linked)
    assert [label for lesion in read for label in lesion["labels"]] == LABELS
    assert sorted(label for lesion in lesions_of_presentation(linked) for label in lesion["labels"]) == LABELS


def test_a_lesion_of_a_lone_view_does_not_speak_of_the_other(images):  # noqa: F811
    report = study_of({"R": FOUND["not linked and one view"]["R"]}, images["phantom"])
    assert [region.label for region in report.regions] == ["R1 MLO 0.55"]


def test_each_box_has_a_tracking_uid_and_both_of_a_lesion_name_the_same_feature(linked):
    groups = highdicom.sr.srread(linked / "measurements.dcm").content.get_planar_roi_measurement_groups()
    assert len({group.tracking_uid for group in groups}) == 3
    assert [group.tracking_identifier for group in groups] == ["L1 CC", "L1 MLO", "L2 CC"]
    features = [
        [uid.UID for link in children(group[0], "111011") for uid in children(link, "112040")]
        for group in groups
    ]
    assert features[0] == features[1] != []
    assert features[2] == []
    drawn = pydicom.dcmread(linked / "presentation.dcm").GraphicAnnotationSequence
    graphics = [graphic for annotation in drawn for graphic in annotation.get("GraphicObjectSequence", ())]
    tracking = {graphic.TrackingID: graphic.TrackingUID for graphic in graphics}
    assert tracking == {"L1": features[0][0], "L2": groups[2].tracking_uid}


def test_a_region_is_told_to_be_a_bounding_box_of_a_mass_in_a_breast(linked):
    groups = highdicom.sr.srread(linked / "measurements.dcm").content.get_planar_roi_measurement_groups()
    for group in groups:
        (purpose,) = children(group[0], "130400")
        assert purpose.ConceptCodeSequence[0].CodeMeaning == "Bounded by"
        assert group.finding_type.meaning == "Mammographic breast mass"
        assert [site.value.meaning for site in group.finding_sites] == ["Left breast"]


def test_the_first_measurement_of_a_box_has_its_name_and_says_where_it_is(linked):
    # OHIF shows the names of measurements on the image, and takes the place of a box from the first of them.
    groups = highdicom.sr.srread(linked / "measurements.dcm").content.get_planar_roi_measurement_groups()
    first = [next(item for item in group[0].ContentSequence if item.ValueType == "NUM") for group in groups]
    names = [item.ConceptNameCodeSequence[0] for item in first]
    assert [(name.CodeValue, name.CodeMeaning) for name in names] == [
        ("L1 CC+MLO", "L1 CC, also in MLO"),
        ("L1 MLO+CC", "L1 MLO, also in CC"),
        ("L2 CC-MLO", "L2 CC, not seen in MLO"),
    ]
    (scheme,) = pydicom.dcmread(linked / "measurements.dcm").CodingSchemeIdentificationSequence
    assert {name.CodingSchemeDesignator for name in names} == {scheme.CodingSchemeDesignator} == {"99CLNET"}
    for item, group in zip(first, groups, strict=True):
        (region,) = item.ContentSequence
        assert region.RelationshipType == "INFERRED FROM"
        assert list(region.GraphicData) == group.roi.value.flatten().tolist()


def test_every_item_of_a_measurement_report_has_a_name(study):
    # OHIF cannot show a report as text otherwise.
    def items(item):
        for child in item.get("ContentSequence", ()):
            yield child
            yield from items(child)

    document = pydicom.dcmread(study[2] / "measurements.dcm")
    assert all(item.ConceptNameCodeSequence[0].CodeMeaning for item in items(document))


def evaluations(folder):
    (evaluated,) = children(pydicom.dcmread(folder / "measurements.dcm"), "C0034375")
    return {
        item.ContentSequence[0].ConceptCodeSequence[0].CodeMeaning: item.ConceptCodeSequence[0].CodeMeaning
        for item in children(evaluated, "129788004")
    }


def comments(folder):
    (evaluated,) = children(pydicom.dcmread(folder / "measurements.dcm"), "C0034375")
    return [item.TextValue for item in children(evaluated, "121106")]


def test_a_measurement_report_says_for_each_breast_whether_a_mass_was_detected(linked):
    assert evaluations(linked) == {"Left breast": "Detected", "Right breast": "Not detected"}
    assert comments(linked) == [
        "Left breast: 2 masses found in CC and MLO",
        "Right breast: no masses found in CC and MLO",
        NOTICE,
    ]


def test_a_study_without_masses_says_so_and_has_no_empty_group(images, tmp_path):  # noqa: F811
    write_reports(study_of(FOUND["nothing found"], images["phantom"]), KINDS, tmp_path)
    assert evaluations(tmp_path) == {"Left breast": "Not detected", "Right breast": "Not detected"}
    document = pydicom.dcmread(tmp_path / "measurements.dcm")
    assert children(document, "126010") == []  # Imaging Measurements
    # Not "Imaging Measurement Report", of which OHIF expects measurements.
    assert document.ConceptNameCodeSequence[0].CodeMeaning == "Oncology Measurement Report"
    assert comments(tmp_path)[0] == "Left breast: no masses found in CC and MLO"
    assert document.SeriesDescription.startswith("CL-Net masses: none L, none R")
    (summary,) = children(pydicom.dcmread(tmp_path / "cad.dcm"), "111017")
    assert summary.ConceptCodeSequence[0].CodeMeaning == "All algorithms succeeded; without findings"
    for annotation in pydicom.dcmread(tmp_path / "presentation.dcm").GraphicAnnotationSequence:
        (text,) = annotation.TextObjectSequence
        assert text.UnformattedTextValue == f"CL-Net: no masses found. {NOTICE}"


def test_the_notice_is_in_the_content_of_every_report(linked):
    for kind in SR:
        text = subprocess.run(["dsrdump", "+Pl", linked / f"{kind}.dcm"], capture_output=True, text=True)
        assert text.stdout.count(f'="{NOTICE}"') >= 3
    for annotation in pydicom.dcmread(linked / "presentation.dcm").GraphicAnnotationSequence:
        assert NOTICE in annotation.TextObjectSequence[0].UnformattedTextValue


def test_a_cad_report_has_the_form_of_its_template(linked):
    document = pydicom.dcmread(linked / "cad.dcm")
    assert document.SOPClassUID.name == "Mammography CAD SR Storage"
    assert document.ContentTemplateSequence[0].TemplateIdentifier == "4000"
    names = [item.ConceptNameCodeSequence[0].CodeMeaning for item in document.ContentSequence]
    assert names == [
        "Language of Content Item and Descendants",
        "Image Library",
        "CAD Processing and Findings Summary",
        "Summary of Detections",
        "Summary of Analyses",
    ]


def uids_of(report, folder):
    folder.mkdir()
    names = write_reports(report, KINDS, folder)
    return [pydicom.dcmread(folder / name).SOPInstanceUID for name in names]


def test_the_same_images_and_model_give_the_same_uids_and_another_model_others(images, tmp_path):  # noqa: F811
    found = FOUND["linked and nothing"]
    first, again, other = (
        uids_of(study_of(found, images["phantom"], version), tmp_path / str(number))
        for number, version in enumerate(("1", "1", "2"))
    )
    assert first == again
    assert len({*first, *other}) == 8
    assert all(highdicom.UID(uid).is_valid for uid in first)


def test_values_that_no_report_may_hold_are_left_empty_and_the_tags_stay(tmp_path):
    tags = read_tags(save(tmp_path / "a.dcm", PatientSex="female", StudyDate="yesterday", StudyTime=""))
    source = report_source(tags, "a.dcm")
    assert (source.PatientSex, source.StudyDate, source.StudyTime) == ("", "", "")
    assert (tags.PatientSex, tags.StudyDate) == ("female", "yesterday")
    report = StudyReport((BreastReport("L", (), {"cc": source}),), "1", "", 0.3)
    for kind in set(KINDS) - {"picture"}:
        (document,) = DICOM_REPORTS[kind](report)
        assert not document.PatientSex


@pytest.mark.parametrize("kind", KINDS)
def test_no_warning_of_a_library_quotes_the_patient(images, tmp_path, recwarn, kind):  # noqa: F811
    source = source_of(save(tmp_path / "a.dcm", PatientName="Secret", PatientID="secret" * 20))
    picture = study_of({"L": NOTHING}, images["phantom"]).breasts[0].picture
    report = StudyReport((BreastReport("L", (), {"cc": source}, picture),), "1", "", 0.3)
    recwarn.clear()
    (name,) = write_reports(report, [kind], tmp_path)
    assert str(pydicom.dcmread(tmp_path / name).PatientName) == "Secret"
    assert [str(warning.message) for warning in recwarn] == []


def test_an_image_without_a_uid_cannot_be_reported_on(tmp_path):
    dataset = mammogram()
    del dataset.SeriesInstanceUID
    with pytest.raises(ReportSourceError, match="SeriesInstanceUID is missing"):
        source_of(save(tmp_path / "a.dcm", dataset))


def test_tags_that_cannot_be_read_are_refused():
    tags = mammogram()
    tags[0x00080018] = RawDataElement(Tag(0x00080018), "US", 3, b"abc", 0, False, True)
    with pytest.raises(DamagedImageError):
        report_source(tags, "a.dcm")


@pytest.mark.parametrize("read", [lambda file: read_image(file).tags, read_tags], ids=["image", "tags"])
def test_a_source_holds_all_tags_of_the_file_but_its_pixels(images, read):  # noqa: F811
    file = images["film"]["L", "cc"]
    expected = pydicom.dcmread(file, stop_before_pixels=True)
    tags = read(file)
    assert tags.keys() == expected.keys()
    assert all(tags[tag].value == expected[tag].value for tag in sorted(expected.keys()))
