"""Another patient's image as the second view: where results say so, and that they say nothing else."""

import json

import numpy as np
import pydicom
import pytest
from PIL import Image, ImageColor

import clnet
from clnet.cli.main import main
from clnet.data.pictures import ALARM
from clnet.data.reader import read_image
from clnet.findings.types import read_findings
from clnet.phantom import PhantomSettings, make_phantom

WORDS = "the two views may not be of one breast (consistency "


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The left breast of one patient with the MLO of another, who are not alike, and its own right breast."""
    made, folder = tmp_path_factory.mktemp("phantom"), tmp_path_factory.mktemp("archive")
    make_phantom(made, PhantomSettings(4, rows=320, columns=224), workers=1)
    own = {path.name[6:-4]: path for path in sorted((made / "images").glob("00000_*.dcm"))}
    for name, path in own.items():
        dataset = pydicom.dcmread(path)
        if name == "L_MLO":
            stranger = pydicom.dcmread(made / "images" / "00001_L_MLO.dcm")
            assert (stranger.Rows, stranger.Columns) == (dataset.Rows, dataset.Columns)
            dataset.PixelData = stranger.PixelData
        dataset.save_as(folder / path.name)
    return folder


@pytest.fixture(scope="module")
def output(archive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "output"
    assert predict(archive, folder) == 0
    return folder


def predict(archive, output, *words):
    options = ["--model", "phantom", "--workers", "0", "--output", str(output)]
    return main(["predict", str(archive), *options, *words])


def analysed(output):
    """What the summary says of each breast, by side."""
    summary = json.loads((output / "summary.json").read_text())
    return {breast["laterality"]: breast for breast in summary["analysed"]}


def texts_of(report):
    """All comments of a structured report."""
    dataset = pydicom.dcmread(report)
    return [element.value for element in dataset.iterall() if element.keyword == "TextValue"]


def test_the_summary_warns_of_the_stranger_and_of_nobody_else(output):
    breasts = analysed(output)
    (warning,) = breasts["L"]["warnings"]
    assert warning.startswith(WORDS)
    assert breasts["R"]["warnings"] == []


def test_findings_have_the_score_of_each_pair(output):
    scores = {pair.pair_id: pair.consistency for pair in read_findings(output / "findings.json")}
    left, right = (scores[analysed(output)[side]["pair_id"]] for side in "LR")
    assert 0 <= left < clnet.load("phantom", "cpu").min_consistency <= right <= 1


def test_the_table_that_is_printed_says_it_beside_the_breast(archive, output, capsys):
    assert predict(archive, output) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if WORDS in line]
    assert [line.split()[1] for line in lines] == ["L"]


def test_the_picture_says_it(output):
    alarm = ImageColor.getrgb(ALARM)
    for side, is_warned in (("L", True), ("R", False)):
        file = output / "breasts" / analysed(output)[side]["breast_id"] / "picture.png"
        pixels = np.asarray(Image.open(file).convert("RGB"))
        assert (pixels == alarm).all(-1).any() == is_warned


def test_the_measurement_report_says_it_when_it_is_written_and_when_it_is_written_again(archive, output):
    def warned():
        (report,) = output.glob("studies/*/measurements.dcm")
        return [text for text in texts_of(report) if WORDS in text]

    first = warned()
    assert [text.partition(":")[0] for text in first] == ["Left breast"]
    predict(archive, output, "--reports", "picture")
    predict(archive, output)  # from the results that are there
    assert warned() == first


def test_python_says_it_of_arrays_and_not_of_one_view(archive):
    model = clnet.load("phantom", "cpu")
    images = {path.name[6:-4]: read_image(path).pixels for path in archive.iterdir()}
    (warned,) = model.predict((images["L_CC"], images["L_MLO"]), laterality="L")
    (fits,) = model.predict((images["R_CC"], images["R_MLO"]), laterality="R")
    (alone,) = model.predict((images["L_CC"], None), laterality="L")
    assert [warning.startswith(WORDS) for warning in warned.warnings] == [True]
    assert fits.warnings == alone.warnings == ()
    assert alone.findings.consistency is None
