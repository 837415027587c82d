"""INbreast: digital mammograms as DICOM, outlines as Apple property lists, and a table.

Views are told by file names, ``<id>_<hash>_MG_<L|R>_<CC|ML>_ANON.dcm``: the hash is the patient, and ML means
MLO there. The table adds the month of the exam, since some patients have two, density and BI-RADS. An image
without an outline file has no findings.
"""

import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import numpy as np

from clnet.converters.marked import ConversionError, MarkedView, Mass, Skipped, Source
from clnet.converters.marked_boxes import box_of_points
from clnet.converters.tables import read_table
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.views import Laterality

NAME = "INbreast"
VIEWS = {"CC": "cc", "ML": "mlo", "MLO": "mlo"}
LEAST_POINTS = 3  # of an outline; one point or two mark a place, not an extent

_IMAGE = re.compile(
    r"(?P<id>\d+)_(?P<patient>[0-9a-f]+)_MG_(?P<side>[LR])_(?P<view>CC|MLO|ML)_ANON\.dcm", re.IGNORECASE
)
_POINTS = 3  # of an outline; one point or two mark a place, not an extent

_IMAGE = re.compile(
    r"(?P<id>\d+)_(?P<patient>[0-9a-f]+)_MG_(?P<side>[LR])_(?P<view>CC|MLO|ML)_ANON\.dcm", re.I
)
_POINT = re.compile(r"\(\s*(-?[0-9.eE+-]+)\s*,\s*(-?[0-9.eE+-]+)\s*\)")


@dataclass(frozen=True)
class Outlines:
    """What an outline file says.

    Attributes:
        masses: a box around each outlined mass.
        unplaced: a line for each mass that has no outline, or for a file that cannot be read.
        others: the names of what else was marked.
        warnings: what is unusual.
    """

    masses: tuple[Mass, ...] = ()
    unplaced: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read(workspace: Workspace, table: Path | None = None) -> Source:
    """The views of INbreast with the boxes of their masses.

    Args:
        workspace: where the data set is.
        table: INbreast.csv or INbreast.xls; found in the data set if not given, the csv first.
    """
    table = table or _table(workspace.files(), workspace.source)
    files = workspace.files(without=[table])
    rows, skipped = _rows(table)
    matches = {file: match for file in files if (match := _IMAGE.fullmatch(file.name))}
    drawn = [file for file in files if file.suffix.lower() == ".xml" and file.stem.isdigit()]
    images = workspace.first_of(matches, lambda file: matches[file]["id"], skipped)
    outlines = workspace.first_of(drawn, lambda file: file.stem, skipped)
    skipped += [
        Skipped(workspace.name(file), "neither an image nor outlines of INbreast")
        for file in files
        if file not in matches and file not in drawn
    ]
    headers, refused = workspace.headers(list(images.values()))
    skipped += refused
    warnings: list[str] = []
    views = []
    for number, file in images.items():
        row = rows.pop(number, None)
        outline = outlines.pop(number, None)
        if file in headers:
            views.append(_view(headers[file], matches[file], row, outline, workspace, skipped, warnings))
    skipped += [Skipped(f"{table.name}: {number}", "image not found") for number in sorted(rows)]
    skipped += [Skipped(workspace.name(outlines[key]), "outlines of no image") for key in sorted(outlines)]
    return Source(NAME, views, skipped, warnings)


def read_outlines(file: Path) -> Outlines:
    """Take an outline file apart; damage becomes an `unplaced` line, for there may have been a mass."""
    try:
        content = plistlib.loads(file.read_bytes(), fmt=plistlib.FMT_XML)
        rois: Sequence[Mapping[str, Any]] = content["Images"][0].get("ROIs") or []
        names = [str(roi["Name"]).strip() for roi in rois]
        points = [[_point(text) for text in roi.get("Point_px") or []] for roi in rois]
        counts = [int(roi.get("NumberOfPoints", len(found))) for roi, found in zip(rois, points, strict=True)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ExpatError) as error:
        return Outlines(unplaced=(f"{file.name} cannot be read ({type(error).__name__})",))
    masses, unplaced, warnings = [], [], []
    for name, found, count in zip(names, points, counts, strict=True):
        if name.lower() != "mass":
            continue
        if len(found) < LEAST_POINTS:
            unplaced.append(f"{file.name} has a mass of {len(found)} points: no outline")
            continue
        if len(found) != count:
            warnings.append(f"{file.name}: a mass has {len(found)} points, but NumberOfPoints is {count}")
        masses.append(Mass(box_of_points(np.array(found))))
    others = tuple(name for name in names if name.lower() != "mass")
    return Outlines(tuple(masses), tuple(unplaced), others, tuple(warnings))


def _view(
    header: ImageHeader,
    match: re.Match[str],
    row: Mapping[str, str] | None,
    outline: Path | None,
    workspace: Workspace,
    skipped: list[Skipped],
    warnings: list[str],
) -> MarkedView:
    name = workspace.name(header.file)
    found = read_outlines(outline) if outline else Outlines()
    unplaced = list(found.unplaced)
    warnings += found.warnings
    if outline:
        where = workspace.name(outline)
        skipped += [Skipped(where, "not a mass", kind.lower()) for kind in found.others]
    laterality: Laterality = "L" if match["side"].upper() == "L" else "R"
    view = VIEWS[match["view"].upper()]
    if row is None:
        warnings.append(f"{name}: not in the table; used without date, density and BI-RADS")
        row = {}
    elif (row["laterality"], VIEWS.get(row["view"])) != (laterality, view):
        warnings.append(
            f"{name}: the table says {row['laterality']} {row['view']}; the file's name is followed"
        )
    if row.get("mass") and not found.masses and not unplaced:
        unplaced.append("the table says that there is a mass, but no outline does")
    attributes = {"density": row.get("acr", ""), "birads": row.get("birads", "")}
    patient = match["patient"].lower()
    return MarkedView(
        image=header.file,
        size=(header.rows, header.columns),
        patient_id=patient,
        study_id=f"{patient}_{row['date']}" if row.get("date") else patient,
        laterality=laterality,
        view=view,
        masses=found.masses,
        unplaced=tuple(unplaced),
        attributes={key: value for key, value in attributes.items() if value},
    )


def _table(files: Sequence[Path], source: Path) -> Path:
    for suffix in (".csv", ".xls"):
        for file in files:
            if file.name.lower() == f"inbreast{suffix}":
                return file
    raise ConversionError(f"{source}: no INbreast.csv or INbreast.xls in it. Name the table by --table.")


def _rows(table: Path) -> tuple[dict[str, dict[str, str]], list[Skipped]]:
    """The rows of the table by image id, and those that are none: the xls has a trailer."""
    rows: dict[str, dict[str, str]] = {}
    skipped = []
    for number, cells in enumerate(read_table(table, ["file name", "laterality", "view"]), start=1):
        image = cells["file name"]
        if image in rows:
            skipped.append(Skipped(f"{table.name} row {number}", "row stands twice", f"File Name {image}"))
        elif image.isdigit():
            rows[image] = {
                "laterality": cells["laterality"].upper(),
                "view": cells["view"].upper(),
                "date": cells.get("acquisition date", ""),
                "acr": cells.get("acr", ""),
                "birads": cells.get("bi-rads", ""),
                "mass": cells.get("mass", ""),
            }
        else:
            detail = f"File Name is {image!r}"
            skipped.append(Skipped(f"{table.name} row {number}", "row of no image", detail))
    return rows, skipped


def _point(text: str) -> tuple[float, float]:
    match = _POINT.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]), float(match[2])
