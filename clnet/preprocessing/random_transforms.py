"""Random transforms for training: the paper's three (flip, crop, normalisation), zoom, rotation, cuts.

Whatever changes the depth from the chest wall (x) is shared, so that depths stay comparable between views,
and so is what turns images upside down, since what lies high in one view often lies high in the other:

=====================  ===========  ==========================================================
draw                   views        because
=====================  ===========  ==========================================================
vertical flip          shared       rows of a lesion in CC and in MLO correlate
horizontal flip        shared       it mirrors depth
crop, columns          shared       they are depth
crop, rows             independent  rows are counted from the middle of the breast
chest wall             one view     positioning leaves out a part of the breast in one view
zoom factor            shared       it scales depth
zoom, columns kept     shared       they are depth
zoom, rows kept        independent  as for the crop
rotation               independent  the breast is positioned anew for each view
normalisation          independent  each view has its own exposure and normalisation
=====================  ===========  ==========================================================

All follow MONAI's conventions (`prob`, `set_random_state`) and come after `PreprocessPaird`. They change the
image, its placement and its valid size, and keep the view at the top left of its canvas, padded with 0. A
rotation alone changes boxes, for no placement can turn them. A missing view stays missing.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from monai.transforms.transform import MapTransform, RandomizableTransform
from torch import Tensor
from torch.nn import functional as F

from clnet.data.pair import VIEW_NAMES
from clnet.preprocessing.placement import Placement
from clnet.preprocessing.preprocess import resize
from clnet.preprocessing.transforms import Item, check_setting, visible_lesions


class RandPairTransform(RandomizableTransform, MapTransform):
    """Base of the random transforms: with a probability, change the views that are there."""

    def __init__(self, prob: float) -> None:
        RandomizableTransform.__init__(self, prob)
        MapTransform.__init__(self, keys=VIEW_NAMES)

    def __call__(self, data: Mapping[str, Any]) -> Item:
        """A changed copy of the item."""
        item = dict(data)
        self.randomize(item)
        if self._do_transform:
            self.change(item, [view for view in VIEW_NAMES if item[view] is not None])
        return item

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply; `item` is a shallow copy, so its values must not be changed in place."""
        raise NotImplementedError


class RandFlipPaird(RandPairTransform):
    """Flip both views vertically; and optionally horizontally.

    A horizontal flip puts the chest wall on the right, where preprocessing never leaves it: off by default.

    Args:
        prob: of a vertical flip.
        horizontal_prob: of a horizontal flip.
    """

    def __init__(self, prob: float = 0.5, horizontal_prob: float = 0.0) -> None:
        super().__init__(prob=1.0)
        self.vertical_prob = prob
        self.horizontal_prob = horizontal_prob

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        vertical, horizontal = self.R.random(2)
        if vertical < self.vertical_prob:
            for view in views:
                rows, columns = item[f"{view}_valid_size"]
                flipped = item[view][:, :rows, :columns].flip(1)
                _put(item, view, flipped, Placement(y_scale=-1.0, y_shift=rows))
        if horizontal < self.horizontal_prob:
            # Both about the same axis, so that depth stays comparable; the narrower view gets a blank margin.
            width = max(item[f"{view}_valid_size"][1] for view in views)
            for view in views:
                flipped = item[view][:, : item[f"{view}_valid_size"][0], :width].flip(2)
                _put(item, view, flipped, Placement(x_scale=-1.0, x_shift=width))


