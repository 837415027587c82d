"""Disturbances of pairs, in degrees.

Each function takes the pairs of a section, how much to disturb them and a folder for changed images. It gives
pairs that stand for the same breasts: what a system would be handed, with boxes where its masses are.
All draws follow from the seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import torch
from numpy.typing import NDArray
from PIL import Image

from clnet.boxes import clip_to_image
from clnet.converters.breast_extent import measure_extent
from clnet.data.pair import Pair, View

Pairs = Sequence[Pair]
Pixels = NDArray[np.unsignedinteger[Any]]
SEED = 0
MIN_VISIBLE = 0.5  # of a box, for the mass to count in an image that was cut


def wrong_partner(pairs: Pairs, share: float, folder: Path) -> list[Pair]:
    """A share of the breasts gets the MLO view of another patient, of the same side.

    Every image still appears once; its lesions have no counterpart in the new partner.
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
    """A share of the breasts loses one view: alternately CC and MLO."""
    changed = list(pairs)
    for number, index in enumerate(_chosen(pairs, share)):
        if len(pairs[index].views) == 2:
            left_out: dict[str, Any] = {("cc", "mlo")[number % 2]: None}
            changed[index] = replace(pairs[index], links={}, **left_out)
    return changed


def noise(pairs: Pairs, deviation: float, folder: Path) -> list[Pair]:
    """White noise is added to every pixel; its standard deviation is a share of the range of grey values."""
    rng = np.random.default_rng(SEED)

    def add(pixels: Pixels, top: int) -> Pixels:
        noisy = pixels + rng.normal(0, deviation * top, pixels.shape)
        return noisy.round().clip(0, top).astype(pixels.dtype)

    return _with_pixels(pairs, add, folder)


def contrast(pairs: Pairs, gamma: float, folder: Path) -> list[Pair]:
    """The images get another tone curve, ``x ** gamma``: below 1 flattens dense tissue, above 1 fat."""

    def bend(pixels: Pixels, top: int) -> Pixels:
        return ((pixels / top) ** gamma * top).round().astype(pixels.dtype)

    return _with_pixels(pairs, bend, folder)


def shifted_crop(pairs: Pairs, part: float, folder: Path) -> list[Pair]:
    """A part of the MLO image's columns is cut off at the chest wall, so that depths no longer agree."""
    return [
        replace(pair, mlo=_cut(pair.views["mlo"], part, folder), links={}) if "mlo" in pair.views else pair
        for pair in pairs
    ]


def borders(pairs: Pairs, part: float, folder: Path) -> list[Pair]:
    """Each image gets a white frame around it, as scans of film have, as wide as a part of its height."""

    def framed(view: View) -> View:
        pixels, top = _read(view.image)
        width = round(part * len(pixels))
        wider = np.pad(pixels, width, constant_values=top)
        return _moved(view, wider, view.boxes + width, folder)

    return _with_views(pairs, framed)


def mirrored(pairs: Pairs, share: float, folder: Path) -> list[Pair]:
    """Both views of a share of the breasts are mirrored: their chest wall is on the other side."""

    def mirror(view: View) -> View:
        pixels, _ = _read(view.image)
        columns = pixels.shape[1]
        x = columns - view.boxes[:, [2, 0]]
        return _moved(
            view,
            pixels[:, ::-1],
            np.column_stack([x[:, 0], view.boxes[:, 1], x[:, 1], view.boxes[:, 3]]),
            folder,
        )

    changed = list(pairs)
    for index in _chosen(pairs, share):
        (changed[index],) = _with_views([pairs[index]], mirror)
    return changed


def resolution(pairs: Pairs, factor: float, folder: Path) -> list[Pair]:
    """The images are reduced to a part of their rows and columns."""

    def reduced(view: View) -> View:
        pixels, _ = _read(view.image)
        rows, columns = (round(factor * size) for size in pixels.shape)
        scale = np.array([columns / pixels.shape[1], rows / pixels.shape[0]] * 2, np.float32)
        small = np.asarray(Image.fromarray(pixels).resize((columns, rows), Image.Resampling.BOX))
        changed = _moved(view, small, view.boxes * scale, folder)
        if view.pixel_size is None:
            return changed
        return replace(changed, pixel_size=(view.pixel_size[0] / scale[1], view.pixel_size[1] / scale[0]))

    return _with_views(pairs, reduced)


def compression(pairs: Pairs, quality: float, folder: Path) -> list[Pair]:
    """The images are compressed as JPEG once more; 100 leaves them as they are."""

    def compressed(view: View) -> View:
        path = folder / f"{view.image.stem}.jpg"
        Image.fromarray(_read(view.image)[0]).save(path, quality=round(quality))
        return replace(view, image=path)

    return list(pairs) if quality >= 100 else _with_views(pairs, compressed)


