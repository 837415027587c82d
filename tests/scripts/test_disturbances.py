"""Disturbed pairs: what changes, and what does not."""

import numpy as np
import pytest
from disturbances import (
    FILM_DISTURBANCES,
    borders,
    compression,
    contrast,
    mirrored,
    missing_view,
    noise,
    resolution,
    shifted_crop,
    wrong_partner,
)
from PIL import Image

from clnet.data.pair import Pair, View
from clnet.data.reader import read_image
from clnet.phantom import PhantomSettings, make_phantom


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    settings = PhantomSettings(pairs=16, seed=3, rows=96, columns=64)
    datalist = make_phantom(tmp_path_factory.mktemp("phantom"), settings, workers=1)
    return [pair for section in datalist.sections.values() for pair in section]


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A breast of two scans of 8 bits, each dark with a bright mass exactly where its box is."""
    folder = tmp_path_factory.mktemp("films")
    views = {}
    for name, box in (("cc", [10, 20, 30, 50]), ("mlo", [4, 60, 20, 72])):
        scan = np.full((100, 60), 40, np.uint8)
        scan[box[1] : box[3], box[0] : box[2]] = 200
        Image.fromarray(scan).save(folder / f"{name}.png")
        views[name] = View(folder / f"{name}.png", [box], ("1",), (100, 60), (0.5, 0.5))
    return [Pair("P_L", "P", "L", **views, links={"1": "annotated"})]


def mass_of(view):
    """The bounding box of what is bright, half-open, without a white border."""
    stored = pixels(view)
    rows, columns = np.nonzero((stored > 120) & (stored < 250))
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def pixels(view):
    return read_image(view.image).pixels


def test_all_strangers_and_every_image_is_still_there_once(pairs, tmp_path):
    changed = wrong_partner(pairs, 1, tmp_path)
    assert sorted(pair.mlo.image for pair in changed) == sorted(pair.mlo.image for pair in pairs)
    for before, after in zip(pairs, changed, strict=True):
        partner = next(pair for pair in pairs if pair.mlo.image == after.mlo.image)
        assert partner.patient_id != before.patient_id
        assert partner.laterality == before.laterality
        assert not set(after.cc.lesion_ids) & set(after.mlo.lesion_ids)
        np.testing.assert_array_equal(after.mlo.boxes, partner.mlo.boxes)


def test_a_larger_share_disturbs_the_same_pairs_and_more(pairs, tmp_path):
    missing = [
        {pair.pair_id for pair in missing_view(pairs, share, tmp_path) if len(pair.views) == 1}
        for share in (0.25, 0.5, 1)
    ]
    assert [len(names) for names in missing] == [4, 8, 16]
    assert missing[0] < missing[1] < missing[2]
    assert {next(iter(pair.views)) for pair in missing_view(pairs, 1, tmp_path)} == {"cc", "mlo"}


def test_noise_has_the_deviation_that_it_says(pairs, tmp_path):
    (changed,) = noise(pairs[:1], 0.02, tmp_path)
    before, after = pixels(pairs[0].cc), pixels(changed.cc)
    middle = (before > 1000) & (before < 3000)  # far from where values are cut
    assert (after - before)[middle].std() == pytest.approx(0.02 * 4095, rel=0.1)
    np.testing.assert_array_equal(changed.cc.boxes, pairs[0].cc.boxes)


def test_contrast_bends_between_black_and_white(pairs, tmp_path):
    (changed,) = contrast(pairs[:1], 2, tmp_path)
    before, after = pixels(pairs[0].mlo), pixels(changed.mlo)
    np.testing.assert_allclose(after, (before / 4095) ** 2 * 4095, atol=0.51)


def test_a_crop_takes_the_chest_wall_and_moves_boxes_with_the_pixels(pairs, tmp_path):
    changed = shifted_crop(pairs, 0.25, tmp_path)
    assert any(
        len(after.mlo.boxes) < len(before.mlo.boxes) for before, after in zip(pairs, changed, strict=True)
    )
    for before, after in zip(pairs, changed, strict=True):
        left = 16 if before.laterality == "L" else 0  # a left breast has its chest wall on the left
        whole = pixels(before.mlo)
        np.testing.assert_array_equal(pixels(after.mlo), whole[:, left : left + 48])
        for box, lesion in zip(after.mlo.boxes, after.mlo.lesion_ids, strict=True):
            old = before.mlo.boxes[before.mlo.lesion_ids.index(lesion)]
            expected = np.clip(old - [left, 0, left, 0], 0, [48, 96, 48, 96])
            np.testing.assert_allclose(box, expected)
        assert after.cc is before.cc


@pytest.mark.parametrize(
    ("change", "level", "shape", "cc"),
    [
        (borders, 0.05, (110, 70), [15, 25, 35, 55]),
        (mirrored, 1, (100, 60), [30, 20, 50, 50]),
        (resolution, 0.5, (50, 30), [5, 10, 15, 25]),
        (compression, 50, (100, 60), [10, 20, 30, 50]),
    ],
)
def test_masses_of_changed_scans_are_where_their_boxes_are(films, tmp_path, change, level, shape, cc):
    (changed,) = change(films, level, tmp_path)
    for view in changed.views.values():
        assert pixels(view).shape == view.size == shape
        np.testing.assert_allclose(mass_of(view), view.boxes[0])
    np.testing.assert_allclose(changed.cc.boxes[0], cc)


def test_half_the_resolution_has_pixels_twice_as_large(films, tmp_path):
    (changed,) = resolution(films, 0.5, tmp_path)
    assert changed.cc.pixel_size == (1.0, 1.0)


def test_a_border_is_white_on_all_sides(films, tmp_path):
    (changed,) = borders(films, 0.05, tmp_path)
    stored = pixels(changed.mlo)
    assert stored[:5].min() == stored[-5:].min() == stored[:, :5].min() == stored[:, -5:].min() == 255


def test_a_low_quality_of_jpeg_changes_grey_values(films, tmp_path):
    (changed,) = compression(films, 10, tmp_path)
    assert 0 < np.abs(pixels(changed.cc) - pixels(films[0].cc)).max() < 120


def test_the_first_level_changes_nothing(pairs, tmp_path):
    for disturbance in FILM_DISTURBANCES.values():
        for before, after in zip(
            pairs[:2], disturbance.change(pairs[:2], disturbance.levels[0], tmp_path), strict=True
        ):
            for name in ("cc", "mlo"):
                np.testing.assert_array_equal(pixels(before.views[name]), pixels(after.views[name]))
                np.testing.assert_array_equal(before.views[name].boxes, after.views[name].boxes)
