"""Boxes for an archive of one's own: COCO JSON, or a CSV.

- **CSV**: ``SOPInstanceUID,x_min,y_min,x_max,y_max,lesion_id``, a row for each box, the last column optional.
  Images that are not named have no masses.
- **COCO**: ``images`` with `file_name` (relative to the archive) or `sop_instance_uid`, ``annotations`` with
  `bbox` (x, y, width, height) and, if known, `lesion_id`. Images that are not named are not used. Where there
  are several categories, those with "mass" in their name count.

The same lesion id in both views of a breast is the same lesion.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clnet.converters.marked import Box, ConversionError, Mass, Skipped
from clnet.converters.tables import read_table

CORNERS = ("x_min", "y_min", "x_max", "y_max")


@dataclass
class Marks:
    """What is marked in one image: masses, and a line for each of which the place is not known."""

    masses: list[Mass] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Annotations:
    """The content of an annotation file.

    Attributes:
        images: the marks by SOPInstanceUID, file name relative to the archive, or bare file name.
        names_all: an image that is not named is not annotated, rather than without masses.
        skipped: what is no box of a mass.
    """

    images: Mapping[str, Marks]
    names_all: bool
    skipped: tuple[Skipped, ...] = ()


def read_annotations(file: Path) -> Annotations:
    """Read a CSV or COCO file, told apart by the name."""
    return _read_coco(file) if file.suffix.lower() == ".json" else _read_csv(file)


def _read_csv(file: Path) -> Annotations:
    images: dict[str, Marks] = defaultdict(Marks)
    skipped = []
    for number, row in enumerate(read_table(file, ["sopinstanceuid", *CORNERS]), start=1):
        where = f"{file.name} row {number}"
        if not row["sopinstanceuid"]:
            skipped.append(Skipped(where, "damaged row", "no SOPInstanceUID"))
            continue
        marks = images[row["sopinstanceuid"]]
        corners = [row[name] for name in CORNERS]
        if any(corners):  # a row without any says that the image has no masses
            _add(marks, corners, row.get("lesion_id"), where, skipped)
    return Annotations(images, False, tuple(skipped))


def _read_coco(file: Path) -> Annotations:
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
            f"{file}: not a COCO file ({type(error).__name__}: {error}); images with id and file_name, "
            "annotations, and categories are expected"
        ) from error
    masses = {i for i, name in categories.items() if "mass" in name.lower() or len(categories) == 1}
    images = {key: Marks() for key in keys.values()}
    skipped: list[Skipped] = []
    for number, entry in enumerate(annotations, start=1):
        where = f"{file.name} annotation {number}"
        if not isinstance(entry, dict) or entry.get("image_id") not in keys:
            skipped.append(Skipped(where, "damaged row", "its image_id names no image"))
            continue
        if categories and entry.get("category_id") not in masses:
            name = categories.get(entry.get("category_id"), "of no category")
            skipped.append(Skipped(where, "not a mass", name))
            continue
        _add(images[keys[entry["image_id"]]], _corners(entry), entry.get("lesion_id"), where, skipped)
    return Annotations(images, True, tuple(skipped))


def _corners(entry: Mapping[str, Any]) -> Any:
    try:
        x, y, width, height = (float(number) for number in entry["bbox"])
    except (LookupError, TypeError, ValueError):
        return entry.get("bbox")
    return x, y, x + width, y + height


def _add(marks: Marks, corners: Any, lesion_id: Any, where: str, skipped: list[Skipped]) -> None:
    box = _box(corners)
    if box is None:
        problem = f"{corners!r} is no box: four numbers, the first corner before the second, are expected"
        marks.unplaced.append(f"{where}: {problem}")
        skipped.append(Skipped(where, "damaged row", problem))
    else:
        marks.masses.append(Mass(box, str(lesion_id) if lesion_id not in (None, "") else None))


def _box(corners: Any) -> Box | None:
    try:
        x_min, y_min, x_max, y_max = (float(number) for number in corners)
    except (TypeError, ValueError):
        return None
    sensible = np.isfinite([x_min, y_min, x_max, y_max]).all() and x_min < x_max and y_min < y_max
    return (x_min, y_min, x_max, y_max) if sensible else None
