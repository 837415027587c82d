"""Reports for sharing name nobody: the Basic Profile of PS3.15, attribute by attribute."""

import pydicom
import pytest
from dicom_files import code, mammogram, ramp
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from report_files import assert_same_lesions, errors_of_dciodvfy, needs
from report_studies import LINKED, MIN_SCORE, expected_of, images, study_of  # noqa: F401

from clnet.findings.lesions import merge_into_lesions
from clnet.reports.dicom import DICOM_REPORTS, write_reports
from clnet.reports.study import BreastReport, StudyReport, report_source

KINDS = list(DICOM_REPORTS)
# Table E.1-1 of PS3.15 for what images, or the IODs of our reports, may hold: X remove, Z empty or dummy,
# D dummy, U replace. C is X in the table; what we write ourselves stays by the option to clean descriptors.
ACTIONS = {
    "AccessionNumber": "Z",
    "AcquisitionDate": "X",
    "AcquisitionTime": "X",
    "AcquisitionDateTime": "X",
    "AdditionalPatientHistory": "X",
    "AdmissionID": "X",
    "AdmittingDiagnosesDescription": "X",
    "Allergies": "X",
    "ClinicalTrialSubjectID": "X",
    "ClinicalTrialSponsorName": "X",
    "ContentCreatorName": "Z",
    "ContentDate": "D",
    "ContentTime": "D",
    "ContrastBolusAgent": "X",
    "ContributionDateTime": "D",
    "DateOfSecondaryCapture": "D",
    "TimeOfSecondaryCapture": "D",
    "DerivationDescription": "C",
    "DetectorID": "X",
    "DeviceSerialNumber": "D",
    "DeviceUID": "U",
    "EthnicGroup": "X",
    "FrameOfReferenceUID": "U",
    "ImageComments": "X",
    "InstanceCreationDate": "D",
    "InstanceCreationTime": "D",
    "InstanceCreatorUID": "U",
    "InstitutionAddress": "X",
    "InstitutionName": "X",
    "InstitutionalDepartmentName": "X",
    "IssuerOfPatientID": "X",
    "MedicalAlerts": "X",
    "MilitaryRank": "X",
    "NameOfPhysiciansReadingStudy": "X",
    "Occupation": "X",
    "OperatorsName": "X",
    "OtherPatientIDs": "X",
    "OtherPatientNames": "X",
    "PatientAddress": "X",
    "PatientAge": "X",
    "PatientBirthDate": "Z",
    "PatientBirthName": "X",
    "PatientBirthTime": "X",
    "PatientComments": "X",
    "PatientID": "Z",
    "PatientMotherBirthName": "X",
    "PatientName": "Z",
    "PatientReligiousPreference": "X",
    "PatientSex": "Z",
    "PatientSize": "X",
    "PatientState": "X",
    "PatientTelephoneNumbers": "X",
    "PatientWeight": "X",
    "PerformedProcedureStepDescription": "X",
    "PerformedProcedureStepID": "X",
    "PerformedProcedureStepStartDate": "X",
    "PerformingPhysicianName": "X",
    "PregnancyStatus": "X",
    "PresentationCreationDate": "D",
    "PresentationCreationTime": "D",
    "ProtocolName": "X",
    "ReasonForStudy": "X",
    "ReferringPhysicianName": "Z",
    "RequestAttributesSequence": "X",
    "RequestedProcedureDescription": "X",
    "RequestedProcedureID": "X",
    "SeriesDate": "D",
    "SeriesDescription": "C",
    "SeriesInstanceUID": "U",
    "SeriesTime": "D",
    "SmokingStatus": "X",
    "SOPInstanceUID": "U",
    "StationName": "X",
    "StudyComments": "X",
    "StudyDate": "Z",
    "StudyDescription": "X",
    "StudyID": "Z",
    "StudyInstanceUID": "U",
    "StudyTime": "Z",
}
SECRETS = {
    "DA": "19500102",
    "TM": "113344",
    "DT": "19500102113344",
    "AS": "077Y",
    "CS": "F",
    "DS": "77.7",
    "IS": "777",
    "US": 4,
    "UI": "1.2.777.1",
}


def with_every_identity(**tags):
    """A mammogram with each attribute of the table, and with some more."""
    dataset = mammogram(ramp(100, 90), **tags)
    for keyword in ACTIONS:
        vr = pydicom.datadict.dictionary_VR(keyword)
        if vr != "SQ" and keyword not in tags:
            setattr(dataset, keyword, SECRETS.get(vr, "SECRET"))
    item = Dataset()
    item.RequestedProcedureID = item.AccessionNumber = "SECRET"
    dataset.RequestAttributesSequence = Sequence([item])
    dataset.ReferencedPatientSequence = Sequence([item])
    dataset.Manufacturer = dataset.ManufacturerModelName = "SECRET"
    dataset.WindowCenter, dataset.WindowWidth = 700, 900
    dataset.WindowCenterWidthExplanation = "SECRET"
    dataset.AnatomicRegionSequence = Sequence([code("76752008", meaning="SECRET")])
    dataset.private_block(0x0011, "SECRET", create=True).add_new(1, "LO", "SECRET")
    dataset.SpecificCharacterSet = "ISO_IR 100"
    return dataset


