"""MONAI dictionary transforms over a pair: load, preprocess, (augment: see `random_transforms`), finish.

An item starts as `Pair.to_item()`. Along the way it has, for each view ("cc", "mlo"):

==================  =================  =================================================================
key                 from               value
==================  =================  =================================================================
``cc``              `Pair.to_item`     path of the image, or None if the view is missing
..                  `LoadPaird`        `Mammogram`, or None
..                  `PreprocessPaird`  float32 [1, H, W], or None
``cc_boxes``        `Pair.to_item`     [n, 4] xyxy in **original** pixels, all the way
``cc_lesion_ids``   `Pair.to_item`     [n]; the same number in both views is the same lesion
``cc_pixel_size``   `Pair.to_item`     (height, width) of a pixel if the datalist gives it, or None
``cc_meta``         `LoadPaird`        facts from the header, `steps` and `warnings`, or None
``cc_placement``    `PreprocessPaird`  `Placement.to_dict()` from original to model pixels, or None
``cc_valid_size``   `PreprocessPaird`  [rows, columns] of the image at its canvas's top left, or None
==================  =================  =================================================================

Spatial transforms change only the image, the placement and the valid size. `FinishPaird` maps the boxes once,
by the final placement; nothing else moves a box, except a random rotation in training.

From `PreprocessPaird` on, an item has tensors and plain values only, so that MONAI's caches can store it.
"""

from collections.abc import Mapping
from typing import Any

import torch
from monai.transforms.transform import MapTransform
from torch import Tensor

from clnet.boxes import clip_to_image, normalise
from clnet.data.pair import VIEW_NAMES, check_boxes_inside
from clnet.data.reader import Mammogram, read_image
from clnet.errors import ClnetError
from clnet.preprocessing.placement import Placement
from clnet.preprocessing.preprocess import preprocess_views

Item = dict[str, Any]

MIN_VISIBLE = 0.5
"""The share of a box's area that must be left of a lesion to keep it."""


class TransformSettingError(ClnetError, ValueError):
    """An invalid argument of a transform."""


def check_setting(holds: bool, transform: object, name: str, value: object, expected: str) -> None:
    """Raise `TransformSettingError` unless the condition holds."""
    if not holds:
        raise TransformSettingError(f"{type(transform).__name__}: {name} is {value}; expected {expected}")


class LoadPaird(MapTransform):
    """Read the images of a pair, unless they are read already; reject boxes outside them.

    Args:
        apply_voi: whether the VOI LUT or window of a DICOM file is applied.
    """

    def __init__(self, apply_voi: bool = True) -> None:
        super().__init__(keys=VIEW_NAMES)
        self.apply_voi = apply_voi

    def __call__(self, data: Mapping[str, Any]) -> Item:
        """The item with images in place of paths."""
        item = dict(data)
        for view in VIEW_NAMES:
            item[f"{view}_meta"] = None
            if item[view] is None:
                continue
            image = item[view]
            if not isinstance(image, Mammogram):
                image = read_image(image, apply_voi=self.apply_voi)
            header = image.header
            check_boxes_inside(
                item[f"{view}_boxes"],
                rows=header.rows,
                columns=header.columns,
                where=f"pair {item['pair_id']}, {view}, {header.file}",
            )
            item[view] = image
            item[f"{view}_meta"] = {
                "file": str(header.file),
                "view": header.view,
                "laterality": header.laterality,
                "rows": header.rows,
                "columns": header.columns,
                "spacing_mm": list(header.spacing_mm) if header.spacing_mm else None,
                "steps": list(image.steps),
                "warnings": list(image.warnings),
            }
        return item


