"""VinDr-Mammo: DICOM files and one table of findings, with a row for each finding or for none.

The table says view and side. Images stand at ``images/<study_id>/<image_id>.dicom``; a study is a patient.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clnet.converters.marked import Box, ConversionError, MarkedView, Mass, Skipped, Source
from clnet.converters.tables import read_table
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.views import Laterality

NAME = "VinDr-Mammo"
TABLE = "finding_annotations.csv"
COLUMNS = (
    *("study_id", "image_id", "laterality", "view_position", "height", "width", "finding_categories"),
    *("xmin", "ymin", "xmax", "ymax", "split"),
)
CORNERS = ("xmin", "ymin", "xmax", "ymax")
SIDES: Mapping[str, Laterality] = {"L": "L", "R": "R"}
SECTIONS = {"training": "training", "test": "test", "": None}

Row = Mapping[str, str]


def read(workspace: Workspace, table: Path | None = None) -> Source:
    """The views of VinDr-Mammo with the boxes of their masses.

    Args:
        workspace: where the data set is.
        table: finding_annotations.csv; found in the data set if not given.
    """
    table = table or next((file for file in workspace.files() if file.name == TABLE), None)
    if table is None:
        raise ConversionError(f"{workspace.source}: no {TABLE} in it. Name the table by --table.")
    findings: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    skipped: list[Skipped] = []
    for number, row in enumerate(read_table(table, COLUMNS), start=1):
        where = f"{table.name} row {number}"
        if not row["image_id"] or not row["study_id"]:
            skipped.append(Skipped(where, "row without an image_id or a study_id"))
        else:
            findings[row["image_id"]].append((where, row))
    files = workspace.files(without=[table])
    headers, refused = workspace.headers(files)
    skipped += refused
    there = {file.stem for file in files}
    images = workspace.first_of(headers, lambda file: file.stem, skipped)
    warnings: list[str] = []
    views = []
    for image, rows in sorted(findings.items()):
        if image in images:
            views += _view(headers[images.pop(image)], rows, skipped, warnings)
        elif image not in there:
            skipped += [Skipped(where, "image not found", f"{image}.dicom") for where, _ in rows]
    skipped += [Skipped(workspace.name(file), "image that is not in the table") for file in images.values()]
    return Source(NAME, views, skipped, warnings)


def categories_of(text: str) -> list[str]:
    """The finding categories, which the table has as a Python list in a string.

    Raises:
        ValueError: it is something else.
    """
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"finding_categories is {text[:60]!r}; a list of names is expected") from error
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"finding_categories is {text[:60]!r}; a list of names is expected")
    return value


def _view(
    header: ImageHeader, rows: Sequence[tuple[str, Row]], skipped: list[Skipped], warnings: list[str]
) -> list[MarkedView]:
    """The view of an image; none if the table does not say which one it is."""
    where, first = rows[0]
    laterality, view = SIDES.get(first["laterality"].upper()), first["view_position"].lower()
    if laterality is None or view not in ("cc", "mlo") or first["split"].lower() not in SECTIONS:
        said = ", ".join(f"{key} {first[key]!r}" for key in ("laterality", "view_position", "split"))
        skipped.append(Skipped(where, "unknown breast, view or split", said))
        return []
    masses, unplaced = [], []
    for where, row in rows:
        try:
            categories = categories_of(row["finding_categories"])
            if "mass" in (name.lower() for name in categories):
                birads = {"birads": _last_word(row.get("finding_birads", ""))}
                masses.append(Mass(_box(row, header), descriptors={k: v for k, v in birads.items() if v}))
                continue
        except ValueError as error:
            unplaced.append(f"{where}: {error}")
            skipped.append(Skipped(where, "damaged row", str(error)))
            continue
        findings = [name for name in categories if name.lower() != "no finding"]
        if findings:
            skipped.append(Skipped(where, "not a mass", ", ".join(findings).lower()))
    if header.view and header.view.lower() != view:
        warnings.append(
            f"{where}: the table says {view.upper()}, the image {header.view}; the table is followed"
        )
    attributes = {
        "density": _last_word(first.get("breast_density", "")),
        "birads": _last_word(first.get("breast_birads", "")),
    }
    return [
        MarkedView(
            image=header.file,
            size=(header.rows, header.columns),
            patient_id=first["study_id"],
            study_id=first["study_id"],
            laterality=laterality,
            view=view,
            masses=tuple(masses),
            unplaced=tuple(unplaced),
            attributes={key: value for key, value in attributes.items() if value},
            section=SECTIONS[first["split"].lower()],
        )
    ]


def _box(row: Row, header: ImageHeader) -> Box:
    try:
        x_min, y_min, x_max, y_max = (float(row[name]) for name in CORNERS)
        size = int(float(row["height"])), int(float(row["width"]))
    except (ValueError, OverflowError) as error:
        said = _said(row, (*CORNERS, "height", "width"))
        raise ValueError(f"a mass without a box: {said}") from error
    if size != (header.rows, header.columns):
        raise ValueError(
            f"the table says {size[0]} × {size[1]}, the image is {header.rows} × {header.columns}: the box "
            "may be of another image"
        )
    if not (x_min < x_max and y_min < y_max):
        raise ValueError(f"an empty box: {_said(row, CORNERS)}")
    return x_min, y_min, x_max, y_max


def _said(row: Row, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {row[name]!r}" for name in names)


def _last_word(text: str) -> str:
    """The C of "DENSITY C", the 4 of "BI-RADS 4"."""
    return text.split()[-1] if text else ""
