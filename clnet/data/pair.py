"""A pair: the CC and MLO views of one breast, the lesions in them, and which of them are the same.

Every object here is validated when it is created, so that a `Pair` is always consistent.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clnet.errors import ClnetError

VIEW_NAMES = ("cc", "mlo")

LinkSource = Literal["annotated", "single_pair", "geometric"]
LINK_SOURCES: tuple[LinkSource, ...] = get_args(LinkSource)


class PairError(ClnetError):
    """An invalid view or pair."""


@dataclass(frozen=True, eq=False)
class View:
    """One image of a breast and the lesions annotated in it.

    Attributes:
        image: the image file.
        boxes: [n, 4] float32, xyxy in pixels of the stored image (see `clnet.boxes`).
        lesion_ids: the id of each box's lesion, unique within the breast.
        size: (rows, columns) of the stored image, if known; boxes are then checked against it here, otherwise
            when the image is loaded.
        pixel_size: (height, width) of a pixel in any unit that both views of the breast share, such as mm;
            for files without a pixel spacing.
    """

    image: Path
    boxes: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 4), np.float32))
    lesion_ids: tuple[str, ...] = ()
    size: tuple[int, int] | None = None
    pixel_size: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", Path(self.image))
        if "\0" in str(self.image):
            raise PairError(f"image is {str(self.image)!r}; the name of a file has no NUL character")
        object.__setattr__(self, "boxes", _as_boxes(self.boxes, self.image))
        object.__setattr__(self, "lesion_ids", tuple(self.lesion_ids))
        if len(self.boxes) != len(self.lesion_ids):
            raise PairError(
                f"{self.image}: {len(self.boxes)} boxes but {len(self.lesion_ids)} lesion_ids; "
                "each box needs the id of its lesion"
            )
        repeated = {i for i in self.lesion_ids if self.lesion_ids.count(i) > 1}
        if repeated:
            raise PairError(
                f"{self.image}: {self.lesion_ids.count(min(repeated))} boxes have lesion id "
                f"{min(repeated)!r}; a lesion has one box per view"
            )
        if self.pixel_size is not None:
            object.__setattr__(self, "pixel_size", _as_pixel_size(self.pixel_size, self.image))
        if self.size is not None:
            check_boxes_inside(self.boxes, *self.size, where=str(self.image))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return (self.image, self.lesion_ids, self.size, self.pixel_size) == (
            other.image,
            other.lesion_ids,
            other.size,
            other.pixel_size,
        ) and np.array_equal(self.boxes, other.boxes)


@dataclass(frozen=True)
class Pair:
    """One breast of one patient.

    Attributes:
        pair_id: unique in a datalist.
        patient_id: keeps the breasts of a patient in one section of a datalist.
        laterality: "L" or "R".
        cc, mlo: the two views; either may be missing, never both.
        links: the source of the link of each lesion that is in both views; "annotated" for those not listed.
        attributes: facts about the breast that evaluation can group by (density, subtlety, …).
    """

    pair_id: str
    patient_id: str
    laterality: str
    cc: View | None = None
    mlo: View | None = None
    links: Mapping[str, LinkSource] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("pair_id", "patient_id"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise PairError(
                    f"pair {self.pair_id!r}: {name} is {getattr(self, name)!r}; expected a string"
                )
        if self.laterality not in ("L", "R"):
            raise PairError(f'pair {self.pair_id!r}: laterality is {self.laterality!r}; expected "L" or "R"')
        if self.cc is None and self.mlo is None:
            raise PairError(f"pair {self.pair_id!r}: no cc and no mlo; a pair has at least one view")
        in_cc, in_mlo = (set(view.lesion_ids) if view else set() for view in (self.cc, self.mlo))
        for lesion_id, source in self.links.items():
            for view_name, ids in (("cc", in_cc), ("mlo", in_mlo)):
                if lesion_id not in ids:
                    raise PairError(
                        f"pair {self.pair_id!r}: links has lesion {lesion_id!r}, which has no box in "
                        f"{view_name} (it has {sorted(ids) or 'none'}); a link joins two boxes of one lesion"
                    )
            if source not in LINK_SOURCES:
                raise PairError(
                    f"pair {self.pair_id!r}: the link of lesion {lesion_id!r} has source {source!r}; "
                    f"expected one of {', '.join(LINK_SOURCES)}"
                )
        unnamed: dict[str, LinkSource] = dict.fromkeys(
            sorted((in_cc & in_mlo) - set(self.links)), "annotated"
        )
        object.__setattr__(self, "links", {**self.links, **unnamed})

    @property
    def views(self) -> dict[str, View]:
        """The views that are there, by name."""
        return {name: view for name in VIEW_NAMES if (view := getattr(self, name)) is not None}

    def to_item(self) -> dict[str, Any]:
        """The flat dictionary that the transforms of `clnet.preprocessing` start from.

        Lesion ids become integers; the same integer in both views is the same lesion.
        """
        ids = sorted({i for view in self.views.values() for i in view.lesion_ids})
        number = {lesion_id: n for n, lesion_id in enumerate(ids)}
        item: dict[str, Any] = {"pair_id": self.pair_id, "laterality": self.laterality}
        for name in VIEW_NAMES:
            view: View | None = getattr(self, name)
            item[name] = str(view.image) if view else None
            item[f"{name}_boxes"] = view.boxes if view else np.zeros((0, 4), np.float32)
            item[f"{name}_lesion_ids"] = np.array(
                [number[i] for i in view.lesion_ids] if view else [], dtype=np.int64
            )
            item[f"{name}_pixel_size"] = view.pixel_size if view else None
        return item


def check_boxes_inside(boxes: NDArray[np.float32], rows: int, columns: int, where: str) -> None:
    """Raise `PairError` unless every xyxy box [n, 4] is inside an image of that size."""
    for index, (x_min, y_min, x_max, y_max) in enumerate(boxes.tolist()):
        if x_min < 0 or y_min < 0 or x_max > columns or y_max > rows:
            raise PairError(
                f"{where}: box {index} is {[x_min, y_min, x_max, y_max]}, outside the image of "
                f"{columns} columns and {rows} rows; boxes are [x_min, y_min, x_max, y_max] in pixels"
            )


def _as_pixel_size(given: Sequence[float], image: Path) -> tuple[float, float]:
    try:
        height, width = (float(number) for number in given)
    except (OverflowError, TypeError, ValueError):
        height = width = 0.0
    if not (0 < height < math.inf and 0 < width < math.inf):
        raise PairError(f"{image}: pixel_size is {given!r}; expected two positive numbers, height and width")
    return height, width


def _as_boxes(boxes: ArrayLike, image: Path) -> NDArray[np.float32]:
    try:
        array = np.asarray(boxes, dtype=np.float32)
    except (OverflowError, TypeError, ValueError) as error:
        raise PairError(f"{image}: boxes are {boxes!r}; expected a list of four numbers per box") from error
    if array.size == 0:
        return np.zeros((0, 4), np.float32)
    if array.ndim != 2 or array.shape[1] != 4:
        raise PairError(f"{image}: boxes have shape {list(array.shape)}; expected [n, 4]")
    for index, box in enumerate(array.tolist()):
        if not np.isfinite(box).all() or box[0] >= box[2] or box[1] >= box[3]:
            raise PairError(
                f"{image}: box {index} is {box}; expected finite [x_min, y_min, x_max, y_max] "
                "with x_min < x_max and y_min < y_max"
            )
        if box[0] < 0 or box[1] < 0:
            raise PairError(f"{image}: box {index} is {box}; it starts outside the image")
    return array
