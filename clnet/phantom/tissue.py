"""The tissue of the breast: glandular lobes, fibres and vessels.

Large structures come from one 3D field that both views project. Fine structures are drawn for each view: in
real breasts too, they cannot be matched between views by eye.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft, ndimage

from clnet.phantom.geometry import Array, ViewGeometry
from clnet.phantom.scene import BreastShape

Image = NDArray[np.float32]

GRID = (28, 48, 48)  # x, y, z
HALF_EXTENT = 84.0  # mm: the extent of the field in both directions along y and z
X_EXTENT = 1.2 * HALF_EXTENT
STRANDS = (192, 512)  # cells of the noise that strands are sampled from: outward, around the nipple


def power_law_noise(shape: tuple[int, ...], exponent: float, rng: np.random.Generator) -> Image:
    """Noise of mean 0 and deviation 1 with power ∝ frequency^−exponent (about 3 in mammograms)."""
    white = rng.standard_normal(shape, dtype=np.float32)
    noise = fft.irfftn(fft.rfftn(white) * _power_law_gain(shape, exponent), s=shape)
    return noise / noise.std()


@lru_cache(maxsize=16)
def _power_law_gain(shape: tuple[int, ...], exponent: float) -> Image:
    frequencies = [fft.fftfreq(n) for n in shape[:-1]] + [fft.rfftfreq(shape[-1])]
    radius = np.sqrt(sum(f**2 for f in np.meshgrid(*frequencies, indexing="ij", sparse=True)))
    radius.flat[0] = np.inf
    return (radius ** (-exponent / 2)).astype(np.float32)


def draw_gland(breast: BreastShape, rng: np.random.Generator) -> Image:
    """The share of glandular tissue [x, y, z], 0 to 1: lobes in a cone behind the nipple, in fat."""
    x = (np.arange(GRID[0]) + 0.5) / GRID[0] * X_EXTENT / breast.depth
    across = ((np.arange(GRID[1]) + 0.5) / GRID[1] * 2 - 1) * HALF_EXTENT / breast.half_width
    depth = x[:, None, None]
    radius = np.sqrt(across[:, None] ** 2 + across**2)[None]
    # There is fat under the skin and in front of the chest wall; the gland narrows towards the nipple.
    rim = 0.78 * np.sqrt(np.clip(1 - depth**1.6, 0, 1)) + 0.05
    inside = (rim - radius) * 3.5 - 1.5 * np.clip(0.25 - depth, 0, None)
    lobes = power_law_noise(GRID, 4.2, rng)
    level = 3.0 * breast.glandular - 2.1
    return (1 / (1 + np.exp(-4.0 * (np.minimum(inside, 0.8) + 1.0 * lobes + level)))).astype(np.float32)


def project_gland(gland: Image, view: ViewGeometry, rows: int, columns: int) -> Image:
    """The mean of the gland [x, y, z] along the beam of a view, as an image [rows, columns]."""
    cos, sin = view.beam[2], -view.beam[1]
    # Grid steps along y and z are equal, so rotating the grid rotates the body. The nearest cell is accurate
    # enough, since a mean over many cells and a blur follow.
    middle = (GRID[1] - 1) / 2
    across, along = np.meshgrid(np.arange(GRID[1]) - middle, np.arange(GRID[2]) - middle, indexing="ij")
    y = np.clip(np.rint(middle + cos * across - sin * along), 0, GRID[1] - 1).astype(int)
    z = np.clip(np.rint(middle + sin * across + cos * along), 0, GRID[2] - 1).astype(int)
    projected = ndimage.gaussian_filter(gland[:, y, z].mean(axis=2), 0.6)
    # From pixels back to (depth, across) in the body: the inverse of the view's map.
    down = np.array([0.0, -cos, -sin])
    to_image = np.stack([view.matrix[:, 0], view.matrix @ down], axis=1)
    u = (np.arange(columns) + 0.5) * view.spacing
    v = (np.arange(rows) + 0.5) * view.spacing - view.row_of_nipple
    back = np.linalg.inv(to_image)
    depth = back[0, 0] * u + back[0, 1] * v[:, None]
    below = back[1, 0] * u + back[1, 1] * v[:, None]
    grid_x = depth / X_EXTENT * GRID[0] - 0.5
    grid_y = (1 - below / HALF_EXTENT) / 2 * GRID[1] - 0.5
    return ndimage.map_coordinates(projected, [grid_x, grid_y], order=1, mode="nearest")


def draw_fibres(u: Array, v: Array, breast: BreastShape, rng: np.random.Generator) -> Image:
    """Fine strands towards the nipple, and a fainter web across them; about 0 to 1.

    Args:
        u: [columns], depth of each column in mm.
        v: [rows], distance of each row below the nipple in mm.
        breast: its depth is where the nipple is.
        rng: source of random numbers.
    """
    dx, dy = (breast.depth + 8 - u).astype(np.float32), v[:, None].astype(np.float32)
    distance = np.sqrt(dx * dx + dy * dy)
    turn = np.arctan2(dy, dx)
    strands = np.zeros(distance.shape, np.float32)
    # One noise field serves both widths of strands: at another scale it looks like another field.
    ridges = np.exp(-((power_law_noise(STRANDS, 2.6, rng) / 0.38) ** 2))
    for length, width, weight in ((60.0, 40, 0.5), (30.0, 90, 0.5)):
        # Bend the strands, or they look like ruled lines.
        bend = 0.10 * np.sin(distance / rng.uniform(9, 14) + 3 * turn + rng.uniform(0, 6.28))
        outward = (distance * (24 / length)).astype(np.int32)
        around = ((turn + bend) * (2 * width / np.pi) + 2 * STRANDS[1]).astype(np.int32)
        strands += weight * ridges[outward % STRANDS[0], around % STRANDS[1]]
    # The same size for every breast of a phantom, so that the filter is computed once. The deepest breast
    # covers 0.54 of the height of the field.
    rows, columns = distance.shape
    web = power_law_noise((rows, rows * 9 // 16), 2.8, rng)[:, :columns]
    return 0.6 * strands + 0.4 * np.exp(-((web / 0.4) ** 2))


def draw_vessels(breast: BreastShape, rng: np.random.Generator) -> Array:
    """Points [n, 3] in mm along winding vessels and ducts, dense enough to draw them as lines."""
    lines = []
    for _ in range(int(rng.integers(4, 8))):
        start = np.array([2.0, *rng.normal(0, 0.45 * breast.half_width, 2)])
        end = np.array([breast.depth * rng.uniform(0.7, 0.97), *rng.normal(0, 0.15 * breast.half_width, 2)])
        along = np.linspace(0, 1, 500)[:, None]
        winding = sum(
            rng.normal(0, 5.0 / k, 3) * np.sin(np.pi * k * along + rng.uniform(0, 6.28)) for k in (1, 2, 4, 7)
        )
        lines.append(start + (end - start) * along + winding * np.sin(np.pi * along) ** 0.5)
    return np.concatenate(lines)


def lines_image(points: Array, view: ViewGeometry, rows: int, columns: int, width: float) -> Image:
    """Body points [n, 3] drawn as soft lines `width` mm wide, about 1 in the middle of a line."""
    at = view.project(points).astype(int)
    inside = ((at >= 0) & (at < [columns, rows])).all(axis=1)
    at = at[inside]
    image = np.bincount(at[:, 1] * columns + at[:, 0], minlength=rows * columns).reshape(rows, columns)
    sigma = width / 2 / view.spacing
    return ndimage.gaussian_filter(np.minimum(image, 3).astype(np.float32) / 3, sigma) * 2.5 * sigma
