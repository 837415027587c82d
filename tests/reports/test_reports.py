"""Structured reports: what they say is what was found, and other people's programs accept them."""

from pathlib import Path

import highdicom
import numpy as np
import pydicom
import pytest
from dicom_files import mammogram, save
from pydicom.dataelem import RawDataElement
from pydicom.tag import Tag
from report_files import (
    assert_same_lesions,
    complaints_of_dsrdump,
    errors_of_dciodvfy,
    lesions_of_cad,
    lesions_of_measurements,
    needs,
)

from clnet.data.image_errors import DamagedImageError
from clnet.data.reader import read_image
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, Link, PairFindings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.reports.dicom import DICOM_REPORTS
from clnet.reports.sr_document import BreastReport, ReportSourceError, report_source, save_report
from clnet.reports.sr_mammography_cad import mammography_cad_report

FILMS = Path(__file__).parent.parent / "data" / "cbis-ddsm"

CC = Detections(np.array([[10.25, 20.5, 30.75, 44], [50, 60, 71.5, 80]]), np.array([0.91, 0.72]))
MLO = Detections(np.array([[12, 22, 33.3, 41], [5, 70, 9, 75]]), np.array([0.55, 0.05]))
FOUND = {
    "linked": PairFindings("p", CC, MLO, (Link(0, 0, 0.875), Link(1, None, 0.6))),
    "not linked": PairFindings("p", CC, MLO),
    "nothing found": PairFindings("p", Detections(), Detections()),
    "one view": PairFindings("p", None, MLO),
}


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(1, rows=128, columns=96), workers=1)
    files = sorted((folder / "images").glob("*.dcm"))
    phantom = {pydicom.dcmread(file).ViewPosition.lower(): file for file in files}
    return {"phantom": phantom, "film": {"cc": FILMS / "left_cc.dcm", "mlo": FILMS / "left_mlo.dcm"}}


def source_of(file):
    return report_source(read_image(file).tags, file)


def report_of(findings, files, key="1"):
    headers = {view: source_of(files[view]) for view in findings.views}
    lesions = tuple(merge_into_lesions(findings, 0.3))
    return BreastReport("L", lesions, headers, "1.0 abc", "Not for patients", key)


@pytest.fixture(params=[(found, kind) for found in FOUND for kind in ("phantom", "film")], ids=" of ".join)
def found(request):
    return request.param


@pytest.fixture
def report(found, sources):
    return report_of(FOUND[found[0]], sources[found[1]])


def written(report, kind, folder):
    path = folder / f"{kind}.dcm"
    save_report(DICOM_REPORTS[kind](report), path)
    return path


@pytest.mark.parametrize(
    ("kind", "read"), [("measurements", lesions_of_measurements), ("mammography_cad", lesions_of_cad)]
)
def test_lesions_boxes_scores_and_links_are_read_back(report, found, tmp_path, kind, read):
    uids = {view: source.SOPInstanceUID for view, source in report.sources.items()}
    lesions = read(written(report, kind, tmp_path))
    assert_same_lesions(lesions, report.lesions, FOUND[found[0]], uids, only_linked=kind == "mammography_cad")


@needs("dciodvfy", "dicom3tools")
@pytest.mark.parametrize("kind", DICOM_REPORTS)
def test_dciodvfy_finds_no_error(report, tmp_path, kind):
    assert errors_of_dciodvfy(written(report, kind, tmp_path)) == []


@needs("dsrdump", "dcmtk")
@pytest.mark.parametrize("kind", DICOM_REPORTS)
def test_dcmtk_reads_it(report, tmp_path, kind):
    assert complaints_of_dsrdump(written(report, kind, tmp_path)) == []


