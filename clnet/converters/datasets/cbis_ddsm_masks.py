"""Which of the candidate files is the mask of a mass in CBIS-DDSM, and the box around it.

Mask and crop share a series in either order, so their names say nothing. A mask has two values,
or nearly so as a JPEG, and usually the size of its image. `SeriesDescription` helps where it is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from clnet.converters.annotated import Box
from clnet.converters.box_extraction import mask_to_box, rescale_box
from clnet.data.decode import decode
from clnet.data.header import ImageHeader, image_format
from clnet.data.image_errors import ImageError, refusing_damage
from clnet.data.reader import read_dicom, read_image

# The mask of a JPEG is black and white, but for the noise of JPEG near its edge.
JPEG_CONTRAST = 128  # at least, of 255
JPEG_NOISE = 32  # at most
JPEG_OUTLIERS = 0.01  # of the pixels may have more noise
SAME_SHAPE = 0.01  # relative difference between two aspect ratios that rounding explains


@dataclass(frozen=True)
class MaskBox:
    """The box of a mass, from its mask.

    Attributes:
        box: in pixels of the image; None if there is no usable mask.
        problem: why there is no box, or "".
        warnings: what is unusual about the mask.
    """

    box: Box | None
    problem: str = ""
    warnings: tuple[str, ...] = ()


def mask_facts(file: Path) -> dict[str, Any]:
    """Whether an image is binary, the box around its bright pixels, and the number of their components."""
    is_jpeg = image_format(file) == "JPEG"
    stored = read_image(file).pixels if is_jpeg else _stored_values(file)
    low, high = stored.min(), stored.max()
    mask = stored > (float(low) + float(high)) / 2
    box = mask_to_box(mask)
    components = 0
    if box:
        x_min, y_min, x_max, y_max = map(int, box)
        eight_neighbours = np.ones((3, 3), int)
        components = int(ndimage.label(mask[y_min:y_max, x_min:x_max], eight_neighbours)[1])
    distance = np.minimum(stored - low, high - stored)  # to the nearer of two values
    if is_jpeg:
        binary = high - low >= JPEG_CONTRAST and np.mean(distance > JPEG_NOISE) <= JPEG_OUTLIERS
    else:
        binary = low < high and not distance.any()
    return {"binary": bool(binary), "box": list(box) if box else None, "components": components}


def _stored_values(file: Path) -> NDArray[Any]:
    """Those of a DICOM file: a mask needs no grey scale."""
    with file.open("rb") as stream, refusing_damage(file):
        return decode(*read_dicom(stream, file))


def find_box(
    files: Sequence[Path],
    contents: Mapping[Path, dict[str, Any] | ImageError],
    headers: Mapping[Path, ImageHeader],
    size: tuple[int, int],
) -> MaskBox:
    """The box of a mass in an image of `size` (rows, columns), from the mask among `files`.

    Args:
        files: the candidates.
        contents: the `mask_facts` of each candidate, or why it cannot be read.
        headers: of each candidate.
        size: of the image.
    """
    facts = {file: found for file in files if not isinstance(found := contents[file], ImageError)}
    binary = [file for file, found in facts.items() if found["binary"]]
    fitting = [file for file in facts if _size(headers[file]) == size]
    described = [file for file in facts if "MASK" in headers[file].series_description]
    # From the most to the least reliable; a crop is not binary, and rarely has the size of the image.
    choices = (
        [file for file in binary if file in fitting and file in described],
        [file for file in binary if file in fitting],
        [file for file in described if file in fitting],
        [file for file in binary if file in described],
        binary,
    )
    chosen = next((choice for choice in choices if choice), [])
    boxes = {tuple(facts[file]["box"] or ()) for file in chosen}
    if len(boxes) > 1:
        return MaskBox(None, f"several different masks: {_names(chosen)}")
    if boxes in (set(), {()}):
        refused = [file for file in files if file not in facts]
        unreadable = [str(contents[file]).replace(str(file), file.name) for file in refused]
        seen = f"none of {_names(files)} is binary or has the size of the image" if files else "no such file"
        return MaskBox(None, "; ".join([f"no mask: {seen}", *unreadable]))
    mask, box = chosen[0], facts[chosen[0]]["box"]
    warnings = []
    if facts[mask]["components"] > 1:
        warnings.append(f"the mask has {facts[mask]['components']} components; one box covers them all")
    (rows, columns), (image_rows, image_columns) = _size(headers[mask]), size
    if (rows, columns) != size:
        same = abs(rows * image_columns / (columns * image_rows) - 1) < SAME_SHAPE
        shape = "" if same else ", with another aspect ratio"
        warnings.append(
            f"mask of {rows} × {columns}, image of {image_rows} × {image_columns}{shape}: the box is rescaled"
        )
        box = rescale_box(box, (rows, columns), size)
    return MaskBox(tuple(box), warnings=tuple(warnings))


def _size(header: ImageHeader) -> tuple[int, int]:
    return header.rows, header.columns


def _names(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files)
