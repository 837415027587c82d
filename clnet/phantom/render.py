"""Render a scene as the two images that a mammography system would show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL import ImageDraw, ImageFont
from scipy import ndimage

from clnet.phantom import tissue
from clnet.phantom.geometry import Array, ViewGeometry
from clnet.phantom.scene import BreastShape, PhantomLesion, Scene, outline

BITS = 12
EDGE = 0.8  # mm: blur of the edge of a mass
VISIBLE = 0.6  # minimum contrast of a visible mass, relative to the roughness of the tissue around it
ROUGHNESS = 0.02  # of smooth tissue: noise alone


@dataclass(frozen=True)
class RenderedView:
    """One image and the lesions visible in it.

    Attributes:
        pixels: [rows, columns] uint16 of `BITS` bits, chest wall on the left.
        boxes: xyxy in pixels of the lesions that look like a mass in this view, by their index in the scene.
    """

    pixels: NDArray[np.uint16]
    boxes: dict[int, Array]


def render(scene: Scene, rows: int, columns: int, rng: np.random.Generator) -> dict[str, RenderedView]:
    """Both views of a scene."""
    gland = tissue.draw_gland(scene.breast, rng)
    vessels = tissue.draw_vessels(scene.breast, rng)
    return {
        name: _render_view(scene, view, gland, vessels, rows, columns, rng)
        for name, view in scene.views.items()
    }


def _render_view(
    scene: Scene,
    view: ViewGeometry,
    gland: tissue.Image,
    vessels: Array,
    rows: int,
    columns: int,
    rng: np.random.Generator,
) -> RenderedView:
    breast, difficulty = scene.breast, scene.difficulty
    # Beyond the nipple there is only air, which need not be rendered.
    full_columns = columns
    columns = min(columns, int((1.05 * breast.depth + 8) / view.spacing))
    u = (np.arange(columns) + 0.5) * view.spacing
    v = (np.arange(rows) + 0.5) * view.spacing - view.row_of_nipple
    inside = _distance_to_skin(breast, view, u, v, rng)  # mm, negative outside
    thickness = _thickness(inside)

    dense = tissue.project_gland(gland, view, rows, columns)
    fibres = tissue.draw_fibres(u, v, breast, rng)
    vessel_lines = tissue.lines_image(vessels, view, rows, columns, width=1.7)
    for veil in scene.veils:
        view.add_projections(dense, veil)
    structure = 1 + difficulty.texture * 1.5 * (fibres - 0.3)
    background = 0.24 + (0.08 + 1.2 * dense) * structure
    background += 0.10 * vessel_lines
    if view.name == "mlo":
        background += _pectoral_muscle(breast, u, v, rng)
    background = ndimage.gaussian_filter(background, 0.5 / view.spacing)

    lesions = np.zeros_like(background)
    for lesion in scene.lesions:
        if lesion.outside == view.name:
            continue
        view.add_projections(lesions, lesion.body)
        view.add_projections(lesions, lesion.spicules)
    lesions = ndimage.gaussian_filter(lesions, EDGE / view.spacing)

    bright = _displayed((background + lesions) * thickness)
    empty = _displayed(background * thickness)
    boxes = {
        index: box
        for index, lesion in enumerate(scene.lesions)
        if lesion.mimics_in in (None, view.name)
        and lesion.outside != view.name
        and _is_visible(box := _box_around(lesion, view, rows, columns), bright, empty)
    }

    skin = np.exp(-(((inside - 1.0) / 0.8) ** 2))
    bright += 0.05 * skin * (inside > 0)
    bright = ndimage.gaussian_filter(bright, 0.45)
    quanta = rng.standard_normal((rows, columns), dtype=np.float32)
    bright += difficulty.noise * 0.014 * ndimage.gaussian_filter(quanta, 0.5) * np.sqrt(1.3 - bright)
    bright = np.where(inside > -0.5, np.clip(bright, 0.004, 1), 0)
    pixels = np.zeros((rows, full_columns), np.uint16)
    pixels[:, :columns] = bright * (2**BITS - 1)
    return RenderedView(pixels, boxes)


def _distance_to_skin(
    breast: BreastShape, view: ViewGeometry, u: Array, v: Array, rng: np.random.Generator
) -> NDArray[np.float32]:
    """The approximate distance in mm of each pixel from the skin, positive inside."""
    skin = outline(breast, view.name, v)
    waves = sum(rng.normal(0, 0.9 / k) * np.sin(v / 28 * k + rng.uniform(0, 6.28)) for k in (1, 2, 3))
    skin = np.where(skin > 0, skin + waves, skin)
    skin = skin + 5.0 * np.exp(-((v / 3.6) ** 4))  # the nipple
    slope = np.gradient(skin, v)
    return ((skin[:, None] - u) / np.sqrt(1 + np.minimum(slope**2, 25))[:, None]).astype(np.float32)


def _thickness(inside: NDArray[np.float32]) -> NDArray[np.float32]:
    """The path length through the breast: 1 where the paddle flattens it, decreasing towards the rim."""
    rim = 16.0
    across = np.clip(1 - inside / rim, 0, 1)
    # The outer square root is peripheral equalisation, as mammography systems do it.
    return np.where(inside > 0, np.sqrt(np.sqrt(1 - across**2)), 0).astype(np.float32)


def _pectoral_muscle(
    breast: BreastShape, u: Array, v: Array, rng: np.random.Generator
) -> NDArray[np.float32]:
    """The bright triangle in the upper corner of an MLO view, with streaks along its edge."""
    top, foot = rng.uniform(0.45, 0.7) * breast.depth, rng.uniform(-12, 22)
    height = foot - v[0]
    edge = top * np.clip((foot - v) / height, 0, None) ** rng.uniform(0.85, 1.15)
    within = np.clip((edge[:, None] - u) / 5.0, 0, 1)
    along = u + edge.max() * (v[:, None] - v[0]) / height
    streaks = np.sin(along / 3.1 + 0.7 * np.sin(along / 7)) * 0.03
    return (within * (0.62 + 0.25 * within * np.clip((edge[:, None] - u) / 40, 0, 1) + streaks)).astype(
        np.float32
    )


def _displayed(attenuation: NDArray[np.float32]) -> NDArray[np.float32]:
    """Displayed brightness, 0 to 1: a film-like curve that flattens in dense tissue, hiding masses."""
    return 0.9 * (1 - np.exp(-((attenuation / 1.05) ** 1.5)))


def _box_around(lesion: PhantomLesion, view: ViewGeometry, rows: int, columns: int) -> Array:
    """The box of whole pixels around the core of a lesion."""
    boxes = view.outline_boxes(lesion.body)
    low = np.maximum(np.floor(boxes[:, :2].min(axis=0)), 0)
    high = np.minimum(np.ceil(boxes[:, 2:].max(axis=0)), [columns, rows])
    return np.concatenate([low, high])


def _is_visible(box: Array, with_lesions: tissue.Image, without: tissue.Image) -> bool:
    """Whether the lesion in a box has enough contrast to be seen against its background."""
    x0, y0, x1, y1 = box.astype(int)
    rise = with_lesions[y0:y1, x0:x1].mean() - without[y0:y1, x0:x1].mean()
    return bool(rise > VISIBLE * (without[y0:y1, x0:x1].std() + ROUGHNESS))


def stamp_marker(pixels: NDArray[np.uint16], text: str, on_left: bool) -> None:
    """Draw the lead marker (such as "R MLO") into an upper corner, in place."""
    rows, columns = pixels.shape
    font = ImageFont.load_default(size=max(rows // 26, 8))
    left, top, right, bottom = font.getbbox(text)
    canvas = PILImage.new("L", (int(right - left), int(bottom - top)))
    ImageDraw.Draw(canvas).text((-left, -top), text, fill=255, font=font)
    stamp = np.asarray(canvas, np.uint16) * ((2**BITS - 1) // 255)
    height, width = stamp.shape
    x = columns // 25 if on_left else columns - columns // 25 - width
    y = rows // 25
    corner = pixels[y : y + height, x : x + width]
    np.maximum(corner, stamp, out=corner)
