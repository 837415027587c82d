"""Link the masses of CC to those of MLO, as far as can be known.

- `annotated`: the data set links them, reliably.
- `single_pair`: there is one mass in each view.
- `geometric`, if asked for: the masses are at the same depth, of about the same size, and described alike.
  The confidence of a link is its share of the weights ``exp(-cost)`` of all alternatives for its two masses,
  including no partner. Below `MIN_CONFIDENCE` a mass stays unlinked: no partner fits, or several do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from clnet.converters.annotated import Mass
from clnet.converters.breast_extent import BreastExtent
from clnet.converters.workspace import Workspace
from clnet.data.pair import LinkSource

# Standard deviations of the difference between the two views of a mass. The median difference in depth is
# 4.6 mm (straight strip, 711 masses, BMC Med Imaging 2025), and the median of |N(0, s)| is 0.67 s. A breast
# is about 90 mm deep.
DEPTH_MM = 6.8
DEPTH_SHARE = 0.075
SIZE = 0.35  # of the logarithm of the size ratio: a mass may look 1.4 times as large in the other view
NO_PARTNER = 4.0  # the cost of leaving a mass unlinked: that of a depth 2.8 deviations off
DISAGREEMENT = 0.7  # per descriptor that differs: descriptions of one mass differ in 27% of breasts
DESCRIPTORS = ("shape", "margins", "pathology")
MIN_CONFIDENCE = 0.6

Extents = tuple[BreastExtent, BreastExtent]


@dataclass(frozen=True)
class MassLink:
    """Mass number `cc` of the CC view is mass number `mlo` of the MLO view, counted from 0."""

    cc: int
    mlo: int
    source: LinkSource
    confidence: float = 1.0


def ids_are_links(masses: Sequence[Mass], name: str, workspace: Workspace) -> bool:
    """Whether every mass of an image has a lesion id of its own; warn of an id that two masses have."""
    ids = [mass.lesion_id for mass in masses]
    repeated = len(set(ids)) < len(ids) and None not in ids
    if repeated:
        workspace.warn(f"{name}: two boxes have the same lesion id; its ids are not used as links")
    return None not in ids and not repeated


def certain_links(cc: Sequence[Mass], mlo: Sequence[Mass], annotated: bool) -> list[MassLink]:
    """The links that need no geometry; `annotated` means that equal lesion ids are the same lesion."""
    if annotated:
        number = {mass.lesion_id: i for i, mass in enumerate(mlo) if mass.lesion_id is not None}
        return [
            MassLink(i, number[mass.lesion_id], "annotated")
            for i, mass in enumerate(cc)
            if mass.lesion_id in number
        ]
    return [MassLink(0, 0, "single_pair")] if len(cc) == len(mlo) == 1 else []


def geometric_links(
    cc: Sequence[Mass],
    mlo: Sequence[Mass],
    extents: Extents,
    min_confidence: float = MIN_CONFIDENCE,
    depth_mm: float = DEPTH_MM,
) -> list[MassLink]:
    """The best one-to-one links between the masses of two views with at least `min_confidence`.

    Args:
        cc: masses of the CC view.
        mlo: masses of the MLO view.
        extents: of the breast in CC and in MLO.
        min_confidence: below it a mass stays unlinked.
        depth_mm: standard deviation of the difference in depth, for images with a known pixel spacing.
    """
    if not cc or not mlo:
        return []
    confidences = link_confidences(cc, mlo, extents, depth_mm)
    chosen = zip(*linear_sum_assignment(confidences, maximize=True), strict=True)
    return [
        MassLink(int(i), int(j), "geometric", round(float(confidences[i, j]), 3))
        for i, j in chosen
        if confidences[i, j] >= min_confidence
    ]


def link_confidences(
    cc: Sequence[Mass], mlo: Sequence[Mass], extents: Extents, depth_mm: float = DEPTH_MM
) -> NDArray[np.float64]:
    """The confidence [masses of CC, masses of MLO] that two masses are the same."""
    costs = np.array(
        [
            [
                _geometric_cost((one, other), extents, depth_mm)
                + DISAGREEMENT * _disagreements(one.descriptors, other.descriptors)
                for other in mlo
            ]
            for one in cc
        ]
    )
    weights = np.exp(-costs)
    alone = math.exp(-NO_PARTNER)
    others = weights.sum(0, keepdims=True) + weights.sum(1, keepdims=True) - 2 * weights
    return weights / (weights + others + alone)


def _geometric_cost(masses: tuple[Mass, Mass], extents: Extents, depth_mm: float) -> float:
    """Half the sum of the squared deviations of depth and size, in mm if both spacings are known."""
    in_mm = all(extent.spacing_mm for extent in extents)
    depth, size = [], []
    for mass, extent in zip(masses, extents, strict=True):
        height, width = (
            extent.spacing_mm if in_mm and extent.spacing_mm else (1 / extent.depth, 1 / extent.depth)
        )
        x_min, y_min, x_max, y_max = mass.box
        depth.append(abs((x_min + x_max) / 2 - extent.chest) * width)
        size.append(math.sqrt((x_max - x_min) * width * (y_max - y_min) * height))
    depth_deviations = (depth[0] - depth[1]) / (depth_mm if in_mm else DEPTH_SHARE)
    size_deviations = math.log(size[0] / size[1]) / SIZE
    return (depth_deviations**2 + size_deviations**2) / 2


def _disagreements(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    """The number of descriptors that both masses have and that differ."""
    return sum(name in one and name in other and one[name] != other[name] for name in DESCRIPTORS)
