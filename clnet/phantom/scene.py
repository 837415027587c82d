"""The contents of the phantom's breast: masses, mimics of masses, and dense tissue that hides masses.

A **mass** is a lobulated or spiculated cluster of ellipsoids. A **mimic** is drawn exactly like a mass and
then stretched along the beam of one view, where this changes nothing (`invisible_stretch`): there it looks
like a mass, in the other view it is a streak or a sheet. So a single view cannot distinguish the two, and the
other view, at the same depth, can. A **veil** is a clump of dense tissue in front of or behind a mass in one
view, where it hides the mass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from clnet.phantom.geometry import Array, Ellipsoids, ViewGeometry, invisible_stretch, view_geometry


@dataclass(frozen=True)
class Difficulty:
    """How hard a phantom is to read.

    Attributes:
        contrast: minimum and maximum density of masses and mimics.
        mimics: mean number of mimics per breast.
        veiled: share of masses with a veil in one view.
        depth_error: difference in compression between the views (1: a few mm of depth).
        texture: strength of the fine structure of the tissue.
        noise: strength of the quantum noise.
        one_view: share of masses that one of the views does not reach, as positioning leaves out the tissue
            at the chest wall or in the axilla.
    """

    contrast: tuple[float, float]
    mimics: float
    veiled: float
    depth_error: float
    texture: float
    noise: float
    one_view: float = 0.0


DIFFICULTIES: Mapping[str, Difficulty] = MappingProxyType(
    {
        "easy": Difficulty((0.7, 1.0), mimics=0.8, veiled=0.05, depth_error=0.4, texture=0.6, noise=0.6),
        "standard": Difficulty(
            (0.55, 0.9), mimics=1.6, veiled=0.1, depth_error=0.7, texture=0.75, noise=0.75
        ),
        "hard": Difficulty((0.38, 0.75), mimics=2.4, veiled=0.2, depth_error=1.0, texture=1.0, noise=1.0),
        # As standard, but the views of a breast agree no better than those of patients do.
        "patient": Difficulty(
            (0.55, 0.9), mimics=1.6, veiled=0.1, depth_error=3.35, texture=0.75, noise=0.75, one_view=0.1
        ),
    }
)

FIELD_HEIGHT = 210.0  # mm: the height of every image
MASS_COUNTS = (0.35, 0.40, 0.17, 0.08)  # share of breasts with 0, 1, 2, 3 masses
OBLIQUE_ANGLE = (np.radians(40), np.radians(55))  # of the MLO beam from the vertical


@dataclass(frozen=True)
class BreastShape:
    """The outer shape of a breast, shared by both views.

    Attributes:
        depth: mm from the chest wall to the nipple.
        half_width: mm from the row of the nipple to the upper and lower edge in CC.
        glandular: 0 (fatty) to 1 (extremely dense).
    """

    depth: float
    half_width: float
    glandular: float

    @property
    def density_category(self) -> str:
        """The density category (A to D), by equal quarters of `glandular`."""
        return "ABCD"[min(int(self.glandular * 4), 3)]


@dataclass(frozen=True)
class PhantomLesion:
    """A mass or a mimic.

    Attributes:
        body: the core, which a reader would outline.
        spicules: thin strands around the core; may be empty.
        mimics_in: the view in which a mimic looks like a mass; None for a mass.
        outside: the view that does not reach it; None if both show it.
        shape: "lobulated" or "spiculated".
        diameter: of the core, mm.
    """

    body: Ellipsoids
    spicules: Ellipsoids
    mimics_in: str | None
    outside: str | None
    shape: str
    diameter: float


@dataclass(frozen=True)
class Scene:
    """Everything that is drawn at random for one breast, but for the texture of its tissue."""

    breast: BreastShape
    views: dict[str, ViewGeometry]
    lesions: tuple[PhantomLesion, ...]
    veils: tuple[Ellipsoids, ...]
    difficulty: Difficulty


def draw_breast(rng: np.random.Generator) -> BreastShape:
    """A random shape; both breasts of a patient share one."""
    depth = rng.uniform(68, 100)
    return BreastShape(depth, half_width=depth * rng.uniform(0.8, 0.95), glandular=rng.beta(1.6, 2.0))


def draw_scene(breast: BreastShape, difficulty: Difficulty, rows: int, rng: np.random.Generator) -> Scene:
    """A random breast with its lesions, for images of `rows` rows."""
    views = {name: _draw_view(name, difficulty, rows, rng) for name in ("cc", "mlo")}
    kinds: list[str | None] = [None] * int(rng.choice(len(MASS_COUNTS), p=MASS_COUNTS))
    kinds += [str(rng.choice(("cc", "mlo"))) for _ in range(rng.poisson(difficulty.mimics))]
    lesions: list[PhantomLesion] = []
    veils: list[Ellipsoids] = []
    for mimics_in in kinds:
        radius = np.exp(rng.uniform(np.log(4.5), np.log(11.0)))
        centre = _free_place(breast, views, lesions, mimics_in, radius, rng)
        if centre is None:
            continue
        lesions.append(_draw_lesion(centre, radius, mimics_in, views, difficulty, rng))
        if mimics_in is None and rng.random() < difficulty.veiled:
            veils.append(_draw_veil(centre, radius, views[str(rng.choice(("cc", "mlo")))], rng))
    # Veils without a mass, so that a veil does not give a mass away.
    for _ in range(rng.poisson(2 * difficulty.veiled)):
        radius = rng.uniform(5, 10)
        centre = _free_place(breast, views, [], None, radius, rng)
        if centre is not None:
            veils.append(_draw_veil(centre, radius, views[str(rng.choice(("cc", "mlo")))], rng))
    return Scene(breast, views, tuple(lesions), tuple(veils), difficulty)


def outline(breast: BreastShape, view: str, v: Array) -> Array:
    """The depth of the skin in mm at each row, v mm below the row of the nipple.

    In MLO the breast extends up into the axilla and ends below in the inframammary fold.
    """
    up, down = (1.0, 0.95) if view == "cc" else (1.5, 0.9)
    inside = np.clip(np.abs(v) / (np.where(v < 0, up, down) * breast.half_width), 0, 1)
    round_end = (1 - inside**2.2) ** 0.62
    if view == "cc":
        return breast.depth * round_end
    axilla = 0.42 + 0.58 * (0.5 + 0.5 * np.cos(np.pi * inside)) ** 0.9
    return breast.depth * np.where(v < 0, axilla, round_end)


def _draw_view(name: str, difficulty: Difficulty, rows: int, rng: np.random.Generator) -> ViewGeometry:
    error = difficulty.depth_error
    return view_geometry(
        name,
        angle=0.0 if name == "cc" else rng.uniform(*OBLIQUE_ANGLE),
        spacing=FIELD_HEIGHT / rows,
        row_of_nipple=FIELD_HEIGHT * (0.5 if name == "cc" else 0.58) + rng.normal(0, 6),
        depth_scale=1 + error * rng.normal(0, 0.03),
        row_scale=1 + rng.normal(0, 0.03),
        depth_shear=error * rng.normal(0, 0.05),
    )


def _free_place(
    breast: BreastShape,
    views: Mapping[str, ViewGeometry],
    lesions: list[PhantomLesion],
    mimics_in: str | None,
    radius: float,
    rng: np.random.Generator,
) -> Array | None:
    """A place for a lesion inside the breast in both views, away from other lesions; None if none is found.

    Lesions that look like a mass in the same view must not overlap there. Mimics in different views must
    differ in depth: by chance alignment, a CC mimic and an MLO mimic at one depth would look like a mass.
    """
    for _ in range(60):
        place = rng.uniform([0.12, -0.8, -0.8], [0.9, 0.8, 0.8]) * [breast.depth, 70.0, 70.0]
        if all(_inside(breast, view, place, radius) for view in views.values()) and all(
            _apart(views, place, radius, mimics_in, other) for other in lesions
        ):
            return place
    return None


def _inside(breast: BreastShape, view: ViewGeometry, place: Array, radius: float) -> bool:
    u, v = view.matrix @ place
    rows_left = FIELD_HEIGHT - view.row_of_nipple
    return bool(
        u > radius + 2
        and -view.row_of_nipple + radius + 4 < v < rows_left - radius - 4
        and all(u + radius + 5 < outline(breast, view.name, v + dv) for dv in (-radius, 0.0, radius))
    )


def _apart(
    views: Mapping[str, ViewGeometry],
    place: Array,
    radius: float,
    mimics_in: str | None,
    other: PhantomLesion,
) -> bool:
    gap = radius + other.diameter / 2 + 4
    for name, view in views.items():
        mass_like = mimics_in in (None, name) and other.mimics_in in (None, name)
        if mass_like and np.linalg.norm(view.matrix @ (place - other.body.centres[0])) < gap:
            return False
    in_different_views = mimics_in != other.mimics_in and None not in (mimics_in, other.mimics_in)
    return not in_different_views or abs(place[0] - other.body.centres[0][0]) > 12


def _draw_lesion(
    centre: Array,
    radius: float,
    mimics_in: str | None,
    views: Mapping[str, ViewGeometry],
    difficulty: Difficulty,
    rng: np.random.Generator,
) -> PhantomLesion:
    spiculated = bool(rng.random() < 0.4)
    lobes = 4 if spiculated else int(rng.integers(3, 6))
    # Contrast in the image is density times path length, so density decreases with size: a small mass is not
    # fainter than a large one.
    density = rng.uniform(*difficulty.contrast) / (2 * radius)
    body = _cluster(centre, radius, lobes, density, rng)
    spicules = _spicules(centre, radius, int(rng.integers(9, 16)) if spiculated else 0, density, rng)
    if mimics_in is not None:
        view = views[mimics_in]
        stretch = invisible_stretch(view, _direction_of_stretch(view, rng))
        body, spicules = body.mapped(stretch, centre), spicules.mapped(stretch, centre)
    outside = None
    if mimics_in is None and difficulty.one_view and rng.random() < difficulty.one_view:
        outside = str(rng.choice(tuple(views)))
    shape = "spiculated" if spiculated else "lobulated"
    return PhantomLesion(body, spicules, mimics_in, outside, shape, 2 * radius)


def _direction_of_stretch(view: ViewGeometry, rng: np.random.Generator) -> Array:
    """The direction in which a mimic is stretched: along the beam (a tube), or slanted in depth (a sheet)."""
    if rng.random() < 0.5:
        return rng.uniform(3.5, 6.0) * view.beam
    return rng.choice((-1, 1)) * rng.uniform(3.5, 6.0) * np.array([1.0, 0.0, 0.0]) + view.beam


def _cluster(
    centre: Array, radius: float, lobes: int, density: float, rng: np.random.Generator
) -> Ellipsoids:
    """A core with lobes on its rim, with a total radius of about `radius` mm."""
    offsets = _directions(lobes, rng) * rng.uniform(0.35, 0.6, (lobes, 1)) * radius
    centres = centre + np.concatenate([np.zeros((1, 3)), offsets])
    sizes = radius * np.concatenate([[0.8], rng.uniform(0.35, 0.55, lobes)])
    axes = sizes[:, None] * rng.uniform(0.85, 1.15, (lobes + 1, 3))
    densities = density * np.concatenate([[1.0], rng.uniform(0.5, 0.9, lobes)])
    return Ellipsoids(centres, _rotated(axes, rng), densities)


def _spicules(
    centre: Array, radius: float, count: int, density: float, rng: np.random.Generator
) -> Ellipsoids:
    """Thin strands from the core in all directions, up to twice its radius."""
    directions = _directions(count, rng)
    lengths = radius * rng.uniform(0.6, 1.1, (count, 1, 1))
    widths = radius * rng.uniform(0.06, 0.1, (count, 1, 1))
    along = directions[:, :, None] * directions[:, None, :]
    shapes = lengths**2 * along + widths**2 * (np.eye(3) - along)
    return Ellipsoids(centre + directions * radius * 0.8, shapes, np.full(count, 2.2 * density))


def _draw_veil(centre: Array, radius: float, view: ViewGeometry, rng: np.random.Generator) -> Ellipsoids:
    """Dense lobules that cover `centre` in `view`, and are next to it in the other view."""
    count = 30
    shift = view.beam * rng.choice((-1, 1)) * rng.uniform(3.0, 4.0) * radius
    spread = rng.normal(0, 0.85 * radius, (count, 3))
    sizes = radius * rng.uniform(0.3, 1.0, (count, 1))
    axes = sizes * rng.uniform(0.7, 1.3, (count, 3))
    return Ellipsoids(centre + shift + spread, _rotated(axes, rng), np.full(count, 0.19 / (2 * radius)))


def _directions(count: int, rng: np.random.Generator) -> Array:
    vectors = rng.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _rotated(axes: Array, rng: np.random.Generator) -> Array:
    """Shapes [n, 3, 3] of ellipsoids with half axes [n, 3] in mm, randomly rotated."""
    turns = np.linalg.qr(rng.normal(size=(len(axes), 3, 3)))[0]
    return turns @ (axes[:, :, None] ** 2 * turns.transpose(0, 2, 1))
