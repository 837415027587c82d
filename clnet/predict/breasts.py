"""What there is to analyse: the breasts in DICOM files, in a datalist, or in two arrays.

A breast is named by a digest, never by its patient: results, logs and pictures carry this name.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from clnet.data.datalist import Datalist, read_datalist
from clnet.data.header import ImageHeader
from clnet.data.pair import VIEW_NAMES, Pair, View
from clnet.data.reader import Mammogram, image_of_array
from clnet.data.study import ChosenPair, LeftOut, choose_pairs, scan
from clnet.data.views import Laterality
from clnet.errors import ClnetError

Source = str | Path | Sequence[str | Path] | Datalist
Arrays = tuple[NDArray[Any] | None, NDArray[Any] | None]


class InputError(ClnetError):
    """An input that does not exist, or that holds nothing to analyse."""


@dataclass(frozen=True)
class BreastImages:
    """The images of one breast to analyse.

    Attributes:
        breast_id: 12 hexadecimal digits, a digest of study and laterality, of the pair's name in a datalist,
            or of the pixels of arrays.
        pair: its views, without lesions. Its ``pair_id`` is the name in a datalist, else the breast_id.
        warnings: what is unusual about the choice of its views.
        study: `ImageHeader.study_uid` of its views; "" if their headers were not read.
        in_memory: the images by view, if they are not to be read from files.
    """

    breast_id: str
    pair: Pair
    warnings: tuple[str, ...] = ()
    study: str = ""
    in_memory: Mapping[str, Mammogram] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """All breasts of an input.

    Attributes:
        root: the folder that file names are relative to.
        breasts: what to analyse.
        refused: files that cannot be read.
        left_out: images that are not a standard view, or not the best of several, and why.
    """

    root: Path
    breasts: Sequence[BreastImages]
    refused: Sequence[LeftOut] = ()
    left_out: Sequence[LeftOut] = ()

    def name_of(self, file: Path) -> str:
        """A file's name relative to the input."""
        return Path(os.path.relpath(file, self.root)).as_posix()


def find_breasts(source: Source, secondary_capture: bool = False, workers: int | None = None) -> Task:
    """Choose what to analyse, by headers alone.

    Args:
        source: a DICOM file, a folder of them with subfolders, several of these; or a datalist, its file, or
            a folder with a ``datalist.json``.
        secondary_capture: accept Secondary Capture images, for data sets known to store mammograms so.
        workers: processes to read headers with.
    """
    if isinstance(source, Datalist):
        return _task_of_datalist(source, Path())
    paths = [Path(source)] if isinstance(source, (str, Path)) else [Path(path) for path in source]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
    folders = [path if path.is_dir() else path.parent for path in paths]
    if len(paths) == 1 and (paths[0].suffix == ".json" or (paths[0] / "datalist.json").is_file()):
        return _task_of_datalist(read_datalist(paths[0]), folders[0])
    found = scan(paths, workers)
    if not (found.headers or found.refused):
        raise InputError(f"{', '.join(map(str, paths))}: no files there; hidden ones are passed over")
    selection = choose_pairs(found.headers, secondary_capture)
    root = Path(os.path.commonpath([folder.absolute() for folder in folders])) if folders else Path()
    breasts = [breast_of_study(pair) for pair in selection.pairs]
    return Task(root, breasts, found.refused, selection.left_out)


def breast_of_arrays(arrays: Arrays, laterality: str | None) -> BreastImages:
    """The breast whose CC and MLO are given as arrays [H, W], bright where dense; either may be None."""
    if laterality not in ("L", "R"):
        raise InputError(f'laterality is {laterality!r}; arrays need "L" or "R"')
    images = {
        name: image_of_array(np.asarray(array), name, name.upper(), cast(Laterality, laterality))
        for name, array in zip(VIEW_NAMES, arrays, strict=True)
        if array is not None
    }
    if not images:
        raise InputError("cc and mlo are both None; give at least one array")
    words = [f"{name} {hashlib.sha256(image.pixels.tobytes()).hexdigest()}" for name, image in images.items()]
    breast_id = digest(" ".join([laterality, *words]))
    views = {name: View(Path(name)) for name in images}
    pair = Pair(breast_id, breast_id, laterality, views.get("cc"), views.get("mlo"))
    return BreastImages(breast_id, pair, in_memory=images)


def breast_of_study(chosen: ChosenPair) -> BreastImages:
    """The breast whose views were chosen among the images of a study."""

    def view(header: ImageHeader | None) -> View | None:
        return View(header.file) if header else None

    breast_id = digest(f"{chosen.study_uid} {chosen.laterality}")
    pair = Pair(breast_id, breast_id, chosen.laterality, view(chosen.cc), view(chosen.mlo))
    return BreastImages(breast_id, pair, chosen.warnings, chosen.study_uid)


def breast_of_pair(pair: Pair) -> BreastImages:
    """The breast of a pair of a datalist, without its lesions."""
    breast_id = digest(pair.pair_id)
    views = {name: View(view.image, pixel_size=view.pixel_size) for name, view in pair.views.items()}
    return BreastImages(
        breast_id, Pair(pair.pair_id, breast_id, pair.laterality, views.get("cc"), views.get("mlo"))
    )


def source_key(breast: BreastImages) -> str:
    """Changes with the files of a breast, their names, sizes and times, and with their given pixel sizes."""
    facts = []
    for name, view in breast.pair.views.items():
        state = view.image.stat() if view.image.exists() else None
        version = (state.st_size, state.st_mtime_ns) if state else None
        facts.append((name, str(view.image.absolute()), version, view.pixel_size))
    return json.dumps(facts)


def _task_of_datalist(datalist: Datalist, root: Path) -> Task:
    return Task(root, [breast_of_pair(pair) for pairs in datalist.sections.values() for pair in pairs])


def digest(text: str) -> str:
    """A name that says nothing about its origin: 12 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
