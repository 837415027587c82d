import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pydicom
import pytest

from clnet.data.datalist import read_datalist
from clnet.phantom import DIFFICULTIES, PhantomError, PhantomSettings, make_phantom
from clnet.phantom.render import render
from clnet.phantom.scene import draw_breast, draw_scene

SETTINGS = PhantomSettings(pairs=12, seed=7, rows=160, columns=112)


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom")
    make_phantom(folder, SETTINGS, workers=1)
    return folder


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_whatever_the_number_of_workers(phantom, tmp_path):
    make_phantom(tmp_path, SETTINGS, workers=2)
    assert digests(tmp_path) == digests(phantom)


def test_another_seed_gives_other_images(phantom, tmp_path):
    make_phantom(tmp_path, PhantomSettings(pairs=1, seed=8, rows=160, columns=112), workers=1)
    assert digests(tmp_path)["images/00000_L_CC.dcm"] != digests(phantom)["images/00000_L_CC.dcm"]


def test_a_pair_does_not_depend_on_how_many_others_are_made(phantom, tmp_path):
    make_phantom(tmp_path, PhantomSettings(pairs=2, seed=7, rows=160, columns=112), workers=1)
    few, many = digests(tmp_path), digests(phantom)
    images = [name for name in few if name.endswith(".dcm")]
    assert len(images) == 4
    assert all(few[name] == many[name] for name in images)


def test_a_finished_phantom_is_not_made_again(phantom):
    image = phantom / "images" / "00000_L_CC.dcm"
    before = image.stat().st_mtime_ns
    make_phantom(phantom, SETTINGS)
    assert image.stat().st_mtime_ns == before


