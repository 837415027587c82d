"""Fits how depth in CC follows from the place in MLO: `axes` of a config, see clnet/networks/geometry.py.

    python scripts/fit_axes.py DATASET --size 512 256

Least squares over the breasts of the training section with one mass in each view, whose link is certain.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from monai.transforms import Compose
from numpy.typing import NDArray
from torch import Tensor

from clnet.boxes import cxcywh_to_xyxy
from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair
from clnet.networks.geometry import find_content
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird


class Fit(NamedTuple):
    """The axes of CC and of MLO, and what is left of the differences in depth."""

    axes: tuple[tuple[float, ...], tuple[float, ...]]
    spread: float
    """Standard deviation of the difference in depth, in widths of the canvas."""
    straight_spread: float
    """The same if depth is straight in both views."""
    breasts: int


def fit_axes(pairs: list[Pair], size: tuple[int, int]) -> Fit:
    """Fit the axes to the certain links of these pairs, on a canvas of `size` (rows, columns)."""
    certain = [pair for pair in pairs if len(pair.links) == 1 and _is_single(pair)]
    transform = Compose([LoadPaird(), PreprocessPaird(size), FinishPaird()])
    cc, mlo = zip(*(_parts(transform(pair.to_item())) for pair in certain), strict=True)
    x_cc, width_cc = (np.array(column) for column in zip(*((part[0], part[2]) for part in cc), strict=True))
    known = np.column_stack([np.array(mlo), width_cc])  # x, row, width, 1 of MLO; width of CC
    solution = np.linalg.lstsq(known, x_cc, rcond=None)[0]
    left = x_cc - known @ solution
    straight = x_cc - np.array(mlo)[:, 0]
    return Fit(
        ((1.0, 0.0, -float(solution[4]), 0.0), tuple(solution[:4].tolist())),
        float(left.std()),
        float(straight.std()),
        len(certain),
    )


def _is_single(pair: Pair) -> bool:
    return len(pair.views) == 2 and all(len(view.lesion_ids) == 1 for view in pair.views.values())


def _parts(sample: dict[str, list[Tensor]]) -> list[NDArray[np.float64]]:
    """For each view the four numbers that a is multiplied with, in widths of the canvas."""
    image = sample["image"]
    content = find_content(torch.as_tensor(image)[:, None])
    parts = []
    for boxes, (left, top, right, bottom) in zip(sample["boxes"], content.extents.tolist(), strict=True):
        x_min, y_min, x_max, y_max = cxcywh_to_xyxy(boxes)[0].tolist()
        row = abs((y_min + y_max) / 2 - (top + bottom) / 2) * content.aspect
        parts.append(np.array([(x_min + x_max) / 2 - left, row, right - left, 1.0]))
    return parts


def main() -> None:
    """Print the axes as a config has them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET", help="a datalist, or a folder with one")
    parser.add_argument("--size", type=int, nargs=2, required=True, metavar=("ROWS", "COLUMNS"))
    options = parser.parse_args()
    fit = fit_axes(list(read_datalist(options.dataset)["training"]), tuple(options.size))
    print("axes:")
    for axis in fit.axes:
        print(f"- [{', '.join(f'{number:.2f}' for number in axis)}]")
    print(
        f"# {fit.breasts} breasts; depths differ by {fit.spread:.3f} widths (standard deviation), "
        f"{fit.straight_spread:.3f} if depth is straight in both views"
    )


if __name__ == "__main__":
    main()
