"""Mammograms drawn for tests, so simple that what is where in them is known exactly."""

from pathlib import Path

import numpy as np

from clnet.data.header import ImageHeader
from clnet.data.reader import Mammogram

TISSUE = 2000.0


def breast(rows: int = 800, columns: int = 500, depth: int = 250, background: float = 0.0) -> np.ndarray:
    """Half an ellipse of tissue on the left edge: from 1/8 to 7/8 of the rows, `depth` columns deep."""
    y, x = np.mgrid[:rows, :columns] + 0.5
    radius = np.hypot((y - rows / 2) / (rows * 3 / 8), x / depth)
    # Fainter towards the skin, as the breast grows thinner there.
    return np.where(radius < 1, TISSUE * (1.2 - 0.9 * radius**4), background).astype(np.float32)


def true_box(rows: int = 800, depth: int = 250) -> tuple[int, int, int, int]:
    """The box of the breast that `breast` draws."""
    return 0, rows // 8, depth, rows * 7 // 8


def film() -> np.ndarray:
    """A scanned film: a noisy grey background, a glow along the edges, letters, dust, scratches."""
    random = np.random.default_rng(0)
    image = breast() + random.normal(120, 40, (800, 500)).astype(np.float32)
    image += 700 * np.exp(-np.arange(500) / 8) + 300 * np.exp(-np.arange(500)[::-1] / 8)
    for column in range(400, 480, 20):  # letters
        image[60:110, column : column + 8] = 3500
        image[60:68, column : column + 14] = 3500
    image[300, 420] = image[700, 300] = 4000
    image[:, 330:332] = 1500
    return image


def mammogram(
    pixels: np.ndarray, spacing_mm: tuple[float, float] | None = None, laterality: str | None = None
) -> Mammogram:
    """The pixels as the reader would give them."""
    header = ImageHeader(
        file=Path("drawn.png"),
        view=None,
        laterality=laterality,
        rows=pixels.shape[0],
        columns=pixels.shape[1],
        bits_stored=16,
        photometric="MONOCHROME2",
        spacing_mm=spacing_mm,
    )
    return Mammogram(pixels.astype(np.float32), header, ("drawn",), ())