@needs("dciodvfy", "dicom3tools")
@needs("dsrdump", "dcmtk")
def test_the_checkers_would_find_an_error(sources, tmp_path):
    path = written(report_of(FOUND["linked"], sources["phantom"]), "mammography_cad", tmp_path)
    document = pydicom.dcmread(path)
    document.ContentSequence[2].RelationshipType = "SELECTED FROM"
    del document.CompletionFlag
    document.save_as(path)
    assert errors_of_dciodvfy(path) != []
    assert complaints_of_dsrdump(path) != []


@pytest.mark.parametrize("kind", DICOM_REPORTS)
def test_patient_and_study_are_those_of_the_first_view(report, kind):
    document, first = DICOM_REPORTS[kind](report), next(iter(report.sources.values()))
    for keyword in ("PatientName", "PatientID", "StudyInstanceUID"):
        assert document[keyword].value == first[keyword].value, keyword
    assert document.SeriesInstanceUID != first.SeriesInstanceUID


@pytest.mark.parametrize("kind", DICOM_REPORTS)
def test_every_image_is_in_the_evidence_under_its_own_study(report, kind):
    document = DICOM_REPORTS[kind](report)
    listed = {
        (study.StudyInstanceUID, image.ReferencedSOPInstanceUID)
        for name in ("CurrentRequestedProcedureEvidenceSequence", "PertinentOtherEvidenceSequence")
        for study in document.get(name, ())
        for series in study.ReferencedSeriesSequence
        for image in series.ReferencedSOPSequence
    }
    assert listed == {(s.StudyInstanceUID, s.SOPInstanceUID) for s in report.sources.values()}


def test_both_views_of_a_linked_lesion_share_a_tracking_uid_and_other_lesions_have_others(sources, tmp_path):
    path = written(report_of(FOUND["linked"], sources["phantom"]), "measurements", tmp_path)
    groups = highdicom.sr.srread(path).content.get_planar_roi_measurement_groups()
    first, second, third = (group.tracking_uid for group in groups)
    assert first == second != third


def test_a_cad_report_has_the_form_of_its_template(sources):
    document = mammography_cad_report(report_of(FOUND["linked"], sources["phantom"]))
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


def test_the_same_key_gives_the_same_uids_and_another_key_others(sources):
    uids = [
        writer(report_of(FOUND["linked"], sources["phantom"], key)).SOPInstanceUID
        for writer in DICOM_REPORTS.values()
        for key in ("1", "1", "2")
    ]
    assert uids[0] == uids[1] and uids[3] == uids[4]
    assert len(set(uids)) == 4
    assert all(highdicom.UID(uid).is_valid for uid in uids)


def test_values_that_no_report_may_hold_are_left_empty(tmp_path):
    source = source_of(save(tmp_path / "a.dcm", PatientSex="female", StudyDate="yesterday", StudyTime=""))
    assert (source.PatientSex, source.StudyDate, source.StudyTime) == ("", "", "")
    findings = PairFindings("p", CC)
    report = BreastReport("L", tuple(merge_into_lesions(findings, 0.3)), {"cc": source}, "1", "", "k")
    for writer in DICOM_REPORTS.values():
        assert writer(report).PatientSex is None or writer(report).PatientSex == ""


@pytest.mark.parametrize("kind", DICOM_REPORTS)
def test_no_warning_of_a_library_quotes_the_patient(tmp_path, recwarn, kind):
    source = source_of(save(tmp_path / "a.dcm", PatientName="Secret", PatientID="secret" * 20))
    report = BreastReport("L", (), {"cc": source}, "1", "", "k")
    recwarn.clear()
    assert str(pydicom.dcmread(written(report, kind, tmp_path)).PatientName) == "Secret"
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


def test_a_source_holds_all_tags_of_the_file_but_its_pixels(sources):
    file = sources["film"]["cc"]
    expected = pydicom.dcmread(file, stop_before_pixels=True)
    tags = read_image(file).tags
    assert tags.keys() == expected.keys()
    assert all(tags[tag].value == expected[tag].value for tag in sorted(expected.keys()))
