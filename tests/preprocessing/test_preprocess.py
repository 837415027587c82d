from pathlib import Path

import numpy as np
import pytest
import torch
from drawn_mammograms import breast, film, mammogram
from PIL import Image

from clnet.preprocessing.preprocess import preprocess_views, resize

FILM = Path(__file__).parent.parent / "data" / "cbis-ddsm"


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("flip", [False, True], ids=["left breast", "right breast"])
@pytest.mark.parametrize("size", [(160, 96), (333, 200), (1200, 900)])
def test_the_placement_says_where_pixels_go_far_finer_than_a_pixel(size, flip, axis):
    # A ramp as tissue: every brightness tells where it came from, and no smoothing changes that.
    y, x = np.mgrid[:800, :500] + 0.5
    ramp = 1000 + (x if axis == "x" else y)
    inside = np.hypot((y - 400) / 300, (500 - x if flip else x) / 250) < 1
    (placed,) = preprocess_views([mammogram(np.where(inside, ramp, 0.0))], size)

    rows, columns = np.mgrid[: size[0], : size[1]] + 0.5  # centres of the model's pixels
    centres = placed.placement.invert(np.stack([columns, rows, columns, rows], axis=-1))
    from_x, from_y = centres[..., 0], centres[..., 1]
    deep_inside = np.hypot((from_y - 400) / 270, (500 - from_x if flip else from_x) / 220) < 1
    deep_inside &= (from_x > 15) & (from_x < 485)  # a filter has no other side at the edge of the image
    image = placed.image[0].numpy()
    measured = deep_inside & (image > 0) & (image < 1)
    low, high = placed.breast.brightness
    position = low + image[measured].astype(np.float64) * (high - low) - 1000
    expected = (from_x if axis == "x" else from_y)[measured]
    assert measured.sum() > 1000
    np.testing.assert_allclose(position, expected, atol=0.1)  # the filter's weights are sampled
    assert np.mean(position - expected) == pytest.approx(0, abs=0.005)


def test_the_chest_wall_is_at_the_left_edge_for_either_breast():
    for image in (film(), film()[:, ::-1].copy()):
        (placed,) = preprocess_views([mammogram(image)], (160, 96))
        columns = placed.image[0].sum(dim=0)
        assert columns[:10].mean() > 4 * columns[40:96].mean()
        corner = 500.0 if placed.placement.x_scale < 0 else 0.0
        edge = placed.placement.apply(np.array([[corner, 0.0, corner, 1.0]]))[0, 0]
        assert edge == pytest.approx(0, abs=0.25)


def test_a_left_breast_and_its_mirror_image_give_the_same_picture():
    image = breast()
    (left,), (right,) = (
        preprocess_views([mammogram(pixels)], (200, 128)) for pixels in (image, image[:, ::-1].copy())
    )
    assert left.placement.x_scale == pytest.approx(-right.placement.x_scale, rel=0.02)
    assert (left.image - right.image).abs().mean() < 0.01


def test_the_aspect_is_kept_and_the_box_fills_the_canvas_one_way():
    (placed,) = preprocess_views([mammogram(breast())], (160, 96))
    assert placed.placement.x_scale == placed.placement.y_scale
    assert placed.valid_size[0] == 160 or placed.valid_size[1] == 96
    rows, columns = placed.valid_size
    assert placed.image[0, rows:].abs().sum() == 0
    assert placed.image[0, :, columns:].abs().sum() == 0


def test_both_views_share_one_scale_so_that_depth_is_comparable():
    small, large = mammogram(breast(depth=150)), mammogram(breast(1000, 700, depth=500))
    cc, mlo = preprocess_views([small, large], (160, 96))
    assert cc.placement.x_scale == mlo.placement.x_scale == cc.placement.y_scale
    assert cc.valid_size[1] < mlo.valid_size[1]


def test_with_different_spacing_the_shared_scale_is_in_millimetres():
    coarse, fine = mammogram(breast(), (0.1, 0.1)), mammogram(breast(1600, 1000, depth=500), (0.05, 0.05))
    cc, mlo = preprocess_views([coarse, fine], (160, 96))
    assert cc.placement.x_scale == pytest.approx(2 * mlo.placement.x_scale)
    # The same breast twice: 250 coarse pixels deep, 500 fine ones.
    deep = [view.placement.apply(np.array([[0.0, 0, d, 1]]))[0, 2] for view, d in ((cc, 250), (mlo, 500))]
    assert deep[0] == pytest.approx(deep[1], abs=0.01)


def test_with_one_unknown_spacing_pixels_are_taken_as_equal():
    cc, mlo = preprocess_views([mammogram(breast(), (0.1, 0.1)), mammogram(breast())], (160, 96))
    assert cc.placement.x_scale == mlo.placement.x_scale


def test_a_film_reduced_more_gets_the_scale_of_its_partner_by_its_pixel_size():
    """Two films of 4000 and 8000 rows, both reduced to 800: a pixel is 5 and 10 scanned ones high."""
    fine, coarse = mammogram(breast(depth=250)), mammogram(breast(depth=125))
    cc, mlo = preprocess_views([fine, coarse], (160, 96), pixel_sizes=[(5.0, 5.0), (10.0, 10.0)])
    assert mlo.placement.x_scale == pytest.approx(2 * cc.placement.x_scale)
    assert mlo.placement.y_scale == pytest.approx(2 * cc.placement.y_scale)
    deep = [view.placement.apply(np.array([[0.0, 0, d, 1]]))[0, 2] for view, d in ((cc, 250), (mlo, 125))]
    assert deep[0] == pytest.approx(deep[1], abs=0.01)
    assert cc.warnings == mlo.warnings == ()


