"""The Secondary Capture shows the picture of each breast, and is never taken for a mammogram."""

from dataclasses import replace

import numpy as np
import pydicom
from report_studies import FOUND, NOTICE, images, study_of  # noqa: F401

from clnet.data.header import read_header
from clnet.data.pictures import GAP
from clnet.data.study import why_not_standard
from clnet.reports.dicom import write_reports
from clnet.reports.secondary_capture import picture_captures


def test_the_breasts_are_shown_pixel_by_pixel_the_right_one_on_the_left(images, tmp_path):  # noqa: F811
    report = study_of(FOUND["linked and nothing"], images["phantom"])
    assert write_reports(report, ["picture"], tmp_path) == ["picture.dcm"]
    pixels = pydicom.dcmread(tmp_path / "picture.dcm").pixel_array
    left, right = (np.asarray(breast.picture) for breast in report.breasts)
    rows, columns, _ = left.shape
    assert (pixels[GAP:][:rows, GAP:][:, :columns] == right).all()
    assert (pixels[GAP:][:rows, columns + 3 * GAP :][:, :columns] == left).all()
    assert not (left == right).all()


def test_it_says_what_it_is_made_from_and_that_it_names_nobody(images):  # noqa: F811
    report = study_of(FOUND["linked and nothing"], images["phantom"])
    (capture,) = picture_captures(report)
    made_from = [item.ReferencedSOPInstanceUID for item in capture.SourceImageSequence]
    assert made_from == [source.SOPInstanceUID for source in report.sources]
    assert (capture.BurnedInAnnotation, capture.DerivationDescription) == ("NO", NOTICE)
    assert capture.ImageType[0] == "DERIVED"


def test_a_breast_that_must_not_be_drawn_is_left_out(images):  # noqa: F811
    report = study_of(FOUND["linked and nothing"], images["phantom"])
    left, right = report.breasts
    (whole,), (part,) = (
        picture_captures(replace(report, breasts=breasts))
        for breasts in ((left, right), (replace(left, picture=None), right))
    )
    assert part.Columns == whole.Columns // 2
    assert picture_captures(replace(report, breasts=(replace(left, picture=None),))) == []


def test_it_is_no_mammogram_to_analyse(images, tmp_path):  # noqa: F811
    write_reports(study_of(FOUND["linked and nothing"], images["phantom"]), ["picture"], tmp_path)
    header = read_header(tmp_path / "picture.dcm")
    assert "not MG" in why_not_standard(header, secondary_capture=True)
