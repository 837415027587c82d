"""One view must not be enough to tell masses from mimics in the phantom; two views must be.

A simple reader: hand-made features of a spot in one view and logistic regression, against the depth and size
of the spots in the other view.
"""

import numpy as np
import pytest
from scipy import ndimage, optimize, stats

from clnet.phantom.render import render
from clnet.phantom.scene import DIFFICULTIES, draw_breast, draw_scene

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 208, 144
BREASTS = 260


def other(view):
    return "mlo" if view == "cc" else "cc"


def area_under_curve(scores, is_mass):
    """The probability that a mass scores higher than a mimic."""
    masses, mimics = scores[is_mass], scores[~is_mass]
    return stats.mannwhitneyu(masses, mimics).statistic / (len(masses) * len(mimics))


def one_view_features(pixels, box):
    """What a radiologist would describe about a spot in one view."""
    image = pixels / 4095.0
    x0, y0, x1, y1 = box.astype(int)
    inside = image[y0:y1, x0:x1]
    width, height = x1 - x0, y1 - y0
    around = image[max(y0 - height // 2, 0) : y1 + height // 2, max(x0 - width // 2, 0) : x1 + width // 2]
    core = inside[height // 4 : height - height // 4, width // 4 : width - width // 4]
    edges = ndimage.gaussian_gradient_magnitude(around, 1.0)
    return [
        np.log(width * height),
        np.log(width / height),
        core.mean(),
        core.mean() - around.mean(),
        inside.mean() - around.mean(),
        inside.std(),
        around.std(),
        edges.mean(),
        edges.max(),
        (x0 + x1) / 2 / COLUMNS,
        (y0 + y1) / 2 / ROWS,
    ]


def two_view_score(box, boxes_in_other_view):
    """How well the best spot at the same depth and of the same size in the other view fits."""
    if len(boxes_in_other_view) == 0:
        return -10.0
    depth, size = (box[0] + box[2]) / 2, np.log(box[2] - box[0])
    depths = (boxes_in_other_view[:, 0] + boxes_in_other_view[:, 2]) / 2
    sizes = np.log(boxes_in_other_view[:, 2] - boxes_in_other_view[:, 0])
    return -np.min(np.abs(depths - depth) / (0.03 * ROWS) + np.abs(sizes - size) / 0.25)


def fit_logistic(features, is_mass):
    """Weights of a logistic regression with a little shrinkage."""
    sign = np.where(is_mass, 1.0, -1.0)

    def loss(weights):
        return np.logaddexp(0, -sign * (features @ weights)).mean() + 1e-3 * (weights**2).sum()

    return optimize.minimize(loss, np.zeros(features.shape[1])).x


@pytest.fixture(scope="module")
def spots():
    """Every mass-like spot of many breasts: breast, view, features, two-view score, whether it is a mass."""
    rows = []
    for number in range(BREASTS):
        rng = np.random.default_rng([11, number])
        scene = draw_scene(draw_breast(rng), DIFFICULTIES["standard"], ROWS, rng)
        views = render(scene, ROWS, COLUMNS, rng)
        for name, view in views.items():
            partners = np.array(list(views[other(name)].boxes.values())).reshape(-1, 4)
            for index, box in view.boxes.items():
                rows.append(
                    (
                        number,
                        name,
                        one_view_features(view.pixels, box),
                        two_view_score(box, partners),
                        scene.lesions[index].mimics_in is None,
                    )
                )
    breast, view, features, two_view, is_mass = zip(*rows, strict=True)
    features = np.array(features)
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    squares = features**2 - 1
    return (
        np.array(breast),
        np.array(view),
        np.column_stack([np.ones(len(features)), features, squares]),
        np.array(two_view),
        np.array(is_mass),
    )


def test_there_are_enough_masses_and_mimics_to_judge(spots):
    is_mass = spots[-1]
    assert is_mass.sum() > 200
    assert (~is_mass).sum() > 200


def test_one_view_alone_cannot_tell_masses_from_mimics(spots):
    breast, _, features, _, is_mass = spots
    scores = np.zeros(len(is_mass))
    for half in (0, 1):
        held_out = breast % 2 == half
        scores[held_out] = features[held_out] @ fit_logistic(features[~held_out], is_mass[~held_out])
    area = area_under_curve(scores, is_mass)
    assert area < 0.6


@pytest.mark.parametrize("view", ["cc", "mlo"])
def test_the_depth_in_the_other_view_tells_masses_from_mimics(spots, view):
    _, views, _, two_view, is_mass = spots
    here = views == view
    assert area_under_curve(two_view[here], is_mass[here]) > 0.9
