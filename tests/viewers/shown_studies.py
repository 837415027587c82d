"""Studies of the phantom and of real films, with what `clnet predict` writes about them."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pydicom
import pytest

from clnet.cli.main import main
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import read_findings
from clnet.phantom import PhantomSettings, make_phantom

FILMS = Path(__file__).parent.parent / "data" / "cbis-ddsm"
# The phantom and the films have a lesion in both views and another one in CC alone.
STUDIES = {
    "phantom": ["--model", "phantom", "--min-score", "0.05"],
    "phantom without lesions": ["--model", "phantom", "--min-score", "1"],
    "films": ["--secondary-capture"],
}


@dataclass(frozen=True)
class Box:
    """A box that a report must show.

    Attributes:
        image: SOPInstanceUID.
        corners: xyxy in pixels of the image.
        name, score, elsewhere: such as "L1 CC", 0.87, "also in MLO".
    """

    image: str
    corners: tuple[float, ...]
    name: str
    score: float
    elsewhere: str

    @property
    def label(self):
        """In a list of measurements."""
        return f"{self.name} {self.score:.2f}, {self.elsewhere}"

    @property
    def on_image(self):
        """Beside the box."""
        return f"{self.name}, {self.elsewhere}: {100 * self.score:.2f} %"


@dataclass(frozen=True)
class ShownStudy:
    """The folder of the images, and the output of `clnet predict`."""

    folder: Path
    output: Path

    @property
    def reports(self):
        """The folder of the DICOM reports."""
        (folder,) = (self.output / "studies").iterdir()
        return folder

    @cached_property
    def images(self):
        """The images by breast and view."""
        listed = json.loads((self.output / "coco.json").read_text())["images"]
        return {
            (image["laterality"], image["view"]): pydicom.dcmread(self.folder / image["file_name"])
            for image in listed
        }

    @cached_property
    def breasts(self):
        """By side: (lesions, findings, {view: SOPInstanceUID}), from findings.json."""
        findings = {pair.pair_id: pair for pair in read_findings(self.output / "findings.json")}
        summary = json.loads((self.output / "summary.json").read_text())
        breasts = {}
        for breast in summary["analysed"]:
            side, found = breast["laterality"], findings[breast["pair_id"]]
            uids = {view: self.images[side, view].SOPInstanceUID for view in breast["views"]}
            breasts[side] = merge_into_lesions(found, summary["min_score"]), found, uids
        return breasts

    @cached_property
    def boxes(self):
        """What a report must show."""
        boxes = []
        for side, (lesions, _, uids) in self.breasts.items():
            for number, lesion in enumerate(lesions, start=1):
                for view, seen in lesion.views.items():
                    (other,) = {"CC", "MLO"} - {view.upper()}
                    elsewhere = f"{'also' if len(lesion.views) == 2 else 'not seen'} in {other}"
                    name = f"{side}{number} {view.upper()}"
                    boxes.append(Box(uids[view], tuple(map(float, seen.box)), name, seen.score, elsewhere))
        return boxes


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """The studies by their names."""
    made, output = tmp_path_factory.mktemp("images"), tmp_path_factory.mktemp("output")
    make_phantom(made, PhantomSettings(4), workers=1)  # two studies
    folders = {"films": FILMS}
    for number, name in enumerate(("phantom without lesions", "phantom")):
        folders[name] = made / name
        folders[name].mkdir()
        for file in (made / "images").glob(f"0000{number}_*.dcm"):
            file.rename(folders[name] / file.name)
    for name, words in STUDIES.items():
        reports = ["--reports", "measurements,presentation,picture,cad", "--workers", "0"]
        assert main(["predict", str(folders[name]), "--output", str(output / name), *words, *reports]) == 0
    return {name: ShownStudy(folders[name], output / name) for name in STUDIES}
