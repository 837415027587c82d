import json
from pathlib import Path

import numpy as np
import pytest
from dicom_files import ramp, save
from PIL import Image

from clnet.data.datalist import read_datalist
from clnet.data.pictures import GAP
from clnet.preprocessing.inspection import (
    SHEET_TILES,
    TILE,
    contact_sheet,
    describe,
    inspect_image,
    inspect_images,
)

FILM = Path(__file__).parents[1] / "data" / "cbis-ddsm"

# Found by eye in the pictures: (x_min, y_min, x_max, y_max) of the text labels, as parts of width and height.
LABELS = {
    "left_cc.dcm": (0.69, 0.09, 0.84, 0.21),
    "left_mlo.dcm": (0.72, 0.10, 0.93, 0.26),
    "right_cc.dcm": (0.0, 0.08, 0.17, 0.18),
    "right_mlo.dcm": (0.0, 0.04, 0.23, 0.18),
}


@pytest.fixture(scope="module")
def film():
    """What is seen in the four real views, by file name."""
    return {Path(seen.facts["file"]).name: seen for seen in inspect_images([FILM], draw=True)}


def test_view_and_laterality_of_real_film_are_right(film):
    seen = {name: (one.facts["laterality"], one.facts["view"]) for name, one in film.items()}
    assert seen == {
        "left_cc.dcm": ("L", "CC"),
        "left_mlo.dcm": ("L", "MLO"),
        "right_cc.dcm": ("R", "CC"),
        "right_mlo.dcm": ("R", "MLO"),
    }


def test_the_breast_box_of_real_film_holds_the_masses_whole(film):
    datalist = read_datalist(FILM)
    views = [view for pairs in datalist.sections.values() for pair in pairs for view in pair.views.values()]
    assert sum(len(view.boxes) for view in views) == 6
    for view in views:
        x_min, y_min, x_max, y_max = film[view.image.name].facts["breast_box"]
        assert (view.boxes >= [x_min, y_min, x_min, y_min]).all()
        assert (view.boxes <= [x_max, y_max, x_max, y_max]).all()


@pytest.mark.parametrize("name", LABELS)
def test_the_breast_box_of_real_film_leaves_the_label_out(film, name):
    facts = film[name].facts
    width, height = facts["columns"], facts["rows"]
    left, _, right, _ = np.multiply(LABELS[name], [width, height, width, height])
    x_min, _, x_max, _ = facts["breast_box"]
    assert x_max <= left or right <= x_min


def test_the_chest_wall_of_real_film_is_brought_to_the_left(film):
    assert {name: (one.facts["chest_side"], one.facts["flipped"]) for name, one in film.items()} == {
        "left_cc.dcm": ("left", False),
        "left_mlo.dcm": ("left", False),
        "right_cc.dcm": ("right", True),
        "right_mlo.dcm": ("right", True),
    }


def test_the_facts_are_plain_json_with_the_promised_keys(film):
    facts = json.loads(json.dumps(film["left_cc.dcm"].facts))
    assert set(facts) >= {
        *("file", "view", "laterality", "rows", "columns", "bits", "spacing_mm", "photometric", "voi"),
        *("breast_box", "chest_side", "flipped", "steps", "warnings", "refused"),
    }
    assert facts["refused"] is None
    assert all(isinstance(edge, int) for edge in facts["breast_box"])


def test_the_chain_is_told_from_decoding_to_padding(film):
    steps = film["right_cc.dcm"].facts["steps"]
    assert "decoded" in steps[0]
    assert any("mirrored" in step for step in steps)
    assert "padded" in steps[-1]


def test_one_bad_file_does_not_stop_the_others(tmp_path):
    good = save(tmp_path / "good.dcm")
    torn = tmp_path / "torn.dcm"
    torn.write_bytes(good.read_bytes()[:-100])
    paths = [tmp_path / "missing.dcm", torn, good]
    missing, damaged, fine = (one.facts for one in inspect_images(paths))
    assert "missing.dcm" in missing["refused"]
    assert "torn.dcm" in damaged["refused"]
    assert damaged["view"] == "CC"  # what its header still tells
    assert damaged["breast_box"] is None
    assert fine["refused"] is None


def test_a_folder_gives_its_images_in_order_and_passes_over_the_rest(tmp_path):
    (tmp_path / "deep").mkdir()
    save(tmp_path / "b.dcm")
    save(tmp_path / "deep" / "a")
    (tmp_path / "notes.txt").write_text("no image")
    assert [Path(one.facts["file"]).name for one in inspect_images([tmp_path])] == ["b.dcm", "a"]


def test_a_folder_without_images_is_refused_not_passed_over_in_silence(tmp_path):
    (only,) = inspect_images([tmp_path], draw=True)
    assert "folder without" in only.facts["refused"]


def test_warnings_reach_the_facts_and_the_words(tmp_path):
    facts = inspect_image(save(tmp_path / "black.dcm", pixels=ramp(80, 50, 0, 0))).facts
    assert any("no breast found" in warning for warning in facts["warnings"])
    assert "no breast found" in describe(facts)


def test_the_words_say_what_a_person_asks_first(film):
    words = describe(film["right_mlo.dcm"].facts)
    for expected in (
        "right_mlo.dcm",
        "MLO, laterality R",
        "MONOCHROME2",
        "chest wall right, mirrored",
        "step 1",
    ):
        assert expected in words


def test_a_refusal_is_told_in_words(tmp_path):
    facts = inspect_image(tmp_path / "missing.dcm").facts
    assert "refused" in describe(facts)
    assert "missing.dcm" in describe(facts)


def test_no_patient_identity_leaves(tmp_path):
    one = inspect_image(save(tmp_path / "a.dcm"))
    assert "secret" not in (json.dumps(one.facts) + describe(one.facts)).lower()


def test_the_picture_has_a_tile_for_each_image_refused_or_not(film, tmp_path):
    seen = [*film.values(), inspect_image(tmp_path / "missing.dcm", draw=True)]
    sheet = contact_sheet(seen)
    width, height = TILE[0] + 2 * GAP, TILE[1] + 2 * GAP
    assert sheet.size == (3 * width, 2 * height)
    for index in range(5):
        x, y = index % 3 * width, index // 3 * height
        assert np.asarray(sheet.crop((x, y, x + width, y + height))).std() > 5
    assert contact_sheet([]).size == (width, height)


def test_a_large_folder_gives_a_picture_of_the_first_images(tmp_path):
    Image.fromarray(ramp(8, 8).astype(np.uint8)).save(tmp_path / "0.png")
    for number in range(1, SHEET_TILES + 2):
        (tmp_path / f"{number}.png").hardlink_to(tmp_path / "0.png")
    seen = inspect_images([tmp_path], size=(16, 16), draw=True)
    assert len(seen) == SHEET_TILES + 2
    assert sum(one.tile is not None for one in seen) == SHEET_TILES
    rows = SHEET_TILES // 3 + 1  # the last one says "and 2 more"
    assert contact_sheet(seen).height == rows * (TILE[1] + 2 * GAP)