class RandCropPaird(RandPairTransform):
    """Keep a random part of each view: the same columns in both views, independent rows.

    Args:
        prob: of a crop of both views.
        min_part: the minimum share of the rows, and of the columns, that is kept, in (0, 1].
    """

    def __init__(self, prob: float = 0.5, min_part: float = 0.7) -> None:
        super().__init__(prob)
        check_setting(0 < min_part <= 1, self, "min_part", min_part, "more than 0, at most 1")
        self.min_part = min_part

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        widths = [item[f"{view}_valid_size"][1] for view in views]
        part = self.R.uniform(self.min_part, 1)
        # Limited, so that something is left of the narrower view too.
        left = int(self.R.uniform(0, 1 - part) * min(widths))
        right = left + max(1, round(part * max(widths)))
        for view in views:
            rows, columns = item[f"{view}_valid_size"]
            part = self.R.uniform(self.min_part, 1)
            top = int(self.R.uniform(0, 1 - part) * rows)
            bottom = top + max(1, round(part * rows))
            cropped = item[view][:, top : min(bottom, rows), left : min(right, columns)]
            _put(item, view, cropped, Placement(x_shift=-left, y_shift=-top))


class RandChestWallPaird(RandPairTransform):
    """Cut off a part of one view at the chest wall.

    Args:
        prob: of a cut.
        max_part: the largest share of the columns that is cut off, in [0, 1).
    """

    def __init__(self, prob: float = 0.3, max_part: float = 0.15) -> None:
        super().__init__(prob)
        check_setting(0 <= max_part < 1, self, "max_part", max_part, "at least 0, less than 1")
        self.max_part = max_part

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        view = views[self.R.randint(len(views))]
        rows, columns = item[f"{view}_valid_size"]
        left = int(self.R.uniform(0, self.max_part) * columns)
        _put(item, view, item[view][:, :rows, left:columns], Placement(x_shift=-left))


class RandZoomPaird(RandPairTransform):
    """Zoom both views by one factor; if they outgrow the canvas, keep a random part.

    Args:
        prob: of a zoom of both views.
        min_zoom: smallest factor.
        max_zoom: largest factor.
    """

    def __init__(self, prob: float = 0.5, min_zoom: float = 0.8, max_zoom: float = 1.25) -> None:
        super().__init__(prob)
        range_ = (min_zoom, max_zoom)
        check_setting(
            0 < min_zoom <= max_zoom, self, "(min_zoom, max_zoom)", range_, "0 < min_zoom <= max_zoom"
        )
        self.min_zoom, self.max_zoom = min_zoom, max_zoom

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        zoom = self.R.uniform(self.min_zoom, self.max_zoom)
        height, width = item[views[0]].shape[1:]
        widths = [item[f"{view}_valid_size"][1] for view in views]
        # No more off the left than zooming adds, so that something is left of the narrower view too.
        excess = min(max(widths) - width / zoom, min(widths) * (1 - 1 / zoom))
        left = int(self.R.uniform(0, max(0, excess)))
        for view in views:
            rows, columns = item[f"{view}_valid_size"]
            top = int(self.R.uniform(0, max(0, rows - height / zoom)))
            # Resize only what fits the canvas.
            bottom = min(rows, top + math.ceil(height / zoom))
            right = min(columns, left + math.ceil(width / zoom))
            zoomed = resize(item[view][0, top:bottom, left:right], zoom, zoom)[None, :height, :width]
            placement = Placement(zoom, -zoom * left, zoom, -zoom * top)
            _put(item, view, zoomed, placement)


class RandRotatePaird(RandPairTransform):
    """Turn each view about the middle of its chest wall.

    A box is taken for the frame of the ellipse that fits it, and becomes the frame of the turned ellipse: the
    frame of the turned box itself would be too large for a mass, which has no corners. Lesions of which an
    earlier transform has left too little are dropped, as `FinishPaird` does.

    Args:
        prob: of a rotation of each view.
        max_degrees: the largest angle, either way.
    """

    def __init__(self, prob: float = 0.5, max_degrees: float = 15.0) -> None:
        super().__init__(prob=1.0)
        check_setting(0 <= max_degrees <= 90, self, "max_degrees", max_degrees, "0 to 90")
        self.view_prob = prob
        self.max_degrees = max_degrees

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        for view in views:
            if self.R.random() >= self.view_prob:
                continue
            angle = math.radians(self.R.uniform(-self.max_degrees, self.max_degrees))
            middle = item[f"{view}_valid_size"][0] / 2
            turned = _turn_image(item[view], angle, middle)
            # What crop and zoom have cut off is not in the image, and must not be turned back into it.
            boxes, item[f"{view}_lesion_ids"] = visible_lesions(item, view)
            placement = Placement.from_dict(item[f"{view}_placement"])
            item[f"{view}_boxes"] = placement.invert(_turn_boxes(boxes, angle, middle))
            _put(item, view, turned, Placement())


