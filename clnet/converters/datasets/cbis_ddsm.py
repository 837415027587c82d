"""CBIS-DDSM: scanned film as DICOM or JPEG, tables of abnormalities, and a mask for each mass.

The views are paired by the tables, since each image has its own PatientID and study. Files are found by the
SeriesInstanceUID in the table's path, then by folder name: the two downloaders lay folders out differently.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from clnet.converters.annotated import AnnotatedDataset, AnnotatedView, Mass
from clnet.converters.datasets.cbis_ddsm_jpeg import TAG_TABLE, read_tags, with_tags
from clnet.converters.datasets.cbis_ddsm_masks import MaskBox, find_box, mask_facts
from clnet.converters.datasets.cbis_ddsm_tables import (
    Row,
    count_rows,
    numbers_are_reliable,
    read_tables,
    rows_by_breast,
)
from clnet.converters.workspace import Workspace
from clnet.data.header import ImageHeader
from clnet.data.study import files_in


def count_tables(source: Path, tables: Sequence[Path] | None = None) -> dict[str, int]:
    """Count what the tables say; no image is needed."""
    rows, _ = read_tables(tables or _tables_in(sorted(files_in(source))))
    return count_rows(rows)


def read(workspace: Workspace, tables: Sequence[Path] | None = None) -> AnnotatedDataset:
    """Read the views of all masses in the tables, with the boxes of their masks.

    Args:
        workspace: the data set and where to write.
        tables: the case description tables; by default, all CSV files of the data set.
    """
    files = workspace.files()
    tags = read_tags(files)
    tables = tables or _tables_in(files)
    rows, skipped = read_tables(tables)
    workspace.skipped.extend(skipped)
    masses = []
    for row in rows:
        if row.is_mass:
            masses.append(row)
        else:
            workspace.skip(row.where, "not a mass", "calcification")
    _warn_of_mixed_splits(rows, workspace)

    images_and_masks = [file for file in workspace.files(without=tables) if file.name.lower() != TAG_TABLE]
    headers = {
        file: header if header.modality else with_tags(header, tags)
        for file, header in workspace.headers(images_and_masks, ("DICOM", "JPEG")).items()
    }
    index = _FileIndex(headers, workspace)
    images = {row: index.image(row) for row in masses}
    candidates = {row: index.masks(row) for row in masses}
    wanted = [file for row in masses if images[row] for file in candidates[row]]
    contents = workspace.cache.map(mask_facts, wanted, "Reading masks")

    found: dict[Path, list[tuple[Row, MaskBox]]] = defaultdict(list)
    for row in masses:
        image = images[row]
        if image is None:
            workspace.skip(row.where, "image not found", str(row.image))
            continue
        size = headers[image].rows, headers[image].columns
        mask = find_box(candidates[row], contents, headers, size)
        found[image].append((row, mask))
        for warning in mask.warnings:
            workspace.warn(f"{row.where}: {warning}")
        if mask.box is None:
            workspace.skip(row.where, "mass without a usable mask", mask.problem)
    reliable = {
        breast
        for breast, views in rows_by_breast(masses).items()
        if numbers_are_reliable(views["cc"], views["mlo"])
    }
    views = [_view(headers[image], marks, reliable, workspace) for image, marks in found.items()]
    used = {*found, *(file for files in candidates.values() for file in files)}
    for file in headers:
        if file not in used:
            workspace.skip(file, "image without a mass in the tables")
    return AnnotatedDataset("CBIS-DDSM", views)


def _view(
    image: ImageHeader,
    marks: Sequence[tuple[Row, MaskBox]],
    reliable: set[tuple[str, str]],
    workspace: Workspace,
) -> AnnotatedView:
    row = marks[0][0]
    workspace.warn_of_other_view(row.where, row.laterality, row.view, image)
    return AnnotatedView(
        image=image.file,
        size=(image.rows, image.columns),
        patient_id=row.patient,
        study_id=row.patient,
        laterality=row.laterality,
        view=row.view,
        masses=tuple(Mass(m.box, row.abnormality, row.descriptors) for row, m in marks if m.box),
        unlocated=tuple(f"{row.where}: {mask.problem}" for row, mask in marks if mask.box is None),
        attributes={"density": row.density} if row.density else {},
        section=row.section,
        links_annotated=(row.patient, row.laterality) in reliable,
    )


class _FileIndex:
    """The files of the data set by series, and by the names of the folders they are in."""

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
        """Every file that may be the mask of a row, including its crop."""
        return sorted({*self._find(row.mask), *self._find(row.crop)} - {self.image(row)})

    def _find(self, path: PurePosixPath) -> list[Path]:
        """By SeriesInstanceUID, the name of the file's folder in the table, then by its first folder."""
        if len(path.parts) < 2:
            return []
        return self.by_series.get(path.parts[-2]) or self.by_folder.get(path.parts[0]) or []

    def _area(self, file: Path) -> tuple[int, str]:
        return self.headers[file].rows * self.headers[file].columns, str(file)


def _tables_in(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.suffix.lower() == ".csv" and file.name.lower() != TAG_TABLE]


def _warn_of_mixed_splits(rows: Iterable[Row], workspace: Workspace) -> None:
    """Mass and calcification tables were split separately: name patients who are in training in one only."""
    sections: dict[str, dict[bool, set[str]]] = defaultdict(lambda: {True: set(), False: set()})
    for row in rows:
        if row.section:
            sections[row.patient][row.is_mass].add(row.section)
    for patient, found in sorted(sections.items()):
        if found[True] and found[False] - found[True]:
            of_masses, of_calcifications = (" and ".join(sorted(found[is_mass])) for is_mass in (True, False))
            workspace.warn(
                f"patient {patient}: in {of_masses} of the mass tables, in {of_calcifications} of the "
                "calcification tables; only images of masses are used"
            )
