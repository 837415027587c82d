"""CBIS-DDSM: scanned film as DICOM, a table of masses, and a mask for each mass.

The tables pair the views: each image has a PatientID and a study of its own. Files are found by the
SeriesInstanceUID in the table's path, since the folders of the two downloaders differ, then by the folder's
name.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from clnet.converters.cbis_masks import MaskBox, find_box, mask_facts
from clnet.converters.cbis_table import Row, by_breast, count, links_by_number, read_tables
from clnet.converters.marked import MarkedView, Mass, Skipped, Source
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.study import files_in

NAME = "CBIS-DDSM"


def count_tables(source: Path, tables: Sequence[Path] = ()) -> dict[str, int]:
    """What the tables say, without a look at any image."""
    rows, _ = read_tables(tables or _tables(sorted(files_in(source))))
    return count(rows)


def read(workspace: Workspace, tables: Sequence[Path] = ()) -> Source:
    """The views of all masses in the tables, with the boxes of their masks.

    Args:
        workspace: where the data set is.
        tables: the case description tables; all CSV files of the data set, if not given.
    """
    tables = tables or _tables(workspace.files())
    rows, skipped = read_tables(tables)
    skipped += [Skipped(row.where, "a calcification, not a mass") for row in rows if not row.is_mass]
    masses = [row for row in rows if row.is_mass]
    warnings = _in_both_splits(rows)
    headers, refused = workspace.headers(workspace.files(without=tables))
    skipped += refused

    index = _Index(headers, workspace)
    images = {row: index.image(row) for row in masses}
    candidates = {row: index.masks(row) for row in masses}
    wanted = [file for row in masses if images[row] for file in candidates[row]]
    contents = workspace.memory.map(mask_facts, wanted, "Reading masks")

    found: dict[Path, list[tuple[Row, MaskBox]]] = defaultdict(list)
    for row in masses:
        image = images[row]
        if image is None:
            skipped.append(Skipped(row.where, "image not found", str(row.image)))
            continue
        size = headers[image].rows, headers[image].columns
        mask = find_box(candidates[row], contents, headers, size)
        found[image].append((row, mask))
        warnings += [f"{row.where}: {warning}" for warning in mask.warnings]
        if mask.box is None:
            skipped.append(Skipped(row.where, "mass without a usable mask", mask.problem))
    breasts = by_breast(masses)
    believed = {breast for breast, views in breasts.items() if links_by_number(views["cc"], views["mlo"])}
    views = [_view(headers[image], marks, believed, warnings) for image, marks in found.items()]
    used = {*found, *(file for files in candidates.values() for file in files)}
    others = [file for file in headers if file not in used]
    skipped += [Skipped(workspace.name(file), "image of no mass in the tables") for file in others]
    return Source(NAME, views, skipped, warnings)


def _view(
    image: ImageHeader,
    marks: Sequence[tuple[Row, MaskBox]],
    believed: set[tuple[str, str]],
    warnings: list[str],
) -> MarkedView:
    row = marks[0][0]
    if image.view and image.view.lower() != row.view:
        warnings.append(
            f"{row.where}: the table says {row.view.upper()}, the image {image.view}; the table is followed"
        )
    return MarkedView(
        image=image.file,
        size=(image.rows, image.columns),
        patient_id=row.patient,
        study_id=row.patient,
        laterality=row.laterality,
        view=row.view,
        masses=tuple(Mass(m.box, row.abnormality, row.descriptors) for row, m in marks if m.box),
        unplaced=tuple(f"{row.where}: {mask.problem}" for row, mask in marks if mask.box is None),
        attributes={"density": row.density} if row.density else {},
        section=row.section,
        links_annotated=(row.patient, row.laterality) in believed,
    )


class _Index:
    """The files of the data set by series, and by the names of the folders that they stand in."""

    def __init__(self, headers: Mapping[Path, ImageHeader], workspace: Workspace) -> None:
        self.headers = headers
        self.by_series: dict[str, list[Path]] = defaultdict(list)
        self.by_folder: dict[str, list[Path]] = defaultdict(list)
        for file, header in headers.items():
            self.by_series[header.series_uid].append(file)
            for folder in workspace.name(file).split("/")[:-1]:
                self.by_folder[folder].append(file)

    def image(self, row: Row) -> Path | None:
        """The full image of a row: the largest file of its series."""
        return max(self._find(row.image), key=self._area, default=None)

    def masks(self, row: Row) -> list[Path]:
        """Every file that may be the mask of a row: its crop is among them, its image is not."""
        return sorted({*self._find(row.mask), *self._find(row.crop)} - {self.image(row)})

    def _find(self, path: PurePosixPath) -> list[Path]:
        """By SeriesInstanceUID, which is the name of the file's folder in the table, then by folder."""
        if len(path.parts) < 2:
            return []
        return self.by_series.get(path.parts[-2]) or self.by_folder.get(path.parts[0]) or []

    def _area(self, file: Path) -> tuple[int, str]:
        return self.headers[file].rows * self.headers[file].columns, str(file)


def _tables(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.suffix.lower() == ".csv"]


def _in_both_splits(rows: Iterable[Row]) -> list[str]:
    """Mass and calcification splits were drawn separately: who is in training here, and in test there?"""
    sections: dict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for row in rows:
        if row.section:
            sections[row.patient][row.is_mass].add(row.section)
    return [
        f"patient {patient}: in {_and(found[True])} of the mass tables, in {_and(found[False])} of the "
        "calcification tables; only images of masses are used"
        for patient, found in sorted(sections.items())
        if found[True] and found[False] - found[True]
    ]


def _and(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))
