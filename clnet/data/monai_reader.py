"""The reader as MONAI knows readers; apart from `clnet.data.reader`, which is quick to import."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from monai.data.image_reader import ImageReader
from monai.utils.enums import MetaKeys
from numpy.typing import NDArray

from clnet.data.header import image_format
from clnet.data.image_errors import ImageError
from clnet.data.reader import Mammogram, read_image


class MammogramReader(ImageReader):
    """`read_image` as a MONAI reader: `LoadImaged(keys, reader=MammogramReader())`.

    The array is [H, W], rows first, where MONAI's own readers give [W, H]. The metadata carry what was read
    and how, and no patient identity.
    """

    def __init__(self, apply_voi: bool = True) -> None:
        super().__init__()
        self.apply_voi = apply_voi

    def verify_suffix(self, filename: Sequence[Any] | Any) -> bool:
        """Whether every file is of a format that is read here, by its content."""
        try:
            for file in _paths(filename):
                image_format(file)
        except ImageError:
            return False
        return True

    def read(self, data: Sequence[Any] | Any, **_: Any) -> Mammogram:
        """Read one file (or a sequence of one, as MONAI passes it)."""
        files = _paths(data)
        if len(files) != 1:
            raise ImageError(
                f"{len(files)} files given as one image; a view is one file. Use one key per view."
            )
        return read_image(files[0], self.apply_voi)

    def get_data(self, img: Mammogram) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """The pixels [H, W] and what MONAI and its users want to know about them."""
        header = img.header
        spacing = header.spacing_mm or (1.0, 1.0)
        metadata = {
            MetaKeys.AFFINE: np.diag([*spacing, 1.0, 1.0]),
            MetaKeys.ORIGINAL_AFFINE: np.diag([*spacing, 1.0, 1.0]),
            MetaKeys.SPATIAL_SHAPE: np.asarray(img.pixels.shape),
            MetaKeys.ORIGINAL_CHANNEL_DIM: "no_channel",
            "view": header.view or "",
            "laterality": header.laterality or "",
            "steps": "; ".join(img.steps),
            "warnings": "; ".join(img.warnings),
        }
        return img.pixels, metadata


def _paths(files: Sequence[Any] | Any) -> list[Path]:
    return [Path(file) for file in ([files] if isinstance(files, (str, PathLike)) else files)]
