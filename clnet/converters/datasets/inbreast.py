"""INbreast: digital mammograms as DICOM, outlines as Apple property lists, and a table.

File names tell the views, ``<id>_<hash>_MG_<L|R>_<CC|ML>_ANON.dcm``: the hash is the patient, and ML means
MLO. The table adds density, BI-RADS and the month of the exam, since some patients have two. An image without
an outline file has no findings.
"""

import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import numpy as np

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView, ConversionError, Mass, Skipped
from clnet.converters.box_extraction import points_to_box
from clnet.converters.tables import read_table
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.views import Laterality

VIEWS = {"CC": "cc", "ML": "mlo", "MLO": "mlo"}
MIN_POINTS = 3  # of an outline; one or two points mark a location, not an extent

_IMAGE = re.compile(
    r"(?P<id>\d+)_(?P<patient>[0-9a-f]+)_MG_(?P<side>[LR])_(?P<view>CC|MLO|ML)_ANON\.dcm", re.IGNORECASE
)
_POINT = re.compile(r"\(\s*(-?[0-9.eE+-]+)\s*,\s*(-?[0-9.eE+-]+)\s*\)")


@dataclass(frozen=True)
class Outlines:
    """The content of an outline file.

    Attributes:
        masses: a box around each outlined mass.
        unlocated: one line for each mass without an outline, or for a file that cannot be read.
        others: the names of the other findings.
        warnings: what is unusual.
    """

    masses: tuple[Mass, ...] = ()
    unlocated: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read(workspace: Workspace, table: Path | None = None) -> AnnotatedDataset:
    """Read the views of INbreast with the boxes of their masses.

    Args:
        workspace: the data set and where to write.
        table: INbreast.csv or INbreast.xls; by default the one in the data set, the csv first.
    """
    table = table or _find_table(workspace.files(), workspace.source)
    files = workspace.files(without=[table])
    rows, skipped = _rows(table)
    workspace.skipped.extend(skipped)
    matches = {file: match for file in files if (match := _IMAGE.fullmatch(file.name))}
    outlined = [file for file in files if file.suffix.lower() == ".xml" and file.stem.isdigit()]
    images = workspace.first_by_key(matches, lambda file: matches[file]["id"])
    outlines = workspace.first_by_key(outlined, lambda file: file.stem)
    for file in files:
        if file not in matches and file not in outlined:
            workspace.skip(file, "not an INbreast file")
    headers = workspace.headers(list(images.values()))
    views = []
    for image_id, file in images.items():
        row, outline = rows.pop(image_id, None), outlines.pop(image_id, None)
        if file in headers:
            views.append(_view(headers[file], matches[file], row, outline, workspace))
    for image_id in sorted(rows):
        workspace.skip(f"{table.name}: {image_id}", "image not found")
    for image_id in sorted(outlines):
        workspace.skip(outlines[image_id], "outlines without an image")
    return AnnotatedDataset("INbreast", views)


def read_outlines(file: Path) -> Outlines:
    """Parse an outline file; a damaged one gives an `unlocated` line, since it may have had a mass."""
    try:
        content = plistlib.loads(file.read_bytes(), fmt=plistlib.FMT_XML)
        rois: Sequence[Mapping[str, Any]] = content["Images"][0].get("ROIs") or []
        names = [str(roi["Name"]).strip() for roi in rois]
        points = [[_point(text) for text in roi.get("Point_px") or []] for roi in rois]
        counts = [int(roi.get("NumberOfPoints", len(found))) for roi, found in zip(rois, points, strict=True)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ExpatError) as error:
        return Outlines(unlocated=(f"{file.name} cannot be read ({type(error).__name__})",))
    masses, unlocated, warnings = [], [], []
    for name, found, count in zip(names, points, counts, strict=True):
        if name.lower() != "mass":
            continue
        if len(found) < MIN_POINTS:
            unlocated.append(f"{file.name} has a mass of {len(found)} points, which is not an outline")
            continue
        if len(found) != count:
            warnings.append(f"{file.name}: a mass has {len(found)} points, but NumberOfPoints is {count}")
        masses.append(Mass(points_to_box(np.array(found))))
    others = tuple(name for name in names if name.lower() != "mass")
    return Outlines(tuple(masses), tuple(unlocated), others, tuple(warnings))


def _view(
    header: ImageHeader,
    match: re.Match[str],
    row: Mapping[str, str] | None,
    outline: Path | None,
    workspace: Workspace,
) -> AnnotatedView:
    name = workspace.name(header.file)
    found = read_outlines(outline) if outline else Outlines()
    unlocated = list(found.unlocated)
    workspace.warnings.extend(found.warnings)
    if outline:
        for kind in found.others:
            workspace.skip(outline, "not a mass", kind.lower())
    laterality: Laterality = "L" if match["side"].upper() == "L" else "R"
    view = VIEWS[match["view"].upper()]
    if row is None:
        workspace.warn(f"{name}: not in the table; used without date, density and BI-RADS")
        row = {}
    elif (row["laterality"], VIEWS.get(row["view"])) != (laterality, view):
        workspace.warn(f"{name}: {row['laterality']} {row['view']} in the table; the file name is followed")
    if row.get("mass") and not found.masses and not unlocated:
        unlocated.append("the table lists a mass, but there is no outline of it")
    attributes = {"density": row.get("acr", ""), "birads": row.get("birads", "")}
    patient = match["patient"].lower()
    return AnnotatedView(
        image=header.file,
        size=(header.rows, header.columns),
        patient_id=patient,
        study_id=f"{patient}_{row['date']}" if row.get("date") else patient,
        laterality=laterality,
        view=view,
        masses=found.masses,
        unlocated=tuple(unlocated),
        attributes={key: value for key, value in attributes.items() if value},
    )


def _find_table(files: Sequence[Path], source: Path) -> Path:
    for suffix in (".csv", ".xls"):
        for file in files:
            if file.name.lower() == f"inbreast{suffix}":
                return file
    raise ConversionError(f"{source}: has no INbreast.csv or INbreast.xls. Name the table with --table.")


def _rows(table: Path) -> tuple[dict[str, dict[str, str]], list[Skipped]]:
    """The rows of the table by image id, and what was skipped, such as the last row of the xls."""
    rows: dict[str, dict[str, str]] = {}
    skipped = []
    for number, cells in enumerate(read_table(table, ["file name", "laterality", "view"]), start=1):
        image = cells["file name"]
        if image in rows:
            skipped.append(Skipped(f"{table.name} row {number}", "duplicate row", f"File Name {image}"))
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
            skipped.append(Skipped(f"{table.name} row {number}", "row without an image", detail))
    return rows, skipped


def _point(text: str) -> tuple[float, float]:
    match = _POINT.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]), float(match[2])
