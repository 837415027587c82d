"""Presentation states leave grey values as they are, and draw boxes where they are."""

import subprocess

import numpy as np
import pydicom
import pytest
from dicom_files import mammogram, ramp, save
from report_files import needs
from report_studies import FOUND, LINKED, images, source_of, study_of  # noqa: F401

from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, PairFindings
from clnet.reports.dicom import write_reports
from clnet.reports.presentation import presentation_states
from clnet.reports.study import BreastReport, StudyReport


def report_on(files, findings=LINKED):
    lesions = tuple(merge_into_lesions(findings, 0.3))
    return StudyReport((BreastReport("L", lesions, {v: source_of(f) for v, f in files.items()}),), "1", "", 0)


def two_views(folder, cc, mlo):
    """A CC and an MLO mammogram of one study with these tags."""
    return {
        "cc": save(folder / "cc.dcm", mammogram(ramp(100, 90), **cc)),
        "mlo": save(folder / "mlo.dcm", mammogram(ramp(100, 90), ViewPosition="MLO", **mlo)),
    }


def referenced(state):
    return [
        image.ReferencedSOPInstanceUID
        for series in state.ReferencedSeriesSequence
        for image in series.ReferencedImageSequence
    ]


def test_one_object_serves_all_images_of_a_study_with_a_layer_for_each(images):  # noqa: F811
    report = study_of(FOUND["linked and nothing"], images["phantom"])
    (state,) = presentation_states(report)
    assert referenced(state) == [source.SOPInstanceUID for source in report.sources]
    assert [layer.GraphicLayer for layer in state.GraphicLayerSequence] == ["L_CC", "L_MLO", "R_CC", "R_MLO"]
    assert [item.GraphicLayer for item in state.GraphicAnnotationSequence] == [
        "L_CC",
        "L_MLO",
        "R_CC",
        "R_MLO",
    ]


def test_films_that_are_studies_of_their_own_get_an_object_and_a_series_each(images):  # noqa: F811
    report = study_of(FOUND["linked and nothing"], images["film"])
    states = presentation_states(report)
    assert [state.StudyInstanceUID for state in states] == [s.StudyInstanceUID for s in report.sources]
    assert len({state.SeriesInstanceUID for state in states}) == len({s.SOPInstanceUID for s in states}) == 4


def test_images_of_different_size_and_window_share_an_object(tmp_path):
    files = two_views(
        tmp_path, {"WindowCenter": 7, "WindowWidth": 9}, {"WindowCenter": 70, "WindowWidth": 90}
    )
    small = mammogram(ramp(80, 60), ViewPosition="MLO", WindowCenter=70, WindowWidth=90)
    files["mlo"] = save(tmp_path / "mlo.dcm", small)
    (state,) = presentation_states(report_on(files))
    areas = [list(area.DisplayedAreaBottomRightHandCorner) for area in state.DisplayedAreaSelectionSequence]
    assert areas == [[90, 100], [60, 80]]
    windows = [(item.WindowCenter, item.WindowWidth) for item in state.SoftcopyVOILUTSequence]
    assert windows == [(7, 9), (70, 90)]
    for items in (state.DisplayedAreaSelectionSequence, state.SoftcopyVOILUTSequence):
        uids = [item.ReferencedImageSequence[0].ReferencedSOPInstanceUID for item in items]
        assert uids == referenced(state)


@pytest.mark.parametrize(
    "other", [{"PhotometricInterpretation": "MONOCHROME1"}, {"RescaleSlope": 2, "RescaleIntercept": 1}]
)
def test_images_that_cannot_share_an_object_get_one_each(tmp_path, other):
    states = presentation_states(report_on(two_views(tmp_path, {}, other)))
    assert [len(referenced(state)) for state in states] == [1, 1]
    assert len({state.SeriesInstanceUID for state in states}) == 1
    assert [state.InstanceNumber for state in states] == [1, 2]
    inverse = "PhotometricInterpretation" in other
    assert [s.PresentationLUTShape for s in states] == ["IDENTITY", "INVERSE" if inverse else "IDENTITY"]
    assert [s.get("RescaleSlope") for s in states] == [None, other.get("RescaleSlope")]


def test_a_box_that_passes_the_edge_ends_there_and_labels_stay_in_the_image(tmp_path):
    boxes = Detections(np.array([[-3, 10, 20, 30], [70, 80, 95, 104], [2, 2, 88, 98]]), np.full(3, 0.9))
    files = {"cc": save(tmp_path / "cc.dcm", mammogram(ramp(100, 90)))}
    (state,) = presentation_states(report_on(files, PairFindings("p", boxes)))
    (annotation,) = state.GraphicAnnotationSequence
    drawn = [np.array(graphic.GraphicData).reshape(-1, 2) for graphic in annotation.GraphicObjectSequence]
    assert [[*points.min(0), *points.max(0)] for points in drawn] == [
        [0, 10, 20, 30],
        [70, 80, 90, 100],
        [2, 2, 88, 98],
    ]
    for text in annotation.TextObjectSequence[1:]:
        corners = [*text.BoundingBoxTopLeftHandCorner, *text.BoundingBoxBottomRightHandCorner]
        assert 0 <= corners[0] < corners[2] <= 90 and 0 <= corners[1] < corners[3] <= 100


@needs("dcmp2pgm", "dcmtk")
@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_dcmtk_shows_an_image_with_its_state_as_it_shows_it_without(tmp_path, photometric):
    image = mammogram(
        ramp(100, 90), WindowCenter=2000, WindowWidth=1500, PhotometricInterpretation=photometric
    )
    image.PresentationLUTShape = "INVERSE" if photometric == "MONOCHROME1" else "IDENTITY"
    files = {"cc": save(tmp_path / "cc.dcm", image)}
    write_reports(report_on(files, PairFindings("p", Detections())), ["presentation"], tmp_path)

    def shown(*options):
        command = ["dcmp2pgm", *options, files["cc"], tmp_path / "shown.pgm"]
        subprocess.run(command, check=True, capture_output=True)
        return np.frombuffer((tmp_path / "shown.pgm").read_bytes()[-9000:], np.uint8).astype(int)

    with_state = shown("-p", tmp_path / "presentation.dcm")
    assert np.ptp(with_state) > 200
    assert np.abs(with_state - shown()).max() <= 1


def test_pydicom_reads_back_the_layers_and_highdicom_the_graphics(images, tmp_path):  # noqa: F811
    write_reports(study_of(FOUND["linked and nothing"], images["phantom"]), ["presentation"], tmp_path)
    state = pydicom.dcmread(tmp_path / "presentation.dcm")
    assert state.SOPClassUID.name == "Grayscale Softcopy Presentation State Storage"
    assert (state.Modality, state.ContentLabel) == ("PR", "MASSES")