@pytest.mark.parametrize("pixel_sizes", [(), (None, None), ((5.0, 5.0), None)])
def test_without_a_pixel_size_for_each_view_pixels_are_taken_as_equal(pixel_sizes):
    images = [mammogram(breast()), mammogram(breast())]
    cc, mlo = preprocess_views(images, (160, 96), pixel_sizes=pixel_sizes)
    assert cc.placement.x_scale == mlo.placement.x_scale


def test_a_pixel_may_be_higher_than_wide():
    (placed,) = preprocess_views([mammogram(breast())], (160, 96), pixel_sizes=[(0.2, 0.1)])
    assert placed.placement.y_scale == pytest.approx(2 * placed.placement.x_scale)


def test_the_spacings_of_files_take_precedence_and_a_disagreement_is_said():
    images = [mammogram(breast(), (0.1, 0.1)), mammogram(breast(), (0.05, 0.05))]
    alone = preprocess_views(images, (160, 96))
    for scale, agreed in (([1.0, 0.5], True), ([30.0, 15.1], True), ([30.0, 15.2], False)):
        placed = preprocess_views(images, (160, 96), pixel_sizes=[(size, size) for size in scale])
        assert [view.placement for view in placed] == [view.placement for view in alone]
        for view in placed:
            assert (view.warnings == ()) == agreed
    assert placed[0].warnings == (
        "pixel sizes given as 30 × 30 and 15.2 × 15.2, but 0.1 × 0.1 and 0.05 × 0.05 mm in the files, "
        "which are used",
    )


def test_pixel_sizes_count_for_all_views_if_one_file_has_no_spacing():
    images = [mammogram(breast(), (0.1, 0.1)), mammogram(breast())]
    cc, mlo = preprocess_views(images, (160, 96), pixel_sizes=[(1.0, 1.0), (3.0, 3.0)])
    assert mlo.placement.x_scale == pytest.approx(3 * cc.placement.x_scale)


def test_brightness_runs_from_zero_to_one_inside_the_breast_and_background_is_zero():
    (placed,) = preprocess_views([mammogram(film())], (200, 128))
    image = placed.image
    assert image.dtype == torch.float32
    assert image.min() == 0
    assert 0.98 < image.max() <= 1
    assert image[0, :15, 60:100].mean() < 0.03  # above the breast
    assert image[0, 90:110, :40].mean() > 0.6  # its middle


@pytest.mark.parametrize("value", [0.0, 4095.0])
def test_an_image_of_one_brightness_is_blank_and_says_so(value):
    (placed,) = preprocess_views([mammogram(np.full((80, 50), value))], (32, 32))
    assert placed.image.abs().sum() == 0
    assert "blank" in " ".join(placed.warnings)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 1), (2, 900)])
@pytest.mark.parametrize("laterality", ["L", "R"])
def test_however_thin_an_image_is_it_gets_a_place(shape, laterality):
    pixels = np.random.default_rng(0).uniform(size=shape)
    (placed,) = preprocess_views([mammogram(pixels, laterality=laterality)], (64, 64))
    assert min(placed.valid_size) >= 1
    assert torch.isfinite(placed.image).all()


def test_the_steps_are_told_in_words_and_in_order():
    (placed,) = preprocess_views([mammogram(breast()[:, ::-1].copy())], (160, 96))
    words = " | ".join(placed.steps)
    order = [words.index(word) for word in ("breast at", "resized", "mirrored", "percentiles", "padded")]
    assert order == sorted(order)


def test_the_given_pixels_are_left_as_they_are():
    pixels = breast(160, 96, depth=90)
    before = pixels.copy()
    image = mammogram(pixels)
    preprocess_views([image], (160, 96))
    np.testing.assert_array_equal(image.pixels, before)


@pytest.mark.parametrize("scale", [0.5, 0.23, 0.1])
def test_a_wave_too_fine_for_the_result_vanishes_instead_of_aliasing(scale):
    # Wavelength 2.2 pixels: at these scales above the Nyquist frequency of the result.
    wave = torch.sin(torch.arange(1000) * 2 * torch.pi / 2.2).expand(400, 1000)
    inner = resize(wave, scale, scale)[:, 3:-3]
    assert inner.abs().max() < 0.06
    assert wave[:, ::2].abs().max() > 0.9  # which skipping pixels would have kept


@pytest.mark.parametrize("scale", [0.9, 0.37, 0.1, 1.7])
def test_resizing_keeps_the_mean(scale):
    image = torch.from_numpy(np.random.default_rng(0).uniform(size=(700, 500)).astype(np.float32))
    assert resize(image, scale, scale).mean() == pytest.approx(image.mean().item(), abs=2e-3)


def test_resizing_agrees_with_pillow_where_the_size_is_whole():
    image = np.random.default_rng(0).uniform(size=(400, 300)).astype(np.float32)
    expected = Image.fromarray(image).resize((75, 100), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(resize(torch.from_numpy(image), 0.25, 0.25), np.asarray(expected), atol=1e-5)
