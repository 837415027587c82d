"""Programs and libraries of others read the reports of whole studies as they were meant."""

import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
import test_ohif  # noqa: F401  it adds its rows to the table
from PIL import Image
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from read_by import PAGE, read_by, table
from report_files import (
    assert_same_lesions,
    complaints_of_dcmpschk,
    complaints_of_dsrdump,
    errors_of_dciodvfy,
    needs,
)
from shown_studies import STUDIES, studies  # noqa: F401

ROUND_TRIP = "lesions, boxes to half a pixel, scores and links are those of `findings.json`"


@pytest.fixture(params=STUDIES)
def study(request, studies):  # noqa: F811
    return studies[request.param]


def files(study, kind):
    found = sorted(study.reports.glob(f"{kind}*.dcm"))
    assert found, f"no {kind} in {study.reports}"
    return found


@read_by("highdicom", ROUND_TRIP, "measurements")
@read_by("pydicom", ROUND_TRIP.replace("scores and links", "scores to two digits"), "presentation")
@read_by("pydicom", ROUND_TRIP, "cad")
@pytest.mark.parametrize("kind", ["measurements", "presentation", "cad"])
def test_lesions_are_those_of_findings_json(study, kind):
    assert_same_lesions(kind, study.reports, study.breasts.values())


@read_by("pydicom", "every value is valid", "measurements", "presentation", "picture", "cad")
def test_pydicom_reads_every_value_and_finds_all_of_them_valid(study):
    with pydicom.config.strict_reading():
        for file in study.reports.glob("*.dcm"):
            assert len(list(pydicom.dcmread(file).iterall())) > 50, file


@read_by("dicom3tools `dciodvfy`", "no error", "measurements", "presentation", "picture", "cad")
@needs("dciodvfy", "dicom3tools")
def test_dciodvfy_finds_no_error(study):
    for file in study.reports.glob("*.dcm"):
        assert errors_of_dciodvfy(file) == [], file


@read_by("dcmtk `dsrdump`", "no error and no warning", "measurements", "cad")
@needs("dsrdump", "dcmtk")
def test_dsrdump_has_no_complaint(study):
    for kind in ("measurements", "cad"):
        for file in files(study, kind):
            assert complaints_of_dsrdump(file) == []


@read_by("dcmtk `dcmpschk`", "passes", "presentation")
@needs("dcmpschk", "dcmtk")
def test_dcmpschk_passes(study):
    for file in files(study, "presentation"):
        assert complaints_of_dcmpschk(file) == []


def annotations(state):
    """The boxes and the text that a presentation state draws on each image."""
    return {
        annotation.ReferencedImageSequence[0].ReferencedSOPInstanceUID: (
            [list(graphic.GraphicData) for graphic in annotation.get("GraphicObjectSequence", ())],
            [text.UnformattedTextValue for text in annotation.TextObjectSequence],
        )
        for annotation in state.GraphicAnnotationSequence
    }


@read_by(
    "dcmtk `dcmp2pgm`",
    "grey values stay as they are; it writes the same boxes and text again",
    "presentation",
)
@needs("dcmp2pgm", "dcmtk")
def test_dcmp2pgm_applies_presentation_states_and_writes_them_again(study, tmp_path):
    images = {image.SOPInstanceUID: image for image in study.images.values()}
    again, input_file, output_file = (tmp_path / name for name in ("again.dcm", "image.dcm", "image.pgm"))
    for file in files(study, "presentation"):
        state = pydicom.dcmread(file)
        assert annotations(state)
        for uid in annotations(state):
            image = pydicom.dcmread(images[uid].filename)
            if image.file_meta.TransferSyntaxUID.is_compressed:  # it does not read RLE
                image.decompress(generate_instance_uid=False)
            image.save_as(input_file)
            command = ["dcmp2pgm", "--pstate", file, "--save-pstate", again, input_file, output_file]
            done = subprocess.run(command, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            stored = apply_voi_lut(apply_modality_lut(image.pixel_array, image), image)
            drawn = np.asarray(Image.open(output_file))
            assert np.corrcoef(drawn.ravel(), stored.ravel())[0, 1] > 0.999
            assert annotations(pydicom.dcmread(again)) == annotations(state)


@read_by("highdicom", "all pixels", "picture")
@read_by("dcmtk `dcm2pnm`", "the same pixels", "picture")
@needs("dcm2pnm", "dcmtk")
def test_pictures_have_the_same_pixels_for_all(study, tmp_path):
    (file,) = files(study, "picture")
    subprocess.run(["dcm2pnm", file, tmp_path / "picture.ppm"], check=True)
    stored = pydicom.dcmread(file).pixel_array
    assert (np.asarray(Image.open(tmp_path / "picture.ppm")) == stored).all()
    assert (highdicom.imread(file).get_frame(1) == stored).all()
    singles = [Image.open(path).size for path in study.output.glob("breasts/*/picture.png")]
    assert stored.shape[1] >= sum(width for width, _ in singles)  # all breasts side by side


def test_the_table_of_the_page_is_what_is_checked():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(table()[0])
    assert lines[start : start + len(table())] == table()
    assert lines[start + len(table())] == ""