class PreprocessPaird(MapTransform):
    """Bring loaded views to the model's space: see `preprocess_views`.

    Args:
        size: (H, W) of the canvas.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__(keys=VIEW_NAMES)
        check_setting(len(size) == 2 and min(size) >= 1, self, "size", size, "(rows, columns) of at least 1")
        self.size = (int(size[0]), int(size[1]))

    def __call__(self, data: Mapping[str, Any]) -> Item:
        """The item with tensors in place of images."""
        item = dict(data)
        for view in VIEW_NAMES:
            item[f"{view}_boxes"] = torch.as_tensor(item[f"{view}_boxes"], dtype=torch.float32)
            item[f"{view}_lesion_ids"] = torch.as_tensor(item[f"{view}_lesion_ids"], dtype=torch.int64)
            item[f"{view}_placement"] = item[f"{view}_valid_size"] = None
        views = [view for view in VIEW_NAMES if item[view] is not None]
        placed_views = preprocess_views(
            [item[view] for view in views],
            self.size,
            item.get("laterality"),
            [item.get(f"{view}_pixel_size") for view in views],
        )
        for view, placed in zip(views, placed_views, strict=True):
            outside = _boxes_outside(item[f"{view}_boxes"], placed.breast.box)
            meta = item[f"{view}_meta"]
            item[view] = placed.image
            item[f"{view}_placement"] = placed.placement.to_dict()
            item[f"{view}_valid_size"] = list(placed.valid_size)
            item[f"{view}_meta"] = {
                **meta,
                "steps": [*meta["steps"], *placed.steps],
                "warnings": [*meta["warnings"], *placed.warnings, *outside],
            }
        return item


class FinishPaird(MapTransform):
    """Make the sample for collation and the network.

    ==================  ==============================================================================
    ``pair_id``         as given
    ``image``           float32 [2, H, W]: channel 0 CC, channel 1 MLO; zeros where a view is missing
    ``present``         bool [2]
    ``boxes``           [cc [n, 4], mlo [m, 4]] float32, cxcywh normalised by the canvas
    ``lesion_ids``      [cc [n], mlo [m]] int64
    ``original_boxes``  [cc, mlo], all annotated boxes, xyxy in pixels of the stored images
    ``placements``      [cc, mlo], each `Placement.to_dict()` from original to model pixels, or None
    ``meta``            [cc, mlo], each the facts from the header, steps and warnings, or None
    ==================  ==============================================================================

    A lesion of which a crop leaves too little is dropped from that view. In the other view it stays, without
    a partner, like any lesion annotated in one view only.

    Args:
        min_visible: the share of a box's area that must be left to keep the lesion, in (0, 1].
    """

    def __init__(self, min_visible: float = MIN_VISIBLE) -> None:
        super().__init__(keys=VIEW_NAMES)
        check_setting(0 < min_visible <= 1, self, "min_visible", min_visible, "more than 0, at most 1")
        self.min_visible = min_visible

    def __call__(self, data: Mapping[str, Any]) -> Item:
        """The sample."""
        images = [data[view] for view in VIEW_NAMES]
        blank = torch.zeros_like(next(image for image in images if image is not None))
        targets = [self._target(data, view) for view in VIEW_NAMES]
        return {
            "pair_id": data["pair_id"],
            "image": torch.cat([blank if image is None else image for image in images]),
            "present": torch.tensor([image is not None for image in images]),
            "boxes": [boxes for boxes, _ in targets],
            "lesion_ids": [lesion_ids for _, lesion_ids in targets],
            "original_boxes": [data[f"{view}_boxes"] for view in VIEW_NAMES],
            "placements": [data[f"{view}_placement"] for view in VIEW_NAMES],
            "meta": [data[f"{view}_meta"] for view in VIEW_NAMES],
        }

    def _target(self, data: Mapping[str, Any], view: str) -> tuple[Tensor, Tensor]:
        """Boxes [n, 4], normalised, and lesion ids [n] of what is visible in a view."""
        if data[view] is None:
            return data[f"{view}_boxes"][:0], data[f"{view}_lesion_ids"][:0]
        boxes, lesion_ids = visible_lesions(data, view, self.min_visible)
        return normalise(boxes, *data[view].shape[1:]), lesion_ids


def visible_lesions(
    data: Mapping[str, Any], view: str, min_visible: float = MIN_VISIBLE
) -> tuple[Tensor, Tensor]:
    """Boxes [n, 4], xyxy in pixels of the canvas, cut off where the view ends, and lesion ids [n].

    A lesion of which less than `min_visible` is left is dropped.
    """
    whole = Placement.from_dict(data[f"{view}_placement"]).apply(data[f"{view}_boxes"])
    visible = clip_to_image(whole, *data[f"{view}_valid_size"])
    kept = _area(visible) >= min_visible * _area(whole)
    return visible[kept], data[f"{view}_lesion_ids"][kept]


def _area(boxes: Tensor) -> Tensor:
    """Area [n] of xyxy boxes [n, 4]; 0 for a box that clipping has inverted."""
    sides = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0)
    return sides[:, 0] * sides[:, 1]


def _boxes_outside(boxes: Tensor, breast: tuple[int, int, int, int]) -> list[str]:
    """A warning for each annotated box [n, 4] that extends beyond the breast box, in original pixels."""
    x_min, y_min, x_max, y_max = breast
    return [
        f"box {index} {box} extends beyond the breast found at {list(breast)}"
        for index, box in enumerate(boxes.tolist())
        if box[0] < x_min or box[1] < y_min or box[2] > x_max or box[3] > y_max
    ]
