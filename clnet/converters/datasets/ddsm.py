"""DDSM: scanned film as lossless JPEG, one `.ics` file per case, one `.OVERLAY` file per film with findings.

The reader of clnet does not know `.LJPEG`, so each film is written as a 16-bit PNG, once. Its values are
optical densities, which are comparable between digitizers: 0 is a density of 3.0 (black film), 65535 one of
0.05 (bright).
"""

import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView, Mass
from clnet.converters.box_extraction import points_to_box
from clnet.converters.datasets.ddsm_ics import Case, Film, IcsError, parse_ics
from clnet.converters.datasets.ddsm_ljpeg import decode_ljpeg
from clnet.converters.datasets.ddsm_overlay import Overlay, OverlayError, parse_overlay
from clnet.converters.workspace import Workspace
from clnet.data.decode import MAX_PIXELS
from clnet.data.image_errors import DamagedImageError, ImageError, refusing_damage
from clnet.files import whole_file

# Grey level to optical density, by institution (the letter of the case) and digitizer.
CALIBRATIONS: dict[tuple[str, str], Callable[[NDArray[Any]], NDArray[Any]]] = {
    ("A", "DBA"): lambda grey: (np.log10(np.maximum(grey, 1)) - 4.80662) / -1.07553,
    ("A", "HOWTEK"): lambda grey: 3.789 - 0.00094568 * grey,
    ("B", "LUMISYS"): lambda grey: (grey - 4096.99) / -1009.01,
    ("C", "LUMISYS"): lambda grey: (grey - 4096.99) / -1009.01,
    ("D", "HOWTEK"): lambda grey: 3.96604095 - 0.00099055808 * grey,
}
DENSITIES = (0.05, 3.0)

_FILE_NAME = re.compile(
    r"(?P<case>[A-Z]_\d+_\d+)\.(?P<film>(LEFT|RIGHT)_(CC|MLO))\.(?P<kind>LJPEG|LJPEG\.1|RAW|OVERLAY)(\.GZ)?"
)
_IMAGE_KINDS = ("LJPEG", "LJPEG.1", "RAW")  # in order of preference


def section_of(patient_id: str) -> str:
    """The section of a DDSM patient, such as "B_3024", in the split that clnet publishes.

    It depends only on the id: the first 32 bits of the SHA-256 of ``clnet DDSM 1: B_3024``, as a number in
    [0, 1), are below 0.7 for training, below 0.8 for validation, and otherwise test.
    """
    number = int(sha256(f"clnet DDSM 1: {patient_id}".encode()).hexdigest()[:8], 16) / 2**32
    return "training" if number < 0.7 else "validation" if number < 0.8 else "test"


def read(workspace: Workspace) -> AnnotatedDataset:
    """Read the films of all cases, with the boxes of the masses outlined on them."""
    cases, files = _find_files(workspace)
    films: list[_FilmFiles] = []
    for ics, case in cases.items():
        films += _films_of_case(ics, case, files.pop((ics.parent, case.case_id), {}), workspace)
    for kinds in (kinds for of_case in files.values() for kinds in of_case.values()):
        for file in kinds.values():
            workspace.skip(file, "case without an .ics file")
    written = workspace.cache.map(
        write_film,
        {film.image: (str(film.png), film.film.rows, film.film.columns, *film.calibration) for film in films},
        "Decoding films",
        outputs={film.image: film.png for film in films},
    )
    views = []
    for film in films:
        facts = written[film.image]
        if isinstance(facts, ImageError):
            workspace.skip(film.image, "unreadable image", workspace.message(facts, film.image))
            continue
        if facts["swapped"]:
            name = workspace.name(film.image)
            workspace.warn(f"{name}: its header swaps rows and columns; the .ics file is followed")
        views.append(_view(film, workspace))
    return AnnotatedDataset("DDSM", views, has_full_split=True)


