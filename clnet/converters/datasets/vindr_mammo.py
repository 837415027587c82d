"""VinDr-Mammo: DICOM files and a table of findings, with at least one row per image.

The table has view and laterality. Images are at ``images/<study_id>/<image_id>.dicom``; each study is taken
as one patient.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView, Box, ConversionError, Mass
from clnet.converters.tables import read_table
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.views import Laterality

TABLE = "finding_annotations.csv"
COLUMNS = (
    *("study_id", "image_id", "laterality", "view_position", "height", "width", "finding_categories"),
    *("xmin", "ymin", "xmax", "ymax", "split"),
)
CORNERS = ("xmin", "ymin", "xmax", "ymax")
SIDES: Mapping[str, Laterality] = {"L": "L", "R": "R"}
SECTIONS = {"training": "training", "test": "test", "": None}

Row = Mapping[str, str]


def read(workspace: Workspace, table: Path | None = None) -> AnnotatedDataset:
    """Read the views of VinDr-Mammo with the boxes of their masses.

    Args:
        workspace: the data set and where to write.
        table: finding_annotations.csv; by default the one in the data set.
    """
    table = table or next((file for file in workspace.files() if file.name == TABLE), None)
    if table is None:
        raise ConversionError(f"{workspace.source}: has no {TABLE}. Name the table with --table.")
    findings: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for number, row in enumerate(read_table(table, COLUMNS), start=1):
        where = f"{table.name} row {number}"
        if not row["image_id"] or not row["study_id"]:
            workspace.skip(where, "row without image_id or study_id")
        else:
            findings[row["image_id"]].append((where, row))
    files = workspace.files(without=[table])
    headers = workspace.headers(files)
    stems = {file.stem for file in files}
    images = workspace.first_by_key(headers, lambda file: file.stem)
    views = []
    for image, rows in sorted(findings.items()):
        if image in images:
            views += _view(headers[images.pop(image)], rows, workspace)
        elif image not in stems:
            for where, _ in rows:
                workspace.skip(where, "image not found", f"{image}.dicom")
    for file in images.values():
        workspace.skip(file, "image not in the table")
    return AnnotatedDataset("VinDr-Mammo", views)


def categories_of(text: str) -> list[str]:
    """The finding categories: in the table, a Python list in a string.

    Raises:
        ValueError: it is not a list of names.
    """
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"finding_categories is {text[:60]!r}; expected a list of names")
    return value


def _view(header: ImageHeader, rows: Sequence[tuple[str, Row]], workspace: Workspace) -> list[AnnotatedView]:
    """The view of an image; none if the table does not say which view it is."""
    where, first = rows[0]
    laterality, view = SIDES.get(first["laterality"].upper()), first["view_position"].lower()
    if laterality is None or view not in ("cc", "mlo") or first["split"].lower() not in SECTIONS:
        detail = _cells(first, ("laterality", "view_position", "split"))
        workspace.skip(where, "unknown breast, view or split", detail)
        return []
    masses, unlocated = [], []
    for where, row in rows:
        try:
            categories = categories_of(row["finding_categories"])
            if "mass" in (name.lower() for name in categories):
                birads = {"birads": _last_word(row.get("finding_birads", ""))}
                masses.append(Mass(_box(row, header), descriptors={k: v for k, v in birads.items() if v}))
                continue
        except ValueError as error:
            unlocated.append(f"{where}: {error}")
            workspace.skip(where, "damaged row", str(error))
            continue
        findings = [name for name in categories if name.lower() != "no finding"]
        if findings:
            workspace.skip(where, "not a mass", ", ".join(findings).lower())
    workspace.warn_of_other_view(where, laterality, view, header)
    attributes = {
        "density": _last_word(first.get("breast_density", "")),
        "birads": _last_word(first.get("breast_birads", "")),
    }
    return [
        AnnotatedView(
            image=header.file,
            size=(header.rows, header.columns),
            patient_id=first["study_id"],
            study_id=first["study_id"],
            laterality=laterality,
            view=view,
            masses=tuple(masses),
            unlocated=tuple(unlocated),
            attributes={key: value for key, value in attributes.items() if value},
            section=SECTIONS[first["split"].lower()],
        )
    ]


def _box(row: Row, header: ImageHeader) -> Box:
    try:
        x_min, y_min, x_max, y_max = (float(row[name]) for name in CORNERS)
        size = int(float(row["height"])), int(float(row["width"]))
    except (ValueError, OverflowError) as error:
        cells = _cells(row, (*CORNERS, "height", "width"))
        raise ValueError(f"a mass without a box: {cells}") from error
    if size != (header.rows, header.columns):
        raise ValueError(
            f"{size[0]} × {size[1]} in the table, but the image is {header.rows} × {header.columns}: the box "
            "may belong to another image"
        )
    if not (x_min < x_max and y_min < y_max):
        raise ValueError(f"an empty box: {_cells(row, CORNERS)}")
    return x_min, y_min, x_max, y_max


def _cells(row: Row, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {row[name]!r}" for name in names)


def _last_word(text: str) -> str:
    """The C of "DENSITY C", the 4 of "BI-RADS 4"."""
    return text.split()[-1] if text else ""
