"""Boxes for your own archive, from COCO JSON or CSV.

- **CSV**: ``SOPInstanceUID,x_min,y_min,x_max,y_max,lesion_id``, one row per box, the last column optional.
  Images that are not listed have no masses.
- **COCO**: ``images`` with `file_name` (relative to the archive) or `sop_instance_uid`, ``annotations`` with
  `bbox` (x, y, width, height) and optionally `lesion_id`. Images that are not listed are not used. If there
  are several categories, those with "mass" in their name are used.

The same lesion id in both views of a breast is the same lesion.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clnet.converters.annotated import Box, ConversionError, Mass, Skipped
from clnet.converters.tables import read_table

CORNERS = ("x_min", "y_min", "x_max", "y_max")


@dataclass
class ImageBoxes:
    """The masses in one image, and one line for each mass without a usable box."""

    masses: list[Mass] = field(default_factory=list)
    unlocated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class BoxFile:
    """The content of a file of boxes.

    Attributes:
        images: boxes by SOPInstanceUID, file name relative to the archive, or bare file name.
        lists_all_images: an image that is not listed is not annotated, rather than without masses.
        skipped: what is not a box of a mass.
    """

    images: Mapping[str, ImageBoxes]
    lists_all_images: bool
    skipped: tuple[Skipped, ...] = ()


def read_box_file(file: Path) -> BoxFile:
    """Read a COCO file if its name ends in .json, otherwise a CSV file."""
    return _read_coco(file) if file.suffix.lower() == ".json" else _read_csv(file)


def _read_csv(file: Path) -> BoxFile:
    images: dict[str, ImageBoxes] = defaultdict(ImageBoxes)
    skipped = []
    for number, row in enumerate(read_table(file, ["sopinstanceuid", *CORNERS]), start=1):
        where = f"{file.name} row {number}"
        if not row["sopinstanceuid"]:
            skipped.append(Skipped(where, "damaged row", "no SOPInstanceUID"))
            continue
        boxes = images[row["sopinstanceuid"]]
        corners = [row[name] for name in CORNERS]
        if any(corners):  # a row without any means that the image has no masses
            _add(boxes, corners, row.get("lesion_id"), where, skipped)
    return BoxFile(images, False, tuple(skipped))


def _read_coco(file: Path) -> BoxFile:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        keys = {
            image["id"]: str(image.get("sop_instance_uid") or image["file_name"])
            for image in content["images"]
        }
        annotations = list(content["annotations"])
        categories = {entry["id"]: str(entry["name"]) for entry in content.get("categories", ())}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConversionError(
            f"{file}: not a COCO file ({type(error).__name__}: {error}); expected images with id and "
            "file_name, annotations, and categories"
        ) from error
    masses = {i for i, name in categories.items() if "mass" in name.lower() or len(categories) == 1}
    images = {key: ImageBoxes() for key in keys.values()}
    skipped: list[Skipped] = []
    for number, entry in enumerate(annotations, start=1):
        where = f"{file.name} annotation {number}"
        if not isinstance(entry, dict) or entry.get("image_id") not in keys:
            skipped.append(Skipped(where, "damaged row", "its image_id is not in images"))
            continue
        if categories and entry.get("category_id") not in masses:
            name = categories.get(entry.get("category_id"), "no category")
            skipped.append(Skipped(where, "not a mass", name))
            continue
        _add(images[keys[entry["image_id"]]], _corners(entry), entry.get("lesion_id"), where, skipped)
    return BoxFile(images, True, tuple(skipped))


def _corners(entry: Mapping[str, Any]) -> Any:
    try:
        x, y, width, height = (float(number) for number in entry["bbox"])
    except (LookupError, TypeError, ValueError):
        return entry.get("bbox")
    return x, y, x + width, y + height


def _add(boxes: ImageBoxes, corners: Any, lesion_id: Any, where: str, skipped: list[Skipped]) -> None:
    box = _box(corners)
    if box is None:
        problem = f"{corners!r} is not a box; expected four numbers, the first corner before the second"
        boxes.unlocated.append(f"{where}: {problem}")
        skipped.append(Skipped(where, "damaged row", problem))
    else:
        boxes.masses.append(Mass(box, str(lesion_id) if lesion_id not in (None, "") else None))


def _box(corners: Any) -> Box | None:
    try:
        x_min, y_min, x_max, y_max = (float(number) for number in corners)
    except (TypeError, ValueError):
        return None
    is_valid = np.isfinite([x_min, y_min, x_max, y_max]).all() and x_min < x_max and y_min < y_max
    return (x_min, y_min, x_max, y_max) if is_valid else None