def write_film(
    file: Path, target: str, rows: int, columns: int, letter: str, digitizer: str
) -> dict[str, Any]:
    """Decode a film and write it as PNG; returns whether its header swaps rows and columns."""
    data = read_bytes(file)
    if ".LJPEG" in file.name.upper() and ".LJPEG.1" not in file.name.upper():
        with refusing_damage(file):
            grey = decode_ljpeg(data, file)
    elif len(data) == 2 * rows * columns:
        grey = np.frombuffer(data, ">u2").reshape(rows, columns).astype(np.uint16)
    else:
        raise DamagedImageError(
            f"{file}: has {len(data)} bytes, but {rows} × {columns} pixels of 16 bits need "
            f"{2 * rows * columns}. Download it again."
        )
    swapped = grey.shape != (rows, columns)
    if swapped and grey.shape != (columns, rows):
        raise DamagedImageError(
            f"{file}: the image is {grey.shape[0]} × {grey.shape[1]}, but the .ics file says {rows} × "
            f"{columns}. Download both again."
        )
    pixels = _lookup_table(letter, digitizer)[grey.reshape(rows, columns)]
    with whole_file(target) as unfinished:
        # Film grain hardly compresses: zlib's default level takes longer and saves less than 1%.
        Image.fromarray(pixels).save(unfinished, format="PNG", compress_level=1)
    return {"swapped": swapped}


def read_bytes(file: Path) -> bytes:
    """The content of a file, decompressed if it is gzipped, whatever its name."""
    limit = 2 * MAX_PIXELS
    try:
        with file.open("rb") as stream:
            is_gzipped = stream.read(2) == b"\x1f\x8b"
        with gzip.open(file) if is_gzipped else file.open("rb") as stream:
            data = stream.read(limit + 1)
    except (OSError, EOFError) as error:
        raise DamagedImageError(f"{file}: cannot be read or decompressed ({type(error).__name__})") from error
    if len(data) > limit:
        raise DamagedImageError(f"{file}: more than {limit:,} bytes; no DDSM file is that large")
    return data


def _lookup_table(letter: str, digitizer: str) -> NDArray[np.uint16]:
    """The PNG value of each of the 65536 grey levels."""
    low, high = DENSITIES
    density = CALIBRATIONS[letter, digitizer](np.arange(65536, dtype=np.float64)).clip(low, high)
    return np.rint((high - density) / (high - low) * 65535).astype(np.uint16)


@dataclass(frozen=True)
class _FilmFiles:
    """A film, its files, and the PNG to write."""

    case: Case
    film: Film
    image: Path
    overlay: Path | None
    png: Path
    calibration: tuple[str, str]


_FilesByCase = dict[tuple[Path, str], dict[str, dict[str, Path]]]


def _find_files(workspace: Workspace) -> tuple[dict[Path, Case], _FilesByCase]:
    """The cases by their `.ics` file; the other files by folder and case, then by film, then by kind."""
    cases: dict[Path, Case] = {}
    files: _FilesByCase = defaultdict(lambda: defaultdict(dict))
    for file in workspace.files():
        name = file.name.upper()
        match = _FILE_NAME.fullmatch(name)
        if match:
            kinds = files[file.parent, match["case"]][match["film"]]
            if kinds.setdefault(match["kind"], file) != file:
                workspace.skip(file, "duplicate of a file that is used")
        elif name.removesuffix(".GZ").endswith(".ICS"):
            try:
                case = parse_ics(_text(file), file)
            except (IcsError, DamagedImageError) as error:
                workspace.skip(file, "damaged .ics file", workspace.message(error, file))
                continue
            if any(case.case_id == other.case_id for other in cases.values()):
                workspace.skip(file, "duplicate case", case.case_id)
            else:
                cases[file] = case
        else:
            workspace.skip(file, "not a DDSM file")
    return cases, files


