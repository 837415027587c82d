"""The projections of the phantom against brute force: random points in the bodies, counted."""

import numpy as np
import pytest

from clnet.phantom.geometry import Ellipsoids, invisible_stretch, view_geometry
from clnet.phantom.scene import DIFFICULTIES, draw_breast, draw_scene


def a_view(angle=0.7, spacing=0.5, **changes):
    settings = {"depth_scale": 1.04, "row_scale": 0.97, "depth_shear": 0.05, **changes}
    return view_geometry("mlo", angle, spacing, row_of_nipple=30.0, **settings)


def ellipsoids(seed, count=2):
    rng = np.random.default_rng(seed)
    axes = rng.uniform(3, 9, (count, 3))
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    return Ellipsoids(
        rng.uniform([25, -8, -8], [35, 8, 8], (count, 3)),
        turns @ (axes[:, :, None] ** 2 * turns.transpose(0, 2, 1)),
        rng.uniform(0.5, 2, count),
    )


def counted_projection(view, bodies, shape, points=2_000_000):
    """The same integral as `add_projections`, by counting random points in the ellipsoids."""
    rng = np.random.default_rng(5)
    image = np.zeros(shape)
    for centre, body, density in zip(bodies.centres, bodies.shapes, bodies.densities, strict=True):
        ball = rng.normal(size=(points, 3))
        ball *= (rng.random(points) ** (1 / 3) / np.linalg.norm(ball, axis=1))[:, None]
        inside = centre + ball @ np.linalg.cholesky(body).T
        at = view.project(inside)
        matter = density * 4 / 3 * np.pi * np.sqrt(np.linalg.det(body))
        counts, _, _ = np.histogram2d(at[:, 1], at[:, 0], bins=shape, range=[[0, shape[0]], [0, shape[1]]])
        image += counts / points * matter / view.spacing**2
    return image


@pytest.mark.parametrize("angle", [0.0, 0.8])
def test_the_projection_of_ellipsoids_is_their_path_integral(angle):
    view, bodies = a_view(angle), ellipsoids(seed=3)
    image = np.zeros((120, 120), np.float32)
    view.add_projections(image, bodies)
    expected = counted_projection(view, bodies, image.shape)
    assert abs(image.sum() / expected.sum() - 1) < 5e-3
    assert np.abs(image - expected).mean() < 0.02 * expected.max()


def test_the_box_is_tight_around_the_projection():
    view, bodies = a_view(spacing=0.05), ellipsoids(seed=4, count=1)
    image = np.zeros((1200, 1400), np.float32)
    view.add_projections(image, bodies)
    rows, columns = np.nonzero(image)
    drawn = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    np.testing.assert_allclose(view.outline_boxes(bodies)[0], drawn, atol=1.5)


@pytest.mark.parametrize("along", [(0.0, -3.0, 3.0), (5.0, 0.0, 0.0), (-4.0, 1.0, 2.0)])
def test_a_mimic_has_the_projection_of_a_mass_in_its_view(along):
    view, bodies = a_view(), ellipsoids(seed=6)
    mimic = bodies.mapped(invisible_stretch(view, np.array(along)), about=bodies.centres[0])
    images = [np.zeros((120, 120), np.float32) for _ in range(2)]
    view.add_projections(images[0], bodies)
    view.add_projections(images[1], mimic)
    np.testing.assert_allclose(images[0], images[1], atol=1e-3 * images[0].max())


@pytest.mark.parametrize("along", [(0.0, -3.0, 3.0), (5.0, 0.0, 0.0)])
def test_a_mimic_is_stretched_in_the_other_view(along):
    view, other = a_view(angle=0.8), a_view(angle=0.0)
    bodies = ellipsoids(seed=6, count=1)
    mimic = bodies.mapped(invisible_stretch(view, np.array(along)), about=bodies.centres[0])
    _, top, _, bottom = other.outline_boxes(bodies)[0]
    _, mimic_top, _, mimic_bottom = other.outline_boxes(mimic)[0]
    assert mimic_bottom - mimic_top > 2 * (bottom - top)


def scenes(difficulty, count):
    for number in range(count):
        rng = np.random.default_rng([2, number])
        yield draw_scene(draw_breast(rng), DIFFICULTIES[difficulty], 320, rng)


def masses_of(scene):
    return [lesion for lesion in scene.lesions if lesion.mimics_in is None]


@pytest.mark.parametrize(
    ("difficulty", "median"),
    # 4.6 mm is what studies of real breasts report.
    [("easy", 0.6), ("standard", 1.0), ("hard", 1.4), ("patient", 4.6)],
)
def test_the_depth_of_a_mass_differs_between_views_by_so_many_millimetres(difficulty, median):
    differences = []
    for scene in scenes(difficulty, 600):
        for lesion in masses_of(scene):
            depths = [view.matrix[0] @ lesion.body.centres[0] for view in scene.views.values()]
            differences.append(abs(depths[0] - depths[1]))
    assert np.median(differences) == pytest.approx(median, rel=0.15)


@pytest.mark.parametrize(("difficulty", "share"), [("standard", 0.0), ("patient", 0.1)])
def test_positioning_leaves_some_masses_out_of_one_view(difficulty, share):
    masses = [lesion for scene in scenes(difficulty, 600) for lesion in masses_of(scene)]
    outside = [lesion.outside for lesion in masses if lesion.outside]
    assert len(outside) / len(masses) == pytest.approx(share, abs=0.03)
    assert set(outside) == ({"cc", "mlo"} if share else set())


def test_harder_phantoms_have_fainter_masses_and_more_mimics():
    easy, standard, hard = (DIFFICULTIES[name] for name in ("easy", "standard", "hard"))
    assert easy.contrast > standard.contrast > hard.contrast
    assert easy.mimics < standard.mimics < hard.mimics
