"""Breasts from their files, in worker processes; what cannot be read is told, not raised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from clnet.data.pair import Pair
from clnet.data.reader import Mammogram, read_image
from clnet.errors import ClnetError
from clnet.predict.breasts import Breast
from clnet.predict.bundle import PairLoader
from clnet.preprocessing.preprocess import resize

PICTURE_ROWS = 640


@dataclass(frozen=True)
class LoadedBreast:
    """A breast, read.

    Attributes:
        breast: which.
        sample: what is collated; None if no view could be read.
        refused: the reason for each file that could not be read.
        pictures: [h, w] of each view, at most `PICTURE_ROWS` high.
    """

    breast: Breast
    sample: dict[str, Any] | None
    refused: Mapping[Path, str]
    pictures: Mapping[str, NDArray[np.float32]]


class BreastDataset(Dataset[LoadedBreast]):
    """Reads and preprocesses one breast after another.

    Args:
        breasts: which.
        load: the bundle's way from files to a sample.
    """

    def __init__(self, breasts: Sequence[Breast], load: PairLoader) -> None:
        self.breasts = breasts
        self.load = load

    def __len__(self) -> int:
        return len(self.breasts)

    def __getitem__(self, index: int) -> LoadedBreast:
        """The breast; with one view, if the other cannot be read."""
        breast = self.breasts[index]
        try:
            return self._load(breast, breast.pair, {})
        except Exception as error:
            refused = _unreadable(breast.pair)
            left = {name: view for name, view in breast.pair.views.items() if view.image not in refused}
            if not refused:  # it is not the files
                refused = {view.image: reason_of(error) for view in breast.pair.views.values()}
            elif left:
                pair = replace(breast.pair, cc=left.get("cc"), mlo=left.get("mlo"))
                return self._load(breast, pair, refused)
            return LoadedBreast(breast, None, refused, {})

    def _load(self, breast: Breast, pair: Pair, refused: Mapping[Path, str]) -> LoadedBreast:
        sample, images = self.load(pair.to_item())
        pictures = {name: _shrunk(image) for name, image in images.items()}
        return LoadedBreast(breast, sample, refused, pictures)


def reason_of(error: Exception) -> str:
    """Words for an error; those of libraries may quote patients, so their kind alone is told."""
    return str(error) if isinstance(error, ClnetError) else f"cannot be analysed ({type(error).__name__})"


def _unreadable(pair: Pair) -> dict[Path, str]:
    reasons = {}
    for view in pair.views.values():
        try:
            read_image(view.image)
        except Exception as error:
            reasons[view.image] = reason_of(error)
    return reasons


def _shrunk(image: Mammogram) -> NDArray[np.float32]:
    scale = min(1.0, PICTURE_ROWS / image.pixels.shape[0])
    return resize(torch.from_numpy(image.pixels), scale, scale).numpy()