def _films_of_case(
    ics: Path, case: Case, files: Mapping[str, Mapping[str, Path]], workspace: Workspace
) -> list[_FilmFiles]:
    calibration = _calibration(case)
    films = []
    for film in case.films:
        kinds = files.get(film.name, {})
        images = [kinds[kind] for kind in _IMAGE_KINDS if kind in kinds]
        if not images:
            where = f"{workspace.name(ics)}: {film.name}"
            workspace.skip(where, "image not found", f"{case.case_id}.{film.name}.LJPEG")
            continue
        for other in images[1:]:
            workspace.skip(other, "duplicate of a file that is used")
        if calibration is None:
            detail = f"digitizer {case.digitizer!r} of institution {case.case_id[0]}"
            workspace.skip(images[0], "unknown digitizer", detail)
            continue
        png = workspace.output / "images" / f"{case.case_id}.{film.name}.png"
        films.append(_FilmFiles(case, film, images[0], kinds.get("OVERLAY"), png, calibration))
    for name in sorted(set(files) - {film.name for film in case.films}):
        for file in files[name].values():
            detail = f"{workspace.name(ics)} has no line {name}"
            workspace.skip(file, "film not listed in its .ics file", detail)
    return films


def _calibration(case: Case) -> tuple[str, str] | None:
    """The key in `CALIBRATIONS`; if the file names no digitizer, the only one of the institution."""
    letter = case.case_id[0]
    known = [key for key in CALIBRATIONS if key[0] == letter and case.digitizer in ("", key[1])]
    return known[0] if len(known) == 1 else None


def _view(files: _FilmFiles, workspace: Workspace) -> AnnotatedView:
    case, film = files.case, files.film
    masses, unlocated = _masses(files, workspace)
    side, view = film.name.split("_")
    attributes = {"digitizer": files.calibration[1]}
    return AnnotatedView(
        image=files.png,
        size=(film.rows, film.columns),
        patient_id=case.patient_id,
        study_id=case.case_id,
        laterality="L" if side == "LEFT" else "R",
        view=view.lower(),
        masses=tuple(masses),
        unlocated=tuple(unlocated),
        attributes=attributes | ({"density": str(case.density)} if case.density else {}),
        section=section_of(case.patient_id),
    )


def _masses(files: _FilmFiles, workspace: Workspace) -> tuple[list[Mass], list[str]]:
    """The masses outlined on a film, and one line for each that has no usable outline."""
    masses: list[Mass] = []
    unlocated: list[str] = []
    has_overlay = files.film.has_overlay
    if files.overlay is None:
        return masses, ["the .ics file says OVERLAY, but there is no such file"] if has_overlay else []
    name = workspace.name(files.overlay)
    try:
        overlay = parse_overlay(_text(files.overlay), files.overlay)
    except (OverlayError, DamagedImageError) as error:
        overlay = Overlay()
        unlocated.append(f"its overlay cannot be used: {workspace.message(error, files.overlay)}")
    if overlay.missing:
        unlocated.append(f"its overlay announces {overlay.missing} more abnormalities than it contains")
    if not has_overlay:
        workspace.warn(f"{name}: used, although the .ics file says NON_OVERLAY")
    for warning in overlay.warnings:
        workspace.warn(warning.replace(str(files.overlay), name))
    for abnormality in overlay.abnormalities:
        where = f"{name}: abnormality {abnormality.number}"
        if not abnormality.lesion_types:
            unlocated.append(f"abnormality {abnormality.number}: no LESION_TYPE, so it may be a mass")
        elif not abnormality.is_mass:
            kinds = ", ".join(words[0].lower() for words in abnormality.lesion_types if words)
            workspace.skip(where, "not a mass", kinds)
        elif abnormality.boundary is None:
            unlocated.append(f"abnormality {abnormality.number}: {abnormality.problem}")
            workspace.skip(where, "mass without a usable outline", abnormality.problem)
        else:
            masses.append(Mass(points_to_box(abnormality.boundary), descriptors=abnormality.descriptors))
    return masses, unlocated


def _text(file: Path) -> str:
    return read_bytes(file).decode("latin-1")
