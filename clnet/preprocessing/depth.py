"""Where the depth of a mass is measured from: the chest wall, found in the pixels."""

from pathlib import Path
from typing import Any

from clnet.data.reader import read_image
from clnet.preprocessing.breast import find_breast


def breast_extent(file: Path) -> dict[str, Any]:
    """The fields of a `clnet.converters.links.BreastExtent` of an image file.

    Raises:
        ImageError: the image cannot be read.
    """
    image = read_image(file)
    breast = find_breast(image.pixels, image.header.laterality)
    x_min, _, x_max, _ = breast.box
    chest, nipple = (x_min, x_max) if breast.chest_side == "left" else (x_max, x_min)
    spacing = image.header.spacing_mm
    return {"chest": chest, "nipple": nipple, "mm": list(spacing) if spacing else None}
