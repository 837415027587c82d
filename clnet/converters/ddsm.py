"""DDSM: scanned film as lossless JPEG, an `.ics` file a case, an `.OVERLAY` file a film with abnormalities.

clnet reads no `.LJPEG`, so each film is written as a 16-bit PNG, once. Its values are optical densities,
which make the digitizers alike: 0 is a density of 3.0 (black film), 65535 one of 0.05 (bright).
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

from clnet.converters.ddsm_ics import Case, Film, IcsError, parse_ics
from clnet.converters.ddsm_ljpeg import decode_ljpeg
from clnet.converters.ddsm_overlay import Overlay, OverlayError, parse_overlay
from clnet.converters.marked import MarkedView, Mass, Skipped, Source
from clnet.converters.marked_boxes import box_of_points
from clnet.converters.workspace import Workspace
from clnet.data.decode import MAX_PIXELS
from clnet.data.image_errors import DamagedImageError, ImageError, refusing_damage
from clnet.data.views import Laterality
from clnet.files import whole_file

NAME = "DDSM"

# Grey level to optical density, by institution (the letter of the case) and digitizer.
CALIBRATIONS: dict[tuple[str, str], Callable[[NDArray[Any]], NDArray[Any]]] = {
    ("A", "DBA"): lambda grey: (np.log10(np.maximum(grey, 1)) - 4.80662) / -1.07553,
    ("A", "HOWTEK"): lambda grey: 3.789 - 0.00094568 * grey,
    ("B", "LUMISYS"): lambda grey: (grey - 4096.99) / -1009.01,
    ("C", "LUMISYS"): lambda grey: (grey - 4096.99) / -1009.01,
    ("D", "HOWTEK"): lambda grey: 3.96604095 - 0.00099055808 * grey,
}
DENSITIES = (0.05, 3.0)

_NAME = re.compile(
    r"(?P<case>[A-Z]_\d+_\d+)\.(?P<film>(LEFT|RIGHT)_(CC|MLO))\.(?P<kind>LJPEG|LJPEG\.1|RAW|OVERLAY)(\.GZ)?"
)
_IMAGES = ("LJPEG", "LJPEG.1", "RAW")  # the first that is there is used


def section_of(patient_id: str) -> str:
    """The section of a DDSM patient, such as "B_3024", in the split that clnet publishes.

    It depends on nothing but the id: the first 32 bits of SHA-256 of ``clnet DDSM 1: B_3024`` as a number in
    [0, 1): below 0.7 training, below 0.8 validation, else test.
    """
    number = int(sha256(f"clnet DDSM 1: {patient_id}".encode()).hexdigest()[:8], 16) / 2**32
    return "training" if number < 0.7 else "validation" if number < 0.8 else "test"


def read(workspace: Workspace) -> Source:
    """The films of all cases, with the boxes of the masses outlined on them."""
    skipped: list[Skipped] = []
    warnings: list[str] = []
    cases, films = _find(workspace, skipped)
    places: list[_Place] = []
    for file, case in cases.items():
        places += _places(file, case, films.pop((file.parent, case.case_id), {}), workspace, skipped)
    for kinds in films.values():
        for files in kinds.values():
            skipped += [Skipped(workspace.name(file), "no .ics file of its case") for file in files.values()]
    jobs = {
        place.image: (str(place.target), place.film.rows, place.film.columns, *place.calibration)
        for place in places
    }
    targets = {place.image: place.target for place in places}
    written = workspace.memory.map(write_film, jobs, "Decoding films", targets)
    views = []
    for place in places:
        facts = written[place.image]
        name = workspace.name(place.image)
        if isinstance(facts, ImageError):
            skipped.append(Skipped(name, "unreadable image", workspace.words(facts, place.image)))
            continue
        if facts["swapped"]:
            warnings.append(f"{name}: its header swaps rows and columns; the .ics file is followed")
        views.append(_view(place, workspace, skipped, warnings))
    return Source(NAME, views, skipped, warnings, split_is_whole=True)


def write_film(
    file: Path, target: str, rows: int, columns: int, letter: str, digitizer: str
) -> dict[str, Any]:
    """Decode a film and write it as PNG; says whether its header swaps rows and columns."""
    data = read_bytes(file)
    if ".LJPEG" in file.name.upper() and ".LJPEG.1" not in file.name.upper():
        with refusing_damage(file):
            grey = decode_ljpeg(data, file)
    elif len(data) == 2 * rows * columns:
        grey = np.frombuffer(data, ">u2").reshape(rows, columns).astype(np.uint16)
    else:
        raise DamagedImageError(
            f"{file}: has {len(data)} bytes, but {rows} × {columns} pixels of 16 bits need "
            f"{2 * rows * columns}. Fetch it again from its source."
        )
    swapped = grey.shape != (rows, columns)
    if swapped and grey.shape != (columns, rows):
        raise DamagedImageError(
            f"{file}: the image is {grey.shape[0]} × {grey.shape[1]}, but the .ics file says {rows} × "
            f"{columns}. Fetch both again from their source."
        )
    pixels = _table(letter, digitizer)[grey.reshape(rows, columns)]
    with whole_file(target) as unfinished:
        # Grain hardly compresses: on a film, zlib's usual effort takes longer and saves less than 1%.
        Image.fromarray(pixels).save(unfinished, format="PNG", compress_level=1)
    return {"swapped": swapped}


def read_bytes(file: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped, whatever its name, up to what a film can have."""
    limit = 2 * MAX_PIXELS
    try:
        with file.open("rb") as stream:
            is_packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(file) if is_packed else file.open("rb") as stream:
            data = stream.read(limit + 1)
    except (OSError, EOFError) as error:
        raise DamagedImageError(f"{file}: cannot be read or unpacked ({type(error).__name__})") from error
    if len(data) > limit:
        raise DamagedImageError(f"{file}: more than {limit:,} bytes; no file of DDSM is that large")
    return data


