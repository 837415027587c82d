"""Studies to report on: findings that are made up, of phantom images and of films."""

from pathlib import Path

import numpy as np
import pydicom
import pytest

from clnet.data.reader import read_image
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import Detections, Link, PairFindings
from clnet.phantom import PhantomSettings, make_phantom
from clnet.reports.picture import findings_picture
from clnet.reports.study import BreastReport, StudyReport, report_source

FILMS = Path(__file__).parent.parent / "data" / "cbis-ddsm"
MIN_SCORE = 0.3
NOTICE = "Not for patients"

CC = Detections(np.array([[10.25, 20.5, 30.75, 44], [50, 60, 71.5, 80]]), np.array([0.91, 0.72]))
MLO = Detections(np.array([[12, 22, 33.3, 41], [5, 70, 9, 75]]), np.array([0.55, 0.05]))
LINKED = PairFindings("p", CC, MLO, (Link(0, 0, 0.875), Link(1, None, 0.6)))
NOT_LINKED = PairFindings("p", CC, MLO)
NOTHING = PairFindings("p", Detections(), Detections())
ONE_VIEW = PairFindings("p", None, MLO)
# What was found in each breast of a study.
FOUND = {
    "linked and nothing": {"L": LINKED, "R": NOTHING},
    "not linked and one view": {"L": NOT_LINKED, "R": ONE_VIEW},
    "one breast": {"R": LINKED},
    "nothing found": {"L": NOTHING, "R": NOTHING},
}


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """The files of a study by side and view: {"phantom": …, "film": …}."""
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, PhantomSettings(2, rows=128, columns=96), workers=1)
    phantom = {}
    for file in sorted((folder / "images").glob("*.dcm")):
        tags = pydicom.dcmread(file, stop_before_pixels=True)
        phantom[tags.ImageLaterality, tags.ViewPosition.lower()] = file
    sides = {"L": "left", "R": "right"}
    film = {(side, view): FILMS / f"{sides[side]}_{view}.dcm" for side, view in phantom}
    return {"phantom": phantom, "film": film}


def source_of(file):
    return report_source(read_image(file).tags, file)


def breast_of(side, findings, files):
    sources = {view: source_of(files[side, view]) for view in findings.views}
    lesions = tuple(merge_into_lesions(findings, MIN_SCORE))
    pictures = {view: np.zeros((64, 48), np.float32) if view in sources else None for view in ("cc", "mlo")}
    drawn = findings_picture(pictures, lesions, "", side=side, height=64)
    return BreastReport(side, lesions, sources, drawn)


def study_of(found, files, version="1.0 abc"):
    breasts = tuple(breast_of(side, findings, files) for side, findings in found.items())
    return StudyReport(breasts, version, NOTICE, MIN_SCORE)


def expected_of(report, found):
    """What `assert_same_lesions` compares with."""
    return [
        (
            merge_into_lesions(findings, MIN_SCORE),
            findings,
            {view: source.SOPInstanceUID for view, source in breast.sources.items()},
        )
        for breast, findings in zip(report.breasts, found.values(), strict=True)
    ]
