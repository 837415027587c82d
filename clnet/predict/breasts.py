"""What there is to analyse: the breasts in a folder of DICOM files, in one file, or in a datalist.

A breast is named by a digest, never by its patient: results, logs and pictures carry this name.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clnet.data.datalist import read_datalist
from clnet.data.header import ImageHeader
from clnet.data.pair import Pair, View
from clnet.data.study import ChosenPair, LeftOut, choose_pairs, scan
from clnet.errors import ClnetError


class InputError(ClnetError):
    """There is nothing at the place that was named."""


@dataclass(frozen=True)
class Breast:
    """One breast to analyse.

    Attributes:
        breast_id: 12 hexadecimal digits, a digest of study and laterality, or of the pair's name in a
            datalist.
        pair: its views, without marks. Its ``pair_id`` is the name in a datalist, the breast_id otherwise.
        warnings: what is unusual about the choice of its views.
    """

    breast_id: str
    pair: Pair
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """All breasts of an input.

    Attributes:
        root: the folder that file names are told relative to.
        breasts: what to analyse.
        refused: files that cannot be read.
        left_out: images that are no standard view, or not the best of several, and why.
    """

    root: Path
    breasts: Sequence[Breast]
    refused: Sequence[LeftOut] = field(default=())
    left_out: Sequence[LeftOut] = field(default=())

    def name_of(self, file: Path) -> str:
        """A file's name relative to the input."""
        return Path(os.path.relpath(file, self.root)).as_posix()


def find_breasts(path: str | Path, secondary_capture: bool = False, workers: int | None = None) -> Task:
    """Choose what to analyse, by headers alone.

    Args:
        path: a DICOM file, a folder of them with subfolders, a datalist, or a folder with a datalist.json.
        secondary_capture: accept Secondary Capture images, for data sets known to store mammograms so.
        workers: processes to read headers with.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    if path.suffix == ".json" or (path / "datalist.json").is_file():
        return _task_of_datalist(path)
    found = scan(path, workers)
    selection = choose_pairs(found.headers, secondary_capture)
    root = path if path.is_dir() else path.parent
    breasts = [breast_of_study(pair) for pair in selection.pairs]
    return Task(root, breasts, found.refused, selection.left_out)


def source_key(breast: Breast) -> str:
    """Changes with the files of a breast: their names, sizes and times."""
    facts = []
    for name, view in breast.pair.views.items():
        state = view.image.stat() if view.image.exists() else None
        facts.append(
            (name, str(view.image.absolute()), (state.st_size, state.st_mtime_ns) if state else None)
        )
    return json.dumps(facts)


def breast_of_study(chosen: ChosenPair) -> Breast:
    """The breast whose views were chosen among the images of a study."""

    def view(header: ImageHeader | None) -> View | None:
        return View(header.file) if header else None

    breast_id = digest(f"{chosen.study_uid} {chosen.laterality}")
    pair = Pair(breast_id, breast_id, chosen.laterality, view(chosen.cc), view(chosen.mlo))
    return Breast(breast_id, pair, chosen.warnings)


def breast_of_pair(pair: Pair) -> Breast:
    """The breast of a pair of a datalist, its marks left out."""
    breast_id = digest(pair.pair_id)
    views = {name: View(view.image) for name, view in pair.views.items()}
    return Breast(
        breast_id, Pair(pair.pair_id, breast_id, pair.laterality, views.get("cc"), views.get("mlo"))
    )


def _task_of_datalist(path: Path) -> Task:
    sections = read_datalist(path).sections.values()
    breasts = [breast_of_pair(pair) for pairs in sections for pair in pairs]
    return Task(path if path.is_dir() else path.parent, breasts)


def digest(text: str) -> str:
    """A name that tells nothing: 12 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
