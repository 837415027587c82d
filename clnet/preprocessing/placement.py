"""The map from original pixels to model pixels and back, owned by this module alone.

Every crop, flip, resize, pad and zoom of a view is a `Placement`, and so is a chain of them (`then`). Boxes
are therefore mapped once, from the pixels of the stored image directly to their final position, and back by
the same four numbers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clnet.errors import ClnetError

Boxes = TypeVar("Boxes", NDArray[Any], Tensor)


class PlacementError(ClnetError, ValueError):
    """An invalid placement: a scale of zero, an infinite shift, a missing key."""


@dataclass(frozen=True)
class Placement:
    """The map ``x -> x_scale * x + x_shift``, and likewise for y, from one pixel grid to another.

    Pixels are half-open, so coordinates are those of pixel *edges*: the left edge of an image is 0, the right
    edge its width, and resizing by a factor s moves an edge at x to s * x. A flip has a negative scale.
    """

    x_scale: float = 1.0
    x_shift: float = 0.0
    y_scale: float = 1.0
    y_shift: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not math.isfinite(value) or (name.endswith("scale") and value == 0):
                raise PlacementError(
                    f"Placement: {name} is {value}; expected a finite number, and a scale other than 0."
                )

    def apply(self, boxes: Boxes) -> Boxes:
        """Map xyxy boxes [..., 4] to the new grid, keeping type, dtype and the order of the edges.

        The arithmetic is in float64: a float32 box of a 5000-pixel image comes back within 1e-3 pixel.
        """
        scale = [self.x_scale, self.y_scale, self.x_scale, self.y_scale]
        shift = [self.x_shift, self.y_shift, self.x_shift, self.y_shift]
        # A flip swaps the lower and the upper edge.
        order = [2 if self.x_scale < 0 else 0, 3 if self.y_scale < 0 else 1]
        order += [2 - order[0], 4 - order[1]]
        if isinstance(boxes, Tensor):
            exact = boxes.to(torch.float64)
            return (exact * exact.new_tensor(scale) + exact.new_tensor(shift))[..., order].to(boxes.dtype)
        mapped = boxes.astype(np.float64) * np.array(scale) + np.array(shift)
        return mapped[..., order].astype(boxes.dtype)

    def invert(self, boxes: Boxes) -> Boxes:
        """Map xyxy boxes [..., 4] of the new grid back to the old one."""
        return self.inverse().apply(boxes)

    def inverse(self) -> "Placement":
        """The inverse map."""
        return Placement(
            x_scale=1 / self.x_scale,
            x_shift=-self.x_shift / self.x_scale,
            y_scale=1 / self.y_scale,
            y_shift=-self.y_shift / self.y_scale,
        )

    def then(self, after: "Placement") -> "Placement":
        """This placement followed by another."""
        return Placement(
            x_scale=after.x_scale * self.x_scale,
            x_shift=after.x_scale * self.x_shift + after.x_shift,
            y_scale=after.y_scale * self.y_scale,
            y_shift=after.y_scale * self.y_shift + after.y_shift,
        )

    def to_dict(self) -> dict[str, float]:
        """The four numbers by name, for JSON and for caches that store plain values only."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, numbers: Mapping[str, float]) -> "Placement":
        """The placement that `to_dict` wrote."""
        names = [field.name for field in fields(cls)]
        if sorted(numbers) != sorted(names):
            raise PlacementError(f"Placement: got the keys {sorted(numbers)}; expected {names}.")
        return cls(**{name: float(numbers[name]) for name in names})