@pytest.fixture(scope="module")
def sources():
    study = {"StudyInstanceUID": "1.2.777.2", "SeriesInstanceUID": "1.2.777.3", "PatientSex": "F"}
    cc = with_every_identity(SOPInstanceUID="1.2.777.4", **study)
    mlo = with_every_identity(SOPInstanceUID="1.2.777.5", ViewPosition="MLO", **study)
    return {"cc": report_source(cc, "cc.dcm"), "mlo": report_source(mlo, "mlo.dcm")}


@pytest.fixture(scope="module")
def report(sources, images):  # noqa: F811
    picture = study_of({"L": LINKED}, images["phantom"]).breasts[0].picture
    lesions = tuple(merge_into_lesions(LINKED, MIN_SCORE))
    return StudyReport((BreastReport("L", lesions, sources, picture),), "1.0 abc", "Notice", MIN_SCORE)


@pytest.fixture(scope="module")
def folder(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    assert len(write_reports(report, KINDS, folder, deidentify=True)) == 4
    return folder


def elements_of(dataset):
    for element in dataset:
        yield element
        for item in element.value if element.VR == "SQ" else ():
            yield from elements_of(item)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_image_that_could_name_the_patient_is_in_a_report(folder, kind):
    content = (folder / f"{kind}.dcm").read_bytes()
    for secret in (b"SECRET", b"19500102", b"113344", b"077Y", b"77.7", b"1.2.777"):
        assert secret not in content, secret


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_that_is_not_for_sharing_would_fail_this_test(report, tmp_path, kind):
    write_reports(report, [kind], tmp_path)
    content = (tmp_path / f"{kind}.dcm").read_bytes()
    assert b"1.2.777.2" in content and b"19500102" in content and b"SECRET" in content


DUMMIES = ("19000101", "000000", "19000101000000", "0")  # dates, times, the serial number


@pytest.mark.parametrize("kind", KINDS)
def test_each_attribute_is_treated_as_the_profile_says(folder, kind):
    document = pydicom.dcmread(folder / f"{kind}.dcm")
    pseudonym = document.StudyInstanceUID[5:17]
    for element in elements_of(document):
        action, where = ACTIONS.get(element.keyword), f"{element.keyword}: {element.value}"
        assert action != "X", where
        if action == "Z":
            assert not element.value or element.value == pseudonym, where
        if action == "D" or element.VR in ("DA", "TM", "DT"):
            assert element.value in (*DUMMIES, "", None), where
        if action == "U":
            assert element.value.startswith("2.25."), where
    assert document.PatientID == document.PatientName == pseudonym


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_says_that_and_how_the_identity_was_removed(folder, kind):
    document = pydicom.dcmread(folder / f"{kind}.dcm")
    assert document.PatientIdentityRemoved == "YES"
    assert document.LongitudinalTemporalInformationModified == "REMOVED"
    assert [item.CodeValue for item in document.DeidentificationMethodCodeSequence] == [
        "113100",
        "113104",
        "113103",
        "113105",
    ]


def test_uids_are_replaced_and_always_by_the_same_ones(folder, report, tmp_path):
    write_reports(report, KINDS, tmp_path, deidentify=True)
    studies = set()
    for kind in KINDS:
        once, again = (pydicom.dcmread(place / f"{kind}.dcm") for place in (folder, tmp_path))
        uids = [
            [element.value for element in elements_of(document) if element.VR == "UI"]
            for document in (once, again)
        ]
        assert uids[0] == uids[1]
        assert all(uid.startswith(("2.25.", "1.2.840.10008.")) for uid in uids[0])
        studies.add(once.StudyInstanceUID)
    assert len(studies) == 1


def test_the_rule_for_uids_is_the_one_that_is_published(folder):
    # printf clnet/deidentified/1.2.777.2 | sha256sum, the first 32 digits as a decimal number
    study = pydicom.dcmread(folder / "measurements.dcm").StudyInstanceUID
    assert study == f"2.25.{int('dee8d049d023a9a8ce0e04db6393de9c', 16)}"


@pytest.mark.parametrize("kind", ["measurements", "cad", "presentation"])
def test_the_findings_are_those_of_the_other_reports(folder, report, kind):
    ((lesions, findings, uids),) = expected_of(report, {"L": LINKED})
    document = pydicom.dcmread(folder / "picture.dcm")
    replaced = [item.ReferencedSOPInstanceUID for item in document.SourceImageSequence]
    assert not set(replaced) & set(uids.values())
    assert_same_lesions(kind, folder, [(lesions, findings, dict(zip(uids, replaced, strict=True)))])


@needs("dciodvfy", "dicom3tools")
@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_still_valid(folder, kind):
    assert errors_of_dciodvfy(folder / f"{kind}.dcm") == []
