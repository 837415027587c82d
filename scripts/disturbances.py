"""What may go wrong with pairs, made on purpose and by degrees.

Each function takes the pairs of a section, how much to disturb them and a folder for changed images. It gives
pairs that stand for the same breasts: what a system would be handed, with boxes where its masses are.
All draws follow from the seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pydicom
import torch
from numpy.typing import NDArray

from clnet.boxes import clip_to_image
from clnet.converters.breast_extent import measure_extent
from clnet.data.pair import Pair, View

Pairs = Sequence[Pair]
Pixels = NDArray[np.uint16]
SEED = 0
MIN_VISIBLE = 0.5  # of a box, for the mass to count in an image that was cut


def wrong_partner(pairs: Pairs, share: float, folder: Path) -> list[Pair]:
    """Give a share of the breasts the MLO view of another patient's, of the same side.

    Every image is still there once; what is in it has no counterpart in its new partner.
    """
    changed = list(pairs)
    for side in ("L", "R"):
        chosen = [
            i for i in _chosen(pairs, share) if pairs[i].laterality == side and len(pairs[i].views) == 2
        ]
        for here, there in zip(chosen, chosen[1:] + chosen[:1], strict=True):
            if pairs[here].patient_id == pairs[there].patient_id:
                continue  # one breast alone was chosen
            mlo = pairs[there].views["mlo"]
            stranger = replace(mlo, lesion_ids=tuple(f"other {lesion}" for lesion in mlo.lesion_ids))
            changed[here] = replace(pairs[here], mlo=stranger, links={})
    return changed


def missing_view(pairs: Pairs, share: float, folder: Path) -> list[Pair]:
    """Take one view from a share of the breasts, CC from every other of them and MLO from the rest."""
    changed = list(pairs)
    for number, index in enumerate(_chosen(pairs, share)):
        if len(pairs[index].views) == 2:
            changed[index] = replace(pairs[index], **{("cc", "mlo")[number % 2]: None}, links={})
    return changed


def noise(pairs: Pairs, deviation: float, folder: Path) -> list[Pair]:
    """Add white noise to every pixel; its standard deviation is a share of the range of grey values."""
    rng = np.random.default_rng(SEED)

    def add(pixels: Pixels, top: int) -> Pixels:
        noisy = pixels + rng.normal(0, deviation * top, pixels.shape)
        return noisy.round().clip(0, top).astype(pixels.dtype)

    return _with_pixels(pairs, add, folder)


def contrast(pairs: Pairs, gamma: float, folder: Path) -> list[Pair]:
    """Show the images by another curve, ``x ** gamma``: below 1 flattens dense tissue, above 1 fat."""

    def bend(pixels: Pixels, top: int) -> Pixels:
        return ((pixels / top) ** gamma * top).round().astype(pixels.dtype)

    return _with_pixels(pairs, bend, folder)


def shifted_crop(pairs: Pairs, part: float, folder: Path) -> list[Pair]:
    """Cut a part of the MLO image's columns off at the chest wall, so that depths no longer agree."""
    return [
        replace(pair, mlo=_cut(pair.views["mlo"], part, folder), links={}) if "mlo" in pair.views else pair
        for pair in pairs
    ]


@dataclass(frozen=True)
class Disturbance:
    """A way to disturb pairs, and how much.

    Attributes:
        title: of its panel.
        axis: what its levels are.
        levels: to look at, in this order; the first changes nothing.
        change: does it.
    """

    title: str
    axis: str
    levels: tuple[float, ...]
    change: Callable[[Pairs, float, Path], list[Pair]]


DISTURBANCES = {
    "wrong_partner": Disturbance(
        "wrong partner", "share of breasts with a stranger's MLO", (0, 1, 0.5, 0.25, 0.75), wrong_partner
    ),
    "missing_view": Disturbance(
        "a view is missing", "share of breasts with one view", (0, 1, 0.5, 0.25, 0.75), missing_view
    ),
    "noise": Disturbance(
        "noise", "standard deviation, share of the range", (0, 0.02, 0.08, 0.04, 0.01), noise
    ),
    "contrast": Disturbance("contrast", "gamma", (1, 0.5, 2, 0.7, 1.4), contrast),
    "shifted_crop": Disturbance(
        "a shifted crop", "part of MLO cut off at the chest wall", (0, 0.1, 0.2, 0.05, 0.3), shifted_crop
    ),
}


def _chosen(pairs: Pairs, share: float) -> list[int]:
    """Which pairs are disturbed: of more of them, those of fewer and others."""
    order = np.random.default_rng(SEED).permutation(len(pairs))
    return sorted(order[: round(share * len(pairs))].tolist())


def _with_pixels(pairs: Pairs, change: Callable[[Pixels, int], Pixels], folder: Path) -> list[Pair]:
    """All views with other grey values, which go from 0 to the highest that the file can hold."""

    def of_view(view: View) -> View:
        dataset = pydicom.dcmread(view.image)
        return replace(
            view, image=_write(dataset, change(dataset.pixel_array, 2**dataset.BitsStored - 1), folder)
        )

    return [
        replace(pair, **{name: of_view(view) for name, view in pair.views.items()}, links=pair.links)
        for pair in pairs
    ]


def _cut(view: View, part: float, folder: Path) -> View:
    """A view without a part of its columns at the chest wall; masses of which too little is left are none."""
    dataset = pydicom.dcmread(view.image)
    pixels = dataset.pixel_array
    off = round(part * pixels.shape[1])
    extent = measure_extent(view.image)
    left = off if extent.chest < extent.nipple else 0
    pixels = pixels[:, left : left + pixels.shape[1] - off]
    moved = view.boxes - np.array([left, 0, left, 0], np.float32)
    visible = clip_to_image(torch.from_numpy(moved), *pixels.shape).numpy()
    kept = _area(visible) >= MIN_VISIBLE * _area(moved)
    return View(
        _write(dataset, pixels, folder),
        visible[kept],
        tuple(lesion for lesion, is_kept in zip(view.lesion_ids, kept, strict=True) if is_kept),
        (pixels.shape[0], pixels.shape[1]),
    )


def _area(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    return (boxes[:, 2:] - boxes[:, :2]).clip(min=0).prod(1)


def _write(dataset: pydicom.Dataset, pixels: Pixels, folder: Path) -> Path:
    """A copy of an image with other pixels, under the name of the image."""
    dataset.Rows, dataset.Columns = pixels.shape
    dataset.PixelData = np.ascontiguousarray(pixels).tobytes()
    path = folder / Path(str(dataset.filename)).name
    dataset.save_as(path)
    return path
