"""Films of the size that scanners give, from those of the test data."""

from pathlib import Path

import numpy as np
import pydicom
from pydicom.uid import RLELossless

FILMS = Path(__file__).parents[2] / "tests" / "data" / "cbis-ddsm"


def full_size_film(view: str, folder: Path) -> Path:
    """The left breast's film of a view, "cc" or "mlo", at about 4464 × 2848 pixels, 16 bit, RLE."""
    film = pydicom.dcmread(FILMS / f"left_{view}.dcm")
    pixels = np.kron(film.pixel_array, np.ones((8, 8), np.uint16))
    noise = np.random.default_rng(0).integers(0, 256, pixels.shape, dtype=np.uint16)
    pixels = np.where(pixels > 256, pixels - noise, pixels)
    film.Rows, film.Columns = pixels.shape
    film.compress(RLELossless, pixels)
    film.save_as(folder / f"{view}.dcm")
    return folder / f"{view}.dcm"