def _table(letter: str, digitizer: str) -> NDArray[np.uint16]:
    """What each of the 65536 grey levels becomes."""
    low, high = DENSITIES
    density = CALIBRATIONS[letter, digitizer](np.arange(65536, dtype=np.float64)).clip(low, high)
    return np.rint((high - density) / (high - low) * 65535).astype(np.uint16)


@dataclass(frozen=True)
class _Place:
    """A film, its files, and where its PNG goes."""

    case: Case
    film: Film
    image: Path
    overlay: Path | None
    target: Path
    calibration: tuple[str, str]


_Films = dict[tuple[Path, str], dict[str, dict[str, Path]]]


def _find(workspace: Workspace, skipped: list[Skipped]) -> tuple[dict[Path, Case], _Films]:
    """The cases by their `.ics` file; files by folder and case, then by film, then by kind."""
    cases: dict[Path, Case] = {}
    films: _Films = defaultdict(lambda: defaultdict(dict))
    for file in workspace.files():
        name = file.name.upper()
        match = _NAME.fullmatch(name)
        if match:
            kinds = films[file.parent, match["case"]][match["film"]]
            if kinds.setdefault(match["kind"], file) != file:
                skipped.append(Skipped(workspace.name(file), "another form of a file that is used"))
        elif name.removesuffix(".GZ").endswith(".ICS"):
            try:
                case = parse_ics(_text(file), file)
            except (IcsError, DamagedImageError) as error:
                detail = workspace.words(error, file)
                skipped.append(Skipped(workspace.name(file), "case with a damaged .ics file", detail))
                continue
            if any(case.case_id == other.case_id for other in cases.values()):
                skipped.append(Skipped(workspace.name(file), "case stands twice", case.case_id))
            else:
                cases[file] = case
        else:
            skipped.append(Skipped(workspace.name(file), "neither .ics, nor .OVERLAY, nor an image of DDSM"))
    return cases, films


