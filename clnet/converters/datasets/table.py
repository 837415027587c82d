"""Images of any format and a table of boxes: the form in which most annotations are exchanged.

The table says which patient, breast and view an image shows; nothing is taken from file names. See
`table_rows` for its columns.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView, Mass
from clnet.converters.datasets.table_rows import (
    CellError,
    Cells,
    Columns,
    ImageFacts,
    attributes_of,
    box_of,
    image_facts,
    read_rows,
)
from clnet.converters.links import ids_are_links
from clnet.converters.workspace import Workspace
from clnet.data.header import FORMATS, ImageHeader
from clnet.data.pair import VIEW_NAMES

Rows = list[tuple[str, Cells]]  # each with its place, such as "boxes.csv row 3"


def read(
    workspace: Workspace,
    boxes: Path,
    patient: str | None = None,
    laterality: str | None = None,
    view: str | None = None,
    image: str | None = None,
    box: Sequence[str] | None = None,
    study: str | None = None,
    split: str | None = None,
    lesion: str | None = None,
    pixel_size: Sequence[str] | None = None,
    original_size: Sequence[str] | None = None,
    lesion_attributes: Sequence[str] | None = None,
    breast_attributes: Sequence[str] | None = None,
) -> AnnotatedDataset:
    """Read the images that a table names, with its boxes.

    Args:
        workspace: the images and where to write.
        boxes: the table.
        patient: name of this column, and so on; None for those of `table_rows.DEFAULT_NAMES`.
        laterality: "L", "R", "left" or "right".
        view: "CC" or "MLO".
        image: path of the image, or its name.
        box: the four columns of its corners.
        study: which of a patient's studies.
        split: "training", "validation" or "test".
        lesion: id of the lesion, the same in both views.
        pixel_size: two columns, height and width of a pixel.
        original_size: two columns, rows and columns of the image before it was reduced.
        lesion_attributes: columns that describe a lesion, as ``COLUMN`` or ``NAME=COLUMN``.
        breast_attributes: columns that describe a breast.
    """
    columns, table = read_rows(
        boxes,
        {
            "patient": patient,
            "laterality": laterality,
            "view": view,
            "image": image,
            "box": box,
            "study": study,
            "split": split,
            "lesion": lesion,
            "pixel_size": pixel_size,
            "original_size": original_size,
            "lesion_attributes": lesion_attributes,
            "breast_attributes": breast_attributes,
        },
    )
    files = workspace.files(without=[boxes])
    headers = workspace.headers(files, FORMATS)
    index = _FileIndex(files, [workspace.source, boxes.parent])
    rows_of: dict[Path, Rows] = defaultdict(list)
    for number, cells in enumerate(table, start=1):
        where = f"{boxes.name} row {number}"
        file = index.find(cells[columns.image])
        if file is None:
            workspace.skip(where, "image not found", f"column {columns.image!r} is {cells[columns.image]!r}")
        else:
            rows_of[file].append((where, cells))
    views = [
        annotated
        for file, rows in rows_of.items()
        if file in headers and (annotated := _view(headers[file], rows, columns, workspace))
    ]
    for file in headers:
        if file not in rows_of:
            workspace.skip(file, "image not in the table")
    return AnnotatedDataset(workspace.source.resolve().name, views)


class _FileIndex:
    """The files of the data set as a table may name them: relative to some folders, or by a unique name."""

    def __init__(self, files: Sequence[Path], folders: Sequence[Path]) -> None:
        self.folders = folders
        self.by_path = {file.resolve(): file for file in files}
        names = Counter(file.name for file in files)
        self.by_name = {file.name: file for file in files if names[file.name] == 1}

    def find(self, name: str) -> Path | None:
        path = Path(name.replace("\\", "/"))
        places = ((folder / path).resolve() for folder in self.folders)
        found = (self.by_path[place] for place in places if place in self.by_path)
        return next(found, None) or self.by_name.get(path.name)


def _view(header: ImageHeader, rows: Rows, columns: Columns, workspace: Workspace) -> AnnotatedView | None:
    """The view that the rows of an image describe; None if they do not say which, or disagree."""
    facts: dict[str, ImageFacts] = {}
    masses: list[Mass] = []
    damaged: list[str] = []
    attributes: dict[str, list[str]] = defaultdict(list)
    seen: dict[tuple[object, ...], str] = {}
    for where, cells in rows:
        try:
            facts[where] = image_facts(cells, columns)
            box = box_of(cells, columns)
        except CellError as error:
            damaged.append(f"{where}: {error}")
            workspace.skip(where, "damaged row", str(error))
            continue
        lesion_id = cells.get(columns.lesion) or None
        first = seen.setdefault((box, lesion_id), where)
        if first != where:
            workspace.skip(where, "duplicate row", f"same as {first}")
            continue
        for name, value in attributes_of(cells, columns.breast_attributes).items():
            if value not in attributes[name]:
                attributes[name].append(value)
        if box:
            masses.append(Mass(box, lesion_id, attributes_of(cells, columns.lesion_attributes)))
    if not _is_one_view(facts, workspace):
        return None
    where, fact = next(iter(facts.items()))
    workspace.warn_of_other_view(where, fact.laterality, fact.view, header)
    return AnnotatedView(
        image=header.file,
        size=(header.rows, header.columns),
        patient_id=fact.patient,
        study_id=fact.study,
        laterality=fact.laterality,
        view=fact.view,
        masses=tuple(masses),
        unlocated=tuple(damaged),
        attributes={name: " / ".join(values) for name, values in attributes.items()},
        section=fact.section,
        links_annotated=ids_are_links(masses, workspace.name(header.file), workspace),
        pixel_size=_pixel_size(fact, header),
    )


def _is_one_view(facts: Mapping[str, ImageFacts], workspace: Workspace) -> bool:
    """Whether the rows of an image agree, and on a CC or an MLO."""
    if not facts:
        return False
    first, fact = next(iter(facts.items()))
    for where, other in facts.items():
        if other != fact:
            detail = f"{first} and {where}: {fact.differences(other)}"
            workspace.skip(where, "rows of one image disagree", detail)
            return False
    if fact.view not in VIEW_NAMES:
        for where in facts:
            workspace.skip(where, "view other than CC and MLO", fact.view.upper())
        return False
    return True


def _pixel_size(fact: ImageFacts, header: ImageHeader) -> tuple[float, float] | None:
    """As in the table; for a reduced copy, in pixels of the original image."""
    if fact.pixel_size or not fact.original_size:
        return fact.pixel_size
    height, width = fact.original_size
    return height / header.rows, width / header.columns
