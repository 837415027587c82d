"""`clnet check`: a datalist against its images."""

import json

import pytest
from dicom_files import mammogram, ramp, save
from PIL import Image

from clnet.cli.main import main
from clnet.converters.check import sample_pairs
from clnet.data.datalist import Datalist
from clnet.data.pair import Pair, View


@pytest.fixture
def folder(tmp_path):
    """Two pairs with masses; images of 40 rows and 30 columns."""
    for name in ("1_cc", "1_mlo", "2_cc"):
        save(tmp_path / f"{name}.dcm", mammogram(ramp(40, 30)))
    view = {"image": "1_cc.dcm", "size": [40, 30], "boxes": [[5, 6, 20, 25]], "lesion_ids": ["1"]}
    pairs = [
        {
            "pair_id": "1",
            "patient_id": "1",
            "laterality": "L",
            "cc": view,
            "mlo": view | {"image": "1_mlo.dcm"},
        },
        {"pair_id": "2", "patient_id": "2", "laterality": "L", "cc": {"image": "2_cc.dcm"}},
    ]
    write(tmp_path, {"training": pairs[:1], "test": pairs[1:]})
    return tmp_path


def write(folder, sections):
    (folder / "datalist.json").write_text(json.dumps({"schema": 1, "name": "x", **sections}))


def changed(folder, change):
    content = json.loads((folder / "datalist.json").read_text())
    change(content)
    (folder / "datalist.json").write_text(json.dumps(content))


def test_a_valid_datalist_has_no_problems_and_a_picture(folder, capsys):
    assert main(["check", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "checked    2 pairs, 3 images: no problems" in said
    with Image.open(folder / "check.png") as picture:
        assert picture.width > 600


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d["test"][0]["cc"].update(image="gone.dcm"), "test, pair 2, cc: "),
        (lambda d: d["test"][0]["cc"].update(image="datalist.json"), "not a DICOM file"),
        (lambda d: d["test"][0]["cc"].update(size=[30, 40]), "is 40 × 30, the datalist says 30 × 40"),
        (
            lambda d: d["test"][0]["cc"].update(boxes=[[1, 1, 31, 9]], lesion_ids=["1"]),
            "test, pair 2, cc: box 0 is [1.0, 1.0, 31.0, 9.0], outside the image of 30 columns",
        ),
        (
            lambda d: d["test"][0]["cc"].update(image="1_mlo.dcm"),
            "1_mlo.dcm is also in training, pair 1, mlo",
        ),
    ],
)
def test_every_problem_is_named_with_its_place(folder, change, problem, capsys):
    changed(folder, change)
    assert main(["check", str(folder / "datalist.json")]) == 1
    said = capsys.readouterr().out
    assert problem in said
    assert "no problems" not in said


def test_a_patient_in_two_sections_is_an_error(folder, capsys):
    changed(folder, lambda d: d["test"][0].update(patient_id="1"))
    assert main(["check", str(folder)]) == 2
    assert "is in training and in test" in capsys.readouterr().err


def test_an_image_with_truncated_pixels_is_named_if_it_is_drawn(folder, capsys):
    file = folder / "2_cc.dcm"
    file.write_bytes(file.read_bytes()[:-100])
    assert main(["check", str(folder)]) == 1
    assert "pair 2: " in capsys.readouterr().out


def test_the_sample_shows_each_source_of_links_first(tmp_path):
    view = View(tmp_path / "x.dcm", [[1, 2, 3, 4]], ("1",))
    pairs = [Pair(f"{i}", f"{i}", "L", cc=View(tmp_path / "x.dcm")) for i in range(5)]
    pairs += [Pair(f"a{i}", f"a{i}", "L", view, view, {"1": "geometric"}) for i in range(3)]
    pairs += [Pair("s", "s", "L", view, view, {"1": "single_pair"})]
    chosen = sample_pairs(Datalist("x", {"training": pairs}), 4)
    assert [pair.pair_id for pair in chosen] == ["a0", "s", "0", "a1"]