def _places(
    ics: Path,
    case: Case,
    films: Mapping[str, Mapping[str, Path]],
    workspace: Workspace,
    skipped: list[Skipped],
) -> list[_Place]:
    calibration = _calibration(case)
    places = []
    for film in case.films:
        kinds = films.get(film.name, {})
        images = [kinds[kind] for kind in _IMAGES if kind in kinds]
        where = f"{workspace.name(ics)}: {film.name}"
        if not images:
            skipped.append(Skipped(where, "image not found", f"{case.case_id}.{film.name}.LJPEG"))
            continue
        for other in images[1:]:
            skipped.append(Skipped(workspace.name(other), "another form of a file that is used"))
        if calibration is None:
            detail = f"digitizer {case.digitizer!r} of institution {case.case_id[0]}"
            skipped.append(Skipped(workspace.name(images[0]), "unknown digitizer", detail))
            continue
        target = workspace.out / "images" / f"{case.case_id}.{film.name}.png"
        places.append(_Place(case, film, images[0], kinds.get("OVERLAY"), target, calibration))
    stray = set(films) - {film.name for film in case.films}
    for name in sorted(stray):
        for file in films[name].values():
            detail = f"{workspace.name(ics)} has no line {name}"
            skipped.append(Skipped(workspace.name(file), "film that is not in its .ics file", detail))
    return places


def _calibration(case: Case) -> tuple[str, str] | None:
    """The key of `CALIBRATIONS`; where the file names no digitizer, the only one of the institution."""
    letter = case.case_id[0]
    known = [key for key in CALIBRATIONS if key[0] == letter and case.digitizer in ("", key[1])]
    return known[0] if len(known) == 1 else None


def _view(place: _Place, workspace: Workspace, skipped: list[Skipped], warnings: list[str]) -> MarkedView:
    case, film = place.case, place.film
    masses, unplaced = [], []
    try:
        overlay = parse_overlay(_text(place.overlay), place.overlay) if place.overlay else Overlay()
    except (OverlayError, DamagedImageError) as error:
        overlay = Overlay()
        unplaced.append(f"its overlay cannot be used: {workspace.words(error, place.overlay or place.image)}")
    if overlay.missing:
        unplaced.append(f"its overlay announces {overlay.missing} more that it does not hold")
    name = workspace.name(place.overlay or place.image)
    if film.has_overlay and not place.overlay:
        unplaced.append("the .ics file says OVERLAY, but there is no such file")
    if place.overlay and not film.has_overlay:
        warnings.append(f"{name}: used, though the .ics file says NON_OVERLAY")
    warnings += [warning.replace(str(place.overlay), name) for warning in overlay.warnings]
    for abnormality in overlay.abnormalities:
        where = f"{name}: abnormality {abnormality.number}"
        if not abnormality.lesion_types:
            unplaced.append(f"abnormality {abnormality.number}: no LESION_TYPE, so that it may be a mass")
        elif not abnormality.is_mass:
            kinds = ", ".join(words[0].lower() for words in abnormality.lesion_types if words)
            skipped.append(Skipped(where, "not a mass", kinds))
        elif abnormality.boundary is None:
            unplaced.append(f"abnormality {abnormality.number}: {abnormality.problem}")
            skipped.append(Skipped(where, "mass without a usable outline", abnormality.problem))
        else:
            masses.append(Mass(box_of_points(abnormality.boundary), descriptors=abnormality.descriptors))
    side, view = film.name.split("_")
    laterality: Laterality = "L" if side == "LEFT" else "R"
    attributes: dict[str, Any] = {"digitizer": place.calibration[1]}
    return MarkedView(
        image=place.target,
        size=(film.rows, film.columns),
        patient_id=case.patient_id,
        study_id=case.case_id,
        laterality=laterality,
        view=view.lower(),
        masses=tuple(masses),
        unplaced=tuple(unplaced),
        attributes=attributes | ({"density": str(case.density)} if case.density else {}),
        section=section_of(case.patient_id),
    )


def _text(file: Path) -> str:
    return read_bytes(file).decode("latin-1")
