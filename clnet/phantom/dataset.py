"""The phantom as a data set on disk: DICOM files, a datalist and a preview.

Every pair depends only on the seed and its own number, so neither the number of workers nor the number of
pairs changes the bytes of a pair.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from clnet.data.datalist import Datalist, read_datalist, split_by_patient, write_datalist
from clnet.data.pair import Pair, View
from clnet.data.pictures import datalist_picture, sheet
from clnet.errors import ClnetError
from clnet.files import make_folder
from clnet.phantom.dicom import ImageIdentity, write_dicom
from clnet.phantom.geometry import Array
from clnet.phantom.render import RenderedView, render, stamp_marker
from clnet.phantom.scene import DIFFICULTIES, Scene, draw_breast, draw_scene
from clnet.processes import end_with_parent

SECTION_SHARES = {"training": 0.6, "validation": 0.15, "test": 0.25}
SETTINGS_FILE = "phantom.json"


class PhantomError(ClnetError):
    """Invalid settings, or a folder that cannot be used."""


@dataclass(frozen=True)
class PhantomSettings:
    """Everything that a phantom depends on.

    Attributes:
        pairs: number of pairs; a patient has two, left and right.
        seed: another seed gives another phantom.
        rows, columns: of the images.
        difficulty: a name in `DIFFICULTIES`.
    """

    pairs: int
    seed: int = 0
    rows: int = 320
    columns: int = 224
    difficulty: str = "standard"

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise PhantomError(f"pairs is {self.pairs}; expected at least 1")
        if self.seed < 0:
            raise PhantomError(f"seed is {self.seed}; expected at least 0")
        if not (96 <= self.rows <= 4096 and 64 <= self.columns <= 4096):
            raise PhantomError(
                f"size is {self.rows} × {self.columns}; expected 96 × 64 up to 4096 × 4096 pixels"
            )
        if 2 * self.columns < self.rows:
            raise PhantomError(
                f"size is {self.rows} × {self.columns}; expected at least half as many columns as rows"
            )
        if self.difficulty not in DIFFICULTIES:
            raise PhantomError(
                f"difficulty is {self.difficulty!r}; expected one of {', '.join(DIFFICULTIES)}"
            )

    @property
    def set_name(self) -> str:
        """Distinguishes phantoms in patient ids and UIDs."""
        return f"{self.difficulty}-{self.rows}x{self.columns}-{self.seed}"

    @property
    def recipe(self) -> dict[str, Any]:
        """The settings and the difficulty in full: if one of them changes, the phantom is made again."""
        return {**asdict(self), "recipe": asdict(DIFFICULTIES[self.difficulty])}


def make_phantom(folder: str | Path, settings: PhantomSettings, workers: int | None = None) -> Datalist:
    """Write a phantom to `folder`: ``images/*.dcm``, ``datalist.json``, ``preview.png``, ``phantom.json``.

    If the folder already has the phantom of these settings, it is not made again.

    Args:
        folder: created if it does not exist.
        settings: of the phantom.
        workers: number of processes; by default one per core.
    """
    folder = Path(folder)
    _refuse_foreign_folder(folder)
    finished = folder / SETTINGS_FILE
    recipe = json.dumps(settings.recipe, indent=1) + "\n"
    if finished.exists() and finished.read_text(encoding="utf-8") == recipe:
        return read_datalist(folder)
    finished.unlink(missing_ok=True)
    make_folder(folder / "images")

    workers = workers or os.cpu_count() or 1
    pairs = list(
        tqdm(
            _pairs(folder, settings, workers),
            total=settings.pairs,
            desc="phantom",
            unit="pair",
            disable=None,  # no bar without a terminal
        )
    )
    datalist = Datalist(
        f"clnet phantom {settings.set_name}", split_by_patient(pairs, SECTION_SHARES, settings.seed)
    )
    write_datalist(datalist, folder / "datalist.json")
    preview = sheet([datalist_picture(pair, height=420) for pair in _preview_pairs(pairs)], columns=3)
    preview.save(folder / "preview.png")
    finished.write_text(recipe, encoding="utf-8")
    return datalist


def _refuse_foreign_folder(folder: Path) -> None:
    if folder.is_file():
        raise PhantomError(f"{folder} is a file; give a folder for the phantom")
    if (folder / "datalist.json").exists() and not (folder / SETTINGS_FILE).exists():
        raise PhantomError(f"{folder} has a data set that is not a phantom; give another folder")


def _pairs(folder: Path, settings: PhantomSettings, workers: int) -> Iterator[Pair]:
    make = partial(_make_pair, folder, settings)
    if workers == 1:
        yield from map(make, range(settings.pairs))
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), end_with_parent) as pool:
        yield from pool.map(make, range(settings.pairs), chunksize=4)


def _make_pair(folder: Path, settings: PhantomSettings, number: int) -> Pair:
    patient, laterality = number // 2, "LR"[number % 2]
    breast = draw_breast(np.random.default_rng([settings.seed, 0, patient]))
    rng = np.random.default_rng([settings.seed, 1, number])
    scene = draw_scene(breast, DIFFICULTIES[settings.difficulty], settings.rows, rng)
    rendered = render(scene, settings.rows, settings.columns, rng)
    masses = _visible_masses(scene, rendered)
    views = {}
    for name, view in rendered.items():
        identity = ImageIdentity(settings.set_name, patient, laterality, name)
        mirrored = laterality == "R"
        pixels = view.pixels[:, ::-1].copy() if mirrored else view.pixels
        stamp_marker(pixels, f"{laterality} {name.upper()}", on_left=mirrored)
        path = folder / "images" / f"{patient:05d}_{laterality}_{name.upper()}.dcm"
        geometry = scene.views[name]
        angle = float(np.degrees(np.arccos(geometry.beam[2])))
        write_dicom(path, pixels, geometry.spacing, angle, breast.density_category, identity)
        ids = [i for i in masses if i in view.boxes]
        views[name] = View(
            image=path,
            boxes=np.array([_in_file(view.boxes[i], settings.columns, mirrored) for i in ids]),
            lesion_ids=tuple(str(masses[i]) for i in ids),
            size=(settings.rows, settings.columns),
        )
    return Pair(
        pair_id=f"{patient:05d}_{laterality}",
        patient_id=f"{settings.set_name}-{patient:05d}",
        laterality=laterality,
        cc=views["cc"],
        mlo=views["mlo"],
        attributes=_attributes(scene, rendered, masses, settings, laterality == "R"),
    )


def _preview_pairs(pairs: list[Pair]) -> list[Pair]:
    """Six pairs, from many masses to few."""
    by_masses = sorted(
        pairs, key=lambda pair: -len({i for view in pair.views.values() for i in view.lesion_ids})
    )
    return [by_masses[number * len(pairs) // 8] for number in range(min(6, len(pairs)))]


def _visible_masses(scene: Scene, rendered: dict[str, RenderedView]) -> dict[int, int]:
    """The masses visible in at least one view: index in the scene to number in the breast, from 1."""
    seen = [
        index
        for index, lesion in enumerate(scene.lesions)
        if lesion.mimics_in is None and any(index in view.boxes for view in rendered.values())
    ]
    return {index: number for number, index in enumerate(seen, start=1)}


def _attributes(
    scene: Scene,
    rendered: dict[str, RenderedView],
    masses: dict[int, int],
    settings: PhantomSettings,
    mirrored: bool,
) -> dict[str, Any]:
    """What evaluation can group by, and the boxes of the mimics, which are not lesions."""
    return {
        "density": scene.breast.density_category,
        "difficulty": settings.difficulty,
        "lesions": {
            str(number): {
                "shape": scene.lesions[index].shape,
                "diameter_mm": round(scene.lesions[index].diameter, 1),
            }
            for index, number in masses.items()
        },
        "mimics": {
            name: [
                _in_file(box, settings.columns, mirrored).tolist()
                for index, box in view.boxes.items()
                if scene.lesions[index].mimics_in == name
            ]
            for name, view in rendered.items()
        },
    }


def _in_file(box: Array, columns: int, mirrored: bool) -> Array:
    """A box in the pixels of the file; right breasts are mirrored there."""
    x_min, y_min, x_max, y_max = box
    return np.array([columns - x_max, y_min, columns - x_min, y_max]) if mirrored else box