def test_an_unfinished_phantom_is_made_again(phantom, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(phantom, folder)
    (folder / "phantom.json").unlink()
    (folder / "datalist.json").unlink()
    (folder / "images" / "00001_R_MLO.dcm").write_bytes(b"cut off")
    make_phantom(folder, SETTINGS, workers=1)
    assert digests(folder) == digests(phantom)


def test_a_phantom_of_another_recipe_is_made_again(phantom, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(phantom, folder)
    recipe = json.loads((folder / "phantom.json").read_text())
    recipe["recipe"]["mimics"] += 1
    (folder / "phantom.json").write_text(json.dumps(recipe, indent=1) + "\n")
    (folder / "images" / "00001_R_MLO.dcm").write_bytes(b"of the other recipe")
    make_phantom(folder, SETTINGS, workers=1)
    assert digests(folder) == digests(phantom)


def test_the_datalist_has_all_sections_and_both_breasts_of_every_patient(phantom):
    datalist = read_datalist(phantom)
    pairs = [pair for section in datalist.sections.values() for pair in section]
    assert len(pairs) == 12
    assert all(datalist[section] for section in ("training", "validation", "test"))
    assert {pair.laterality for pair in pairs} == {"L", "R"}
    assert len({pair.patient_id for pair in pairs}) == 6


@pytest.mark.slow
def test_there_are_negatives_and_up_to_three_masses(tmp_path):
    make_phantom(tmp_path, PhantomSettings(pairs=30, seed=1, rows=96, columns=64), workers=1)
    datalist = read_datalist(tmp_path)
    pairs = [pair for section in datalist.sections.values() for pair in section]
    counts = {len(set(pair.cc.lesion_ids) | set(pair.mlo.lesion_ids)) for pair in pairs}
    assert counts == {0, 1, 2, 3}
    ids = [set(pair.cc.lesion_ids) ^ set(pair.mlo.lesion_ids) for pair in pairs]
    assert any(ids), "some masses show in one view only"


def test_tags_describe_the_file(phantom):
    for path in (phantom / "images").glob("*.dcm"):
        _, laterality, view = path.stem.split("_")
        ds = pydicom.dcmread(path)
        assert (ds.ImageLaterality, ds.ViewPosition, ds.Modality) == (laterality, view, "MG")
        assert ds.PresentationIntentType == "FOR PRESENTATION"
        assert float(ds.ImagerPixelSpacing[0]) == pytest.approx(210 / 160, abs=1e-5)


def test_the_four_views_of_a_patient_share_a_study_and_no_uid_otherwise(phantom):
    files = (phantom / "images").glob("00003_*.dcm")
    headers = [pydicom.dcmread(path, stop_before_pixels=True) for path in files]
    assert len(headers) == 4
    assert len({ds.StudyInstanceUID for ds in headers}) == 1
    assert len({ds.SeriesInstanceUID for ds in headers}) == 4
    assert len({ds.SOPInstanceUID for ds in headers}) == 4


def test_the_chest_wall_of_right_breasts_is_on_the_right(phantom):
    for path in (phantom / "images").glob("*.dcm"):
        tissue = pydicom.dcmread(path).pixel_array[80:] > 0  # below the marker
        left, right = tissue[:, 0].sum(), tissue[:, -1].sum()
        assert (left > right) == ("_L_" in path.name)


def test_masses_are_brighter_than_what_surrounds_them(phantom):
    rises = []
    for section in read_datalist(phantom).sections.values():
        for pair in section:
            for view in pair.views.values():
                image = pydicom.dcmread(view.image).pixel_array.astype(float)
                for x0, y0, x1, y1 in view.boxes.astype(int):
                    around = image[max(y0 - 6, 0) : y1 + 6, max(x0 - 6, 0) : x1 + 6].mean()
                    rises.append(image[y0:y1, x0:x1].mean() - around)
    assert np.mean(np.array(rises) > 0) > 0.9


@pytest.mark.skipif(
    not shutil.which("dciodvfy") and not os.environ.get("CI"), reason="needs dciodvfy (Debian: dicom3tools)"
)
def test_dciodvfy_finds_no_error_in_any_file(phantom):
    for path in sorted((phantom / "images").glob("*.dcm")):
        said = subprocess.run(["dciodvfy", str(path)], capture_output=True, text=True, check=False)
        errors = [line for line in (said.stdout + said.stderr).splitlines() if line.startswith("Error")]
        assert not errors, f"{path.name}: {errors}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": 0}, "pairs is 0"),
        ({"pairs": 1, "seed": -1}, "seed is -1"),
        ({"pairs": 1, "rows": 20}, "size is 20 × 224"),
        ({"pairs": 1, "rows": 400, "columns": 100}, "at least half as many columns as rows"),
        ({"pairs": 1, "difficulty": "brutal"}, "difficulty is 'brutal'; expected one of easy, standard"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(PhantomError, match=message):
        PhantomSettings(**settings)


def test_a_folder_with_another_data_set_is_left_alone(tmp_path):
    (tmp_path / "datalist.json").write_text(json.dumps({"schema": 1, "name": "precious"}))
    with pytest.raises(PhantomError, match="has a data set that is not a phantom"):
        make_phantom(tmp_path, SETTINGS)
    assert "precious" in (tmp_path / "datalist.json").read_text()


def test_a_mass_that_a_view_does_not_reach_leaves_no_trace_there():
    for number in range(100):
        rng = np.random.default_rng([3, number])
        scene = draw_scene(draw_breast(rng), DIFFICULTIES["patient"], 96, rng)
        hidden = [index for index, lesion in enumerate(scene.lesions) if lesion.outside]
        if not hidden:
            continue
        rest = tuple(lesion for lesion in scene.lesions if not lesion.outside)
        whole, without = (
            render(drawn, 96, 64, np.random.default_rng(4)) for drawn in (scene, replace(scene, lesions=rest))
        )
        if len(hidden) == 1:
            outside = scene.lesions[hidden[0]].outside
            (shown,) = {"cc", "mlo"} - {outside}
            np.testing.assert_array_equal(whole[outside].pixels, without[outside].pixels)
            assert hidden[0] not in whole[outside].boxes
            assert (whole[shown].pixels != without[shown].pixels).any()
            return
    raise AssertionError("no such mass in a hundred breasts")
