"""Where the depth of a mass is measured from: the chest wall, found in the pixels."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clnet.data.reader import read_image
from clnet.preprocessing.breast import find_breast


@dataclass(frozen=True)
class BreastExtent:
    """Where the chest wall and the nipple are along the x axis of an image.

    Attributes:
        chest: x of the chest wall in pixels.
        nipple: x of the opposite edge of the breast.
        spacing_mm: (height, width) of a pixel in mm; None if unknown (film).
    """

    chest: float
    nipple: float
    spacing_mm: tuple[float, float] | None = None

    @property
    def depth(self) -> float:
        """From the chest wall to the nipple, in pixels."""
        return abs(self.nipple - self.chest)


def measure_extent(file: Path) -> BreastExtent:
    """Find the breast in an image file.

    Raises:
        ImageError: the image cannot be read.
    """
    image = read_image(file)
    breast = find_breast(image.pixels, image.header.laterality)
    x_min, _, x_max, _ = breast.box
    chest, nipple = (x_min, x_max) if breast.chest_side == "left" else (x_max, x_min)
    return BreastExtent(chest, nipple, image.header.spacing_mm)


def extent_facts(file: Path) -> dict[str, Any]:
    """The fields of `measure_extent(file)`, as `FileCache` stores them."""
    return asdict(measure_extent(file))
