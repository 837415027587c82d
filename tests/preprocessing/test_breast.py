import numpy as np
import pytest
from drawn_mammograms import TISSUE, breast, film, true_box

from clnet.preprocessing.breast import find_breast

MARGIN = 0.06 * 800  # a box may be this much larger than the breast, never smaller


def assert_box_fits(box, truth, margin=MARGIN):
    outside = np.array([truth[0] - box[0], truth[1] - box[1], box[2] - truth[2], box[3] - truth[3]])
    assert (outside >= 0).all(), f"{box} cuts {truth}"
    assert (outside <= margin).all(), f"{box} is much larger than {truth}"


def mirrored(box, columns=500):
    return columns - box[2], box[1], columns - box[0], box[3]


def test_a_digital_breast_is_found_whole_with_a_small_margin():
    found = find_breast(breast())
    assert_box_fits(found.box, true_box())
    assert found.chest_side == "left"
    assert found.warnings == ()


def test_the_chest_wall_is_seen_on_the_right_of_a_mirrored_image():
    found = find_breast(breast()[:, ::-1])
    assert_box_fits(found.box, mirrored(true_box()))
    assert found.chest_side == "right"


def test_dark_fat_belongs_to_the_breast_and_dense_tissue_behind_the_nipple_is_not_the_chest_wall():
    """As in processed digital images: fat is nearly as dark as the background, and uneven."""
    y, x = np.mgrid[:800, :500] + 0.5
    inside = breast() > 0
    fat = np.random.default_rng(0).uniform(0.02, 0.2, inside.shape) * TISSUE
    dense = np.hypot((y - 400) / 160, (x - 185) / 60) < 1
    image = np.where(inside, np.where(dense, TISSUE, fat), 0.0)
    for pixels, truth, side in ((image, true_box(), "left"), (image[:, ::-1], mirrored(true_box()), "right")):
        found = find_breast(pixels)
        assert_box_fits(found.box, truth)
        assert found.chest_side == side


def test_a_film_with_letters_glow_dust_and_scratches_gives_the_breast_alone():
    found = find_breast(film())
    assert_box_fits(found.box, true_box())
    assert found.box[2] < 400  # where the letters begin
    assert found.warnings == ()


@pytest.mark.parametrize("background", [1.0, 300.0, -1000.0])
def test_the_background_need_not_be_zero(background):
    assert_box_fits(find_breast(breast(background=background)).box, true_box())


def test_neither_the_scale_nor_the_offset_of_the_grey_values_matters():
    image = film()
    image[:, :15] = 4000  # a border
    assert find_breast(image * 16 - 100000).box == find_breast(image).box


def test_white_film_borders_are_left_out():
    image = film()
    image[:20] = image[-20:] = image[:, :15] = image[:, -15:] = 4000
    x_min, y_min, x_max, y_max = find_breast(image).box
    assert x_min >= 12  # whole pixels of the reduced copy
    assert y_min >= 18
    assert y_max <= 780
    assert x_max >= 250


def test_a_label_that_touches_the_breast_is_not_taken_for_it():
    image = breast()
    image[250:290, 215:300] = 3500
    found = find_breast(image)
    assert_box_fits(found.box, true_box())


def test_a_breast_that_fills_the_image_is_kept_whole():
    image = breast(1600, 500, depth=450)[500:1100, :300]
    assert find_breast(image).box == (0, 0, 300, 600)


def test_the_nipple_belongs_to_the_breast():
    image = breast()
    image[388:412, 240:278] = TISSUE / 2
    assert find_breast(image).box[2] >= 278


def test_the_tissue_that_runs_up_the_chest_wall_belongs_to_the_breast():
    # As the pectoral muscle in MLO: a tenth of the image wide, up to its top.
    image = breast()
    image[:200, :50] = TISSUE
    assert find_breast(image).box[1] == 0


def test_a_saturated_breast_is_found():
    assert_box_fits(find_breast(np.where(breast() > 0, 4095.0, 0.0)).box, true_box())


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((800, 500), np.float32),
        np.full((800, 500), 4095.0),
        np.pad(np.full((4, 4), 4095.0), 300),
        np.zeros((1, 1)),
        np.arange(3000.0).reshape(3000, 1) * 0,
    ],
    ids=["all black", "all white", "nearly empty", "one pixel", "one column"],
)
def test_without_a_breast_the_whole_image_is_used_and_the_warning_says_so(image):
    found = find_breast(image, "R")
    assert found.box == (0, 0, image.shape[1], image.shape[0])
    assert found.chest_side == "right"  # all that is known
    assert "no breast found" in found.warnings[0]


@pytest.mark.parametrize("shape", [(2, 2), (1, 50), (50, 1), (3, 4000), (7, 5)])
def test_no_shape_of_noise_makes_it_fail(shape):
    image = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    x_min, y_min, x_max, y_max = find_breast(image).box
    assert 0 <= x_min < x_max <= shape[1]
    assert 0 <= y_min < y_max <= shape[0]


def test_pixels_win_over_laterality_with_a_warning():
    found = find_breast(breast(), "R")
    assert found.chest_side == "left"
    assert "laterality R" in found.warnings[0]


def test_laterality_that_agrees_is_silent():
    assert find_breast(breast(), "L").warnings == ()


def test_brightness_is_measured_inside_the_breast_only():
    image = film()
    inside = image[breast() > 0]
    image[600:700, 400:480] = 4000  # a label of 2% of the image
    low, high = find_breast(image).brightness
    assert low == pytest.approx(np.percentile(inside, 1), abs=0.2 * TISSUE)
    assert high == pytest.approx(np.percentile(inside, 99.5), rel=0.05)