def _turn_image(image: Tensor, angle: float, middle: float) -> Tensor:
    """An image [1, H, W] turned by an angle about (0, middle), as x to the right and y downwards see it."""
    _, rows, columns = image.shape
    y, x = torch.meshgrid(torch.arange(rows) + 0.5 - middle, torch.arange(columns) + 0.5, indexing="ij")
    cos, sin = math.cos(angle), math.sin(angle)
    # Where each new pixel comes from: turned back.
    source_x, source_y = cos * x + sin * y, cos * y - sin * x + middle
    grid = torch.stack([2 * source_x / columns - 1, 2 * source_y / rows - 1], dim=-1)
    return F.grid_sample(image[None], grid[None], align_corners=False)[0]


def _turn_boxes(boxes: Tensor, angle: float, middle: float) -> Tensor:
    """The frames, xyxy [n, 4], of the ellipses in these frames, turned by an angle about (0, middle)."""
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2).unbind(-1)
    width, height = (boxes[:, 2:] - boxes[:, :2]).unbind(-1)
    y = y - middle
    centre = torch.stack([cos * x - sin * y, sin * x + cos * y + middle], dim=-1)
    half = torch.stack([(cos * width).hypot(sin * height), (sin * width).hypot(cos * height)], dim=-1) / 2
    return torch.cat([centre - half, centre + half], dim=-1)


class RandNormalisePaird(RandPairTransform):
    """Normalise each view again, with random limits and a random gamma.

    ``x -> clip((x - low) / (high - low), 0, 1) ** gamma``. Background and padding stay 0.

    Args:
        prob: of a change of each view.
        max_low: low is drawn from [0, max_low].
        high: the range of high.
        gamma: the range of gamma, drawn uniformly on a logarithmic scale.
    """

    def __init__(
        self,
        prob: float = 0.5,
        max_low: float = 0.1,
        high: tuple[float, float] = (0.8, 1.2),
        gamma: tuple[float, float] = (0.7, 1.4),
    ) -> None:
        super().__init__(prob=1.0)
        check_setting(
            0 <= max_low < min(high), self, "(max_low, high)", (max_low, high), "0 <= max_low < high"
        )
        check_setting(0 < gamma[0] <= gamma[1], self, "gamma", gamma, "a range of positive numbers")
        self.view_prob = prob
        self.max_low, self.high, self.gamma = max_low, high, gamma

    def change(self, item: Item, views: list[str]) -> None:
        """Draw and apply."""
        for view in views:
            if self.R.random() >= self.view_prob:
                continue
            low, high = self.R.uniform(0, self.max_low), self.R.uniform(*self.high)
            gamma = math.exp(self.R.uniform(math.log(self.gamma[0]), math.log(self.gamma[1])))
            rows, columns = item[f"{view}_valid_size"]
            valid = item[view][:, :rows, :columns]
            _put(item, view, valid.sub(low).div_(high - low).clamp_(0, 1).pow_(gamma), Placement())


def _put(item: Item, view: str, content: Tensor, moved: Placement) -> None:
    """Put new content [1, h, w] at the top left of a new canvas, and update the placement by `moved`."""
    _, rows, columns = content.shape
    canvas = torch.zeros_like(item[view])
    canvas[:, :rows, :columns] = content
    item[view] = canvas
    item[f"{view}_valid_size"] = [rows, columns]
    item[f"{view}_placement"] = Placement.from_dict(item[f"{view}_placement"]).then(moved).to_dict()