@dataclass(frozen=True)
class Disturbance:
    """A way to disturb pairs, and how much.

    Attributes:
        title: what it is.
        axis: what its levels are.
        levels: to look at, in this order; the first changes nothing.
        change: does it.
    """

    title: str
    axis: str
    levels: tuple[float, ...]
    change: Callable[[Pairs, float, Path], list[Pair]]


_SHARE = "share of breasts"

DISTURBANCES = {
    "wrong_partner": Disturbance("another patient's MLO", _SHARE, (0, 1, 0.5), wrong_partner),
    "missing_view": Disturbance("a view is missing", _SHARE, (0, 1, 0.5), missing_view),
    "shifted_crop": Disturbance(
        "chest wall of MLO cut off", "part of the width", (0, 0.1, 0.05, 0.2), shifted_crop
    ),
    "noise": Disturbance("noise", "deviation, share of the range", (0, 0.02, 0.08, 0.04), noise),
    "contrast": Disturbance("contrast", "gamma", (1, 0.5, 2, 0.7, 1.4), contrast),
}
"""Of any pairs."""

FILM_DISTURBANCES = {
    **DISTURBANCES,
    "borders": Disturbance("white border", "width, part of the height", (0, 0.05, 0.02), borders),
    "mirrored": Disturbance("mirrored", _SHARE, (0, 1), mirrored),
    "resolution": Disturbance("resolution", "part of rows and columns", (1, 0.5, 0.25), resolution),
    "compression": Disturbance("JPEG", "quality", (100, 10, 50, 25), compression),
}
"""Of scans of 8 bits, too."""


def _chosen(pairs: Pairs, share: float) -> list[int]:
    """Which pairs are disturbed: of more of them, those of fewer and others."""
    order = np.random.default_rng(SEED).permutation(len(pairs))
    return sorted(order[: round(share * len(pairs))].tolist())


def _with_views(pairs: Pairs, change: Callable[[View], View]) -> list[Pair]:
    made = []
    for pair in pairs:
        views: dict[str, Any] = {name: change(view) for name, view in pair.views.items()}
        made.append(replace(pair, **views))
    return made


def _with_pixels(pairs: Pairs, change: Callable[[Pixels, int], Pixels], folder: Path) -> list[Pair]:
    """All views with other grey values, which go from 0 to the highest that the file can hold."""
    return _with_views(
        pairs, lambda view: replace(view, image=_write(view.image, change(*_read(view.image)), folder))
    )


def _cut(view: View, part: float, folder: Path) -> View:
    """A view without a part of its columns at the chest wall; masses of which too little is left are none."""
    pixels, _ = _read(view.image)
    off = round(part * pixels.shape[1])
    extent = measure_extent(view.image)
    left = off if extent.chest < extent.nipple else 0
    pixels = pixels[:, left : left + pixels.shape[1] - off]
    moved = view.boxes - np.array([left, 0, left, 0], np.float32)
    visible = clip_to_image(torch.from_numpy(moved), *pixels.shape).numpy()
    kept = _area(visible) >= MIN_VISIBLE * _area(moved)
    lesions = tuple(lesion for lesion, is_kept in zip(view.lesion_ids, kept, strict=True) if is_kept)
    return _moved(replace(view, boxes=view.boxes[kept], lesion_ids=lesions), pixels, visible[kept], folder)


def _area(boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    return (boxes[:, 2:] - boxes[:, :2]).clip(min=0).prod(1)


def _moved(view: View, pixels: Pixels, boxes: NDArray[np.float32], folder: Path) -> View:
    """The view with other pixels, of another shape, and boxes where its masses are now."""
    return replace(view, image=_write(view.image, pixels, folder), boxes=boxes, size=pixels.shape)


def _read(image: Path) -> tuple[Pixels, int]:
    """The stored pixels of a DICOM file or a scan of 8 bits, and the highest value that they can have."""
    if image.suffix == ".dcm":
        dataset = pydicom.dcmread(image)
        return dataset.pixel_array, 2**dataset.BitsStored - 1
    with Image.open(image) as stored:
        return np.asarray(stored.convert("L")), 255


def _write(image: Path, pixels: Pixels, folder: Path) -> Path:
    """A copy of an image with other pixels, under its name; of a scan a PNG."""
    if image.suffix == ".dcm":
        dataset = pydicom.dcmread(image)
        dataset.Rows, dataset.Columns = pixels.shape
        dataset.PixelData = np.ascontiguousarray(pixels).tobytes()
        dataset.save_as(folder / image.name)
        return folder / image.name
    path = folder / f"{image.stem}.png"
    Image.fromarray(np.ascontiguousarray(pixels)).save(path)
    return path
