"""Breasts from their files, in worker processes; a file that cannot be read is reported, not raised."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydicom.dataset import Dataset as Tags
from torch.utils.data import Dataset

from clnet.data.pictures import to_grey
from clnet.data.reader import Mammogram, read_image
from clnet.errors import ClnetError
from clnet.predict.breasts import BreastImages
from clnet.preprocessing.preprocess import resize

PICTURE_ROWS = 640


@dataclass(frozen=True)
class PairLoader:
    """How a bundle reads and preprocesses; apart from the network, so that workers need not hold it.

    Attributes:
        apply_voi: whether the VOI LUT or window of a DICOM file is applied.
        transform: from `Pair.to_item()` to the sample that is collated.
    """

    apply_voi: bool
    transform: Callable[[Any], Any]


@dataclass(frozen=True)
class LoadedBreast:
    """A breast whose images were read.

    Attributes:
        breast: which.
        sample: what is collated; None if no view could be read.
        refused: the reason for each file that could not be read.
        pictures: [h, w] of each view that was read, of 8 bits, at most `PICTURE_ROWS` high.
        tags: of each view that is a DICOM file, without pixels.
    """

    breast: BreastImages
    sample: dict[str, Any] | None
    refused: Mapping[Path, str]
    pictures: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    tags: Mapping[str, Tags] = field(default_factory=dict)


class BreastDataset(Dataset[LoadedBreast]):
    """Reads and preprocesses breasts one by one, each file once.

    Args:
        breasts: which.
        loader: how.
    """

    def __init__(self, breasts: Sequence[BreastImages], loader: PairLoader) -> None:
        self.breasts = breasts
        self.loader = loader

    def __len__(self) -> int:
        return len(self.breasts)

    def __getitem__(self, index: int) -> LoadedBreast:
        """The breast; with one view, if the other cannot be read."""
        breast = self.breasts[index]
        images: dict[str, Mammogram] = dict(breast.in_memory)
        refused: dict[Path, str] = {}
        for name, view in breast.pair.views.items():
            if name not in images:
                try:
                    images[name] = read_image(view.image, self.loader.apply_voi)
                except Exception as error:
                    refused[view.image] = reason_of(error)
        if not images:
            return LoadedBreast(breast, None, refused)
        there = {name: view for name, view in breast.pair.views.items() if name in images}
        pair = replace(breast.pair, cc=there.get("cc"), mlo=there.get("mlo"))
        try:
            sample = self.loader.transform({**pair.to_item(), **images})
        except Exception as error:
            reason = reason_of(error)
            return LoadedBreast(breast, None, {**refused, **{view.image: reason for view in there.values()}})
        pictures = {name: _shrunk(image) for name, image in images.items()}
        tags = {name: image.tags for name, image in images.items() if image.tags is not None}
        return LoadedBreast(breast, sample, refused, pictures, tags)


def reason_of(error: Exception) -> str:
    """Words for an error; messages of libraries may quote patients, so only their kind is given."""
    return str(error) if isinstance(error, ClnetError) else f"cannot be analysed ({type(error).__name__})"


def _shrunk(image: Mammogram) -> NDArray[np.uint8]:
    """Of 8 bits, since it goes from process to process until it is drawn."""
    scale = min(1.0, PICTURE_ROWS / image.pixels.shape[0])
    return np.asarray(to_grey(resize(torch.from_numpy(image.pixels), scale, scale).numpy()))
