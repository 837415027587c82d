"""Fits the frame that CC and MLO share: `frame` of a config, see clnet/networks/geometry.py.

    python scripts/fit_frame.py DATASET --size 512 256

Least squares over the breasts of a section with one mass in each view, whose link is certain.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from monai.transforms.compose import Compose
from numpy.typing import NDArray

from clnet.data.datalist import read_datalist
from clnet.data.pair import Pair
from clnet.networks.geometry import find_content, measures
from clnet.preprocessing.transforms import FinishPaird, LoadPaird, PreprocessPaird

Rows = tuple[tuple[float, ...], tuple[float, ...]]


class Fit(NamedTuple):
    """The frame, and what is left of the differences between the two boxes of a mass."""

    cc: Rows
    """How depth and row follow from x, y, the width of the breast and 1."""
    mlo: Rows
    spreads: tuple[float, float, float]
    """Standard deviations of the differences in depth, row and log area."""
    from_wall: float
    """That of depth if depth is straight from the chest wall in both views."""
    from_nipple: float
    """The same from the other edge of the breast."""
    breasts: int


def fit_frame(pairs: list[Pair], size: tuple[int, int]) -> Fit:
    """Fit the frame to the certain links of these pairs, on a canvas of `size` (rows, columns)."""
    certain = [pair for pair in pairs if len(pair.links) == 1 and _is_single(pair)]
    transform = Compose([LoadPaird(), PreprocessPaird(size), FinishPaird()])
    known = np.array([_measures(transform(pair.to_item())) for pair in certain])  # [breasts, 2, 5]
    (x, y, width), mlo = known[:, 0, :3].T, known[:, 1, :4]
    # Depth in CC is x, less a share of the width: how deep a breast is compressed differs between views.
    depth, depth_left = _least_squares(np.column_stack([mlo, width]), x)
    row, row_left = _least_squares(mlo, y)
    return Fit(
        ((1.0, 0.0, -depth[4], 0.0), (0.0, 1.0, 0.0, 0.0)),
        (tuple(depth[:4]), tuple(row)),
        (depth_left, row_left, float(np.std(known[:, 0, 4] - known[:, 1, 4]))),
        float(np.std(x - mlo[:, 0])),
        float(np.std((x - width) - (mlo[:, 0] - mlo[:, 2]))),
        len(certain),
    )


def _is_single(pair: Pair) -> bool:
    return len(pair.views) == 2 and all(len(view.lesion_ids) == 1 for view in pair.views.values())


def _measures(sample: dict[str, torch.Tensor]) -> NDArray[np.float64]:
    """Of the one box of each view [2, 5]: the measures that the frame is made of, and the log area."""
    boxes = torch.stack([view[0] for view in sample["boxes"]])[:, None]  # [2, 1, 4]
    content = find_content(torch.as_tensor(sample["image"])[:, None])
    area = boxes[..., 2:].log().sum(-1, keepdim=True)
    return torch.cat([measures(boxes, content), area], dim=-1)[:, 0].double().numpy()


def _least_squares(known: NDArray[np.float64], wanted: NDArray[np.float64]) -> tuple[list[float], float]:
    """The factors of the columns of `known`, and the standard deviation of what they leave."""
    factors = np.linalg.lstsq(known, wanted, rcond=None)[0]
    return factors.tolist(), float(np.std(wanted - known @ factors))


def main() -> None:
    """Print the frame as a config has it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET", help="a datalist, or a folder with one")
    parser.add_argument("--size", type=int, nargs=2, required=True, metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--section", default="training", help="of the datalist (default: %(default)s)")
    options = parser.parse_args()
    fit = fit_frame(list(read_datalist(options.dataset)[options.section]), tuple(options.size))
    print("frame:\n  _target_: clnet.networks.CommonFrame")
    for name, rows in (("cc", fit.cc), ("mlo", fit.mlo)):
        print(f"  {name}: [{', '.join(_numbers(row, 2) for row in rows)}]")
    print(f"  spreads: {_numbers(fit.spreads, 3)}")
    print(
        f"# {fit.breasts} breasts; straight depths would differ by {fit.from_wall:.3f} widths from the chest "
        f"wall, and by {fit.from_nipple:.3f} from the nipple (standard deviations)"
    )


def _numbers(values: tuple[float, ...], digits: int) -> str:
    return f"[{', '.join(f'{value:.{digits}f}' for value in values)}]"


if __name__ == "__main__":
    main()
