"""What a person sees of the reports in OHIF: the right boxes with the right names, at the right places."""

import os
import shutil
import time
from functools import partial

import numpy as np
import pydicom
import pytest
from browser import missing_programs, open_browser
from ohif import DIST, OhifPage, serve_ohif
from PIL import Image
from read_by import read_by
from servers import DICOMWEB_PLUGIN, ask_orthanc, start_orthanc, wait_for
from shown_studies import STUDIES, studies  # noqa: F401

missing = missing_programs() or not (shutil.which("Orthanc") and DICOMWEB_PLUGIN.exists() and DIST.exists())
pytestmark = pytest.mark.skipif(
    bool(missing) and not os.environ.get("CI"),
    reason="needs OHIF (./scripts/setup_ohif), Orthanc and chromium (./scripts/test_viewers installs them)",
)

NEAR = 2  # pixels of the page
PATIENCE = 60  # seconds until a page has stopped to move


@pytest.fixture(scope="module")
def page(studies, tmp_path_factory):  # noqa: F811
    """OHIF over an archive that holds all images and reports."""
    folder = tmp_path_factory.mktemp("archive")
    with (
        start_orthanc(folder) as orthanc,
        serve_ohif(orthanc) as address,
        open_browser(folder / "profile", (1500, 950), webgl=True) as browser,
    ):
        store = partial(ask_orthanc, orthanc, "/instances")
        for study in studies.values():
            for file in [*study.folder.glob("*.dcm"), *study.reports.glob("*.dcm")]:
                assert store(file.read_bytes())["Status"] == "Success"
        yield OhifPage(browser, address)


def open_study(page, study):
    uids = sorted({image.StudyInstanceUID for image in study.images.values()})
    page.open(uids, len(study.images) + len(list(study.reports.glob("*.dcm"))))


def place_of(image, pixels):
    """Where on a canvas an image is that fits into it: (scale, (x, y) of its corner); None if it is not.

    image: [rows, columns]; pixels: of the canvas [H, W].
    """
    (rows, columns), (height, width) = image.shape, pixels.shape
    scale = min(height / rows, width / columns)
    left, top = (width - scale * columns) / 2, (height - scale * rows) / 2
    to_image = (1 / scale, 0, -left / scale, 0, 1 / scale, -top / scale)
    if not pixels.any():  # nothing is drawn yet
        return None
    expected = Image.fromarray(image.astype(np.float32)).transform(
        (width, height), Image.Transform.AFFINE, to_image, Image.Resampling.BILINEAR
    )
    likeness = {
        (x, y): np.corrcoef(np.roll(expected, (y, x), (0, 1)).ravel(), pixels.ravel())[0, 1]
        for x in (-NEAR, 0, NEAR)
        for y in (-NEAR, 0, NEAR)
    }
    found = max(likeness, key=likeness.get) == (0, 0) and likeness[0, 0] > 0.9
    return (scale, (left, top)) if found else None


def distance(region, box, study, page):
    """How far the edges of a box on the page are from those of the findings, in pixels of the page."""
    (image,) = (image for image in study.images.values() if image.SOPInstanceUID == box.image)
    place = place_of(image.pixel_array, page.pixels())
    if region.image != box.image or place is None:
        return np.inf
    scale, corner = place
    expected = scale * np.array(box.corners) + np.tile(corner, 2)
    return np.abs(expected - region.box).max()


def assert_comes_to(box, study, page, read):
    """A box of the page, which `read` returns, is at its place when the page has stopped to move."""
    until = time.monotonic() + PATIENCE
    while (far := distance(read(), box, study, page)) > NEAR and time.monotonic() < until:
        time.sleep(0.5)
    assert far <= NEAR, box.label


@read_by("Orthanc", "stores it", "measurements", "presentation", "picture", "cad")
@read_by("OHIF", "lists it with what was found; cannot show it", "presentation", "cad")
@pytest.mark.parametrize("name", STUDIES)
def test_every_series_says_what_it_is_and_what_was_found(page, studies, name):  # noqa: F811
    study = studies[name]
    open_study(page, study)
    counts = ", ".join(f"{len(lesions) or 'none'} {side}" for side, (lesions, *_) in study.breasts.items())
    words = {"measurements": "masses", "presentation": "boxes", "picture": "picture", "cad": "CAD"}
    for kind, what in words.items():
        entries = [entry for entry in page.series() if f"CL-Net {what}: {counts}. " in entry]
        assert len(entries) == len(list(study.reports.glob(f"{kind}*.dcm")))
        assert all("not for patients" in entry for entry in entries)
    assert page.errors() == []


@read_by(
    "OHIF",
    "every box, its label, its place to two pixels of the page; no error in the console",
    "measurements",
)
@pytest.mark.parametrize("name", ["phantom", "films"])
def test_boxes_are_at_their_places_under_their_names(page, studies, name):  # noqa: F811
    study = studies[name]
    assert {box.elsewhere for box in study.boxes} >= {"also in MLO", "not seen in MLO"}
    open_study(page, study)
    page.show("CL-Net masses")
    on_first_image = [box for box in study.boxes if box.image == study.boxes[0].image]
    assert {region.lines[0] for region in page.preview()} == {box.on_image for box in on_first_image}
    for box in on_first_image:
        assert_comes_to(box, study, page, lambda box=box: previewed(page, box))
    page.track()
    assert sorted(page.measurements()) == sorted(box.label for box in study.boxes)
    for box in study.boxes:
        page.select(box.label)
        assert_comes_to(box, study, page, lambda box=box: page.selected(box.label))
    assert page.errors() == []


def previewed(page, box):
    (region,) = (region for region in page.preview() if region.lines[0] == box.on_image)
    return region


@read_by("OHIF", "without lesions: *no masses found* in words, and the notice", "measurements")
def test_a_study_without_lesions_says_so_in_words(page, studies):  # noqa: F811
    open_study(page, studies["phantom without lesions"])
    page.show("CL-Net masses")
    wait_for(lambda: "Qualitative Evaluations" in page.text())
    for words in (
        "Mammographic breast mass: Not detected",
        "Left breast: no masses found in CC and MLO",
        "Right breast: no masses found in CC and MLO",
        "Phantom model, not for patients",
    ):
        assert words in page.text()
    assert page.errors() == []


@read_by("OHIF", "shows it; no error in the console", "picture")
def test_the_picture_is_shown(page, studies):  # noqa: F811
    study = studies["phantom"]
    open_study(page, study)
    page.show("CL-Net picture")
    picture = pydicom.dcmread(study.reports / "picture.dcm")
    wait_for(lambda: page.image() == picture.SOPInstanceUID)
    wait_for(lambda: place_of(picture.pixel_array.mean(axis=2), page.pixels()))
    assert page.errors() == []
