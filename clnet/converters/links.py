"""Which mass of CC is which mass of MLO, as far as can be known.

- `annotated`: the data set says it, reliably.
- `single_pair`: one mass stands in each view.
- `geometric`, if asked for: the masses lie at the same depth, are of about the same size and are described
  alike. One number decides: the confidence of a link is its share of the weights ``exp(-cost)`` of everything
  that its two masses could do instead, having no partner included. Below `LEAST_CONFIDENCE` a mass stays
  unlinked, be it that no partner fits or that two fit as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from clnet.converters.marked import MarkedView, Mass
from clnet.data.pair import LinkSource

# A standard deviation of the difference between the two views of one mass. The median difference of depths
# is 4.6 mm (straight strip, 711 masses, BMC Med Imaging 2025), and the median of |N(0, s)| is 0.67 s. A
# breast is about 90 mm deep.
DEPTH_MM = 6.8
DEPTH_SHARE = 0.075
SIZE = 0.35  # of the logarithm of the ratio of sizes: a mass may look 1.4 times as large in the other view
NO_PARTNER = 4.0  # the cost of a mass to stay alone: that of a depth 2.8 deviations off
DISAGREEMENT = 0.7  # for each descriptor that differs: descriptions of one mass differ in 27% of breasts
DESCRIPTORS = ("shape", "margins", "pathology")
LEAST_CONFIDENCE = 0.6


@dataclass(frozen=True)
class BreastExtent:
    """Where chest wall and nipple lie along the rows of an image.

    Attributes:
        chest: x of the chest wall in pixels.
        nipple: x of the breast's edge opposite to it.
        mm: (height, width) of a pixel in mm, or None if unknown (film).
    """

    chest: float
    nipple: float
    mm: tuple[float, float] | None = None

    @property
    def depth(self) -> float:
        """From the chest wall to the nipple, in pixels."""
        return abs(self.nipple - self.chest)


Extents = tuple[BreastExtent, BreastExtent]


@dataclass(frozen=True)
class Link:
    """Mass number `cc` of the CC view is mass number `mlo` of the MLO view."""

    cc: int
    mlo: int
    source: LinkSource
    confidence: float = 1.0


def certain_links(cc: Sequence[Mass], mlo: Sequence[Mass], annotated: bool) -> list[Link]:
    """The links that need no geometry; `annotated`: the same lesion id is the same lesion."""
    if annotated:
        number = {mass.lesion_id: i for i, mass in enumerate(mlo) if mass.lesion_id is not None}
        return [
            Link(i, number[mass.lesion_id], "annotated")
            for i, mass in enumerate(cc)
            if mass.lesion_id in number
        ]
    return [Link(0, 0, "single_pair")] if len(cc) == len(mlo) == 1 else []


def geometric_links(
    cc: MarkedView,
    mlo: MarkedView,
    extents: Extents,
    least_confidence: float = LEAST_CONFIDENCE,
    depth_mm: float = DEPTH_MM,
) -> list[Link]:
    """The best one-to-one links of the masses of two views, without those of less confidence.

    Args:
        cc: masses of the CC view.
        mlo: masses of the MLO view.
        extents: of the breast in CC and in MLO.
        least_confidence: below it a mass stays unlinked.
        depth_mm: the standard deviation between the depths of one mass, where pixels have a size in mm.
    """
    if not cc.masses or not mlo.masses:
        return []
    confidences = link_confidences(cc, mlo, extents, depth_mm)
    chosen = zip(*linear_sum_assignment(confidences, maximize=True), strict=True)
    return [
        Link(int(i), int(j), "geometric", round(float(confidences[i, j]), 3))
        for i, j in chosen
        if confidences[i, j] >= least_confidence
    ]


def link_confidences(
    cc: MarkedView, mlo: MarkedView, extents: Extents, depth_mm: float = DEPTH_MM
) -> NDArray[np.float64]:
    """The confidence [masses of CC, masses of MLO] that two masses are one."""
    costs = np.array(
        [
            [
                _geometric_cost((one, other), extents, depth_mm)
                + DISAGREEMENT * _disagreements(one.descriptors, other.descriptors)
                for other in mlo.masses
            ]
            for one in cc.masses
        ]
    )
    weights = np.exp(-costs)
    alone = math.exp(-NO_PARTNER)
    others = weights.sum(0, keepdims=True) + weights.sum(1, keepdims=True) - 2 * weights
    return weights / (weights + others + alone)


def _geometric_cost(masses: tuple[Mass, Mass], extents: Extents, depth_mm: float) -> float:
    """Half the squared deviations of depth and size: in mm if both images know them, or in breast depths."""
    in_mm = all(extent.mm for extent in extents)
    depth, size = [], []
    for mass, extent in zip(masses, extents, strict=True):
        height, width = extent.mm if in_mm and extent.mm else (1 / extent.depth, 1 / extent.depth)
        x_min, y_min, x_max, y_max = mass.box
        depth.append(abs((x_min + x_max) / 2 - extent.chest) * width)
        size.append(math.sqrt((x_max - x_min) * width * (y_max - y_min) * height))
    depth_deviations = (depth[0] - depth[1]) / (depth_mm if in_mm else DEPTH_SHARE)
    size_deviations = math.log(size[0] / size[1]) / SIZE
    return (depth_deviations**2 + size_deviations**2) / 2


def _disagreements(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    """How many of the descriptors that both masses have differ."""
    return sum(name in one and name in other and one[name] != other[name] for name in DESCRIPTORS)
