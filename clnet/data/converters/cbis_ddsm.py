"""CBIS-DDSM: scanned film as DICOM, a table of masses, and a mask for each mass.

The tables pair the views: each image has a PatientID and a study of its own. Files are found by the
SeriesInstanceUID in the table's path, since the folders of the two downloaders differ, then by the folder's
name. Mask and crop share a series in either order: what tells them apart is their content.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pydicom
from scipy import ndimage

from clnet.data.converters.cbis_table import Row, by_breast, links_by_number, read_tables
from clnet.data.converters.cbis_table import count as count
from clnet.data.converters.files import find_files
from clnet.data.converters.marked import Box, MarkedView, Mass, Skipped, Source
from clnet.data.converters.marked_boxes import box_of_mask, to_size
from clnet.data.converters.pairing import relative
from clnet.data.decode import decode
from clnet.data.header import dicom_header, image_format
from clnet.data.image_errors import ImageError, NotAnImageError, refusing_damage
from clnet.data.tags import text_of
from clnet.data.views import view_of

NAME = "CBIS-DDSM"


def add_options(parser: ArgumentParser) -> None:
    """Where the tables are, and whether to look at nothing else."""
    parser.add_argument(
        "--tables",
        type=Path,
        nargs="+",
        metavar="CSV",
        help="case description tables (default: all CSV files in SRC)",
    )
    parser.add_argument(
        "--table-only", action="store_true", help="count what the tables say, without any image"
    )


def count_tables(source: Path, options: Namespace) -> dict[str, int]:
    """What the tables say, for `--table-only`."""
    rows, _ = read_tables(options.tables or _tables(find_files(source, options)))
    return count(rows)


def read(source: Path, options: Namespace) -> Source:
    """The views of all masses in the tables that have an image, with the boxes of their masks."""
    files = find_files(source, options)
    rows, skipped = read_tables(options.tables or _tables(files))
    skipped += [Skipped(row.where, "a calcification, not a mass") for row in rows if not row.is_mass]
    masses = [row for row in rows if row.is_mass]
    warnings = _in_both_splits(rows)

    tables = {file.absolute() for file in options.tables or _tables(files)}
    facts = options.memory.map(
        series_facts, [file for file in files if file.absolute() not in tables], "Reading headers"
    )
    for file, refusal in facts.items():
        if isinstance(refusal, ImageError):
            reason = "not a DICOM image" if isinstance(refusal, NotAnImageError) else "unreadable image"
            detail = str(refusal).removeprefix(f"{file}: ")
            skipped.append(Skipped(relative(file, source), reason, detail))
    readable = {file: fact for file, fact in facts.items() if not isinstance(fact, ImageError)}
    index = _Index(readable, source)
    images = {row.where: index.image(row) for row in masses}
    candidates = {row.where: [f for f in index.masks(row) if f != images[row.where]] for row in masses}
    contents = options.memory.map(
        mask_facts,
        [file for row in masses if images[row.where] for file in candidates[row.where]],
        "Reading masks",
    )

    breasts = by_breast(masses)
    believed = {breast for breast, views in breasts.items() if links_by_number(views["cc"], views["mlo"])}
    marked: dict[Path, list[tuple[Row, Mass | None]]] = defaultdict(list)
    for row in masses:
        image = images[row.where]
        if image is None:
            skipped.append(Skipped(row.where, "image not found", str(row.image)))
            continue
        found = _Masks(candidates[row.where], contents, readable)
        size = readable[image]["rows"], readable[image]["columns"]
        box = found.box(size, row, warnings, skipped, source)
        marked[image].append((row, Mass(box, row.abnormality, row.descriptors) if box else None))

    views = []
    for image, pairs in marked.items():
        row = pairs[0][0]
        boxed = tuple(mass for _, mass in pairs if mass)
        if len(boxed) < len(pairs):
            detail = f"{len(pairs) - len(boxed)} of {len(pairs)}: used without it, it would teach a miss"
            skipped.append(Skipped(relative(image, source), "image with a mass of unknown place", detail))
            continue
        said = readable[image]["view"]
        if said and said.lower() != row.view:
            warnings.append(f"{row.where}: the table says {row.view.upper()}, the image {said}: table followed")
        views.append(
            MarkedView(
                image=image,
                size=(readable[image]["rows"], readable[image]["columns"]),
                patient_id=row.patient,
                study_id=row.patient,
                laterality=row.laterality,
                view=row.view,
                masses=boxed,
                attributes={"density": row.density} if row.density else {},
                section=row.section,
                links_annotated=(row.patient, row.laterality) in believed,
            )
        )
    used = {*marked, *(file for row in masses for file in candidates[row.where])}
    skipped += [
        Skipped(relative(file, source), "image of no mass in the tables") for file in readable if file not in used
    ]
    return Source(NAME, views, skipped, warnings)


def series_facts(file: Path) -> dict[str, Any]:
    """What is needed of a DICOM file to find it: series, description, view, size."""
    if image_format(file) != "DICOM":
        raise NotAnImageError(f"{file}: not a DICOM file")
    keywords = ["SeriesInstanceUID", "SeriesDescription", "PatientOrientation", "ViewPosition"]
    with refusing_damage(file):
        dataset = pydicom.dcmread(
            file, stop_before_pixels=True, specific_tags=[*keywords, "ViewCodeSequence", "Rows", "Columns"]
        )
        if not dataset.get("Rows") or not dataset.get("Columns"):
            raise NotAnImageError(f"{file}: Rows or Columns is missing: it holds no image, or is truncated")
        return {
            "series": text_of(dataset, "SeriesInstanceUID"),
            "description": text_of(dataset, "SeriesDescription"),
            "view": view_of(dataset)[0],
            "rows": int(dataset.Rows),
            "columns": int(dataset.Columns),
        }


def mask_facts(file: Path) -> dict[str, Any]:
    """Whether an image is binary, and the box around its bright pixels."""
    with refusing_damage(file):
        stored = decode(pydicom.dcmread(file), dicom_header(file))
    low, high = stored.min(), stored.max()
    mask = stored > (float(low) + float(high)) / 2
    box = box_of_mask(mask)
    pieces = 0
    if box:
        x_min, y_min, x_max, y_max = map(int, box)
        eight_neighbours = np.ones((3, 3), int)
        pieces = int(ndimage.label(mask[y_min:y_max, x_min:x_max], eight_neighbours)[1])
    binary = bool(low < high and ((stored == low) | (stored == high)).all())
    return {"binary": binary, "box": list(box) if box else None, "pieces": pieces}


class _Index:
    """The files of the data set by series, and by the names of the folders that they stand in."""

    def __init__(self, facts: Mapping[Path, Mapping[str, Any]], source: Path) -> None:
        self.facts = facts
        self.by_series: dict[str, list[Path]] = defaultdict(list)
        self.by_folder: dict[str, list[Path]] = defaultdict(list)
        for file, fact in facts.items():
            self.by_series[fact["series"]].append(file)
            for folder in relative(file, source).split("/")[:-1]:
                self.by_folder[folder].append(file)

    def image(self, row: Row) -> Path | None:
        """The full image of a row: the largest file of its series."""
        files = self._find(row.image)
        return max(files, key=lambda f: (self.facts[f]["rows"] * self.facts[f]["columns"], str(f)), default=None)

    def masks(self, row: Row) -> list[Path]:
        """Every file that may be the mask of a row: its crop is among them."""
        return sorted({*self._find(row.mask), *self._find(row.crop)})

    def _find(self, path: PurePosixPath) -> list[Path]:
        """By SeriesInstanceUID, which is the name of the file's folder in the table, then by folder."""
        if len(path.parts) < 2:
            return []
        return self.by_series.get(path.parts[-2]) or self.by_folder.get(path.parts[0]) or []


class _Masks:
    """The files among which the mask of one mass is."""

    def __init__(
        self, files: Sequence[Path], contents: Mapping[Path, Any], facts: Mapping[Path, Mapping[str, Any]]
    ) -> None:
        self.files = files
        self.contents = contents
        self.facts = facts

    def box(
        self, size: tuple[int, int], row: Row, warnings: list[str], skipped: list[Skipped], source: Path
    ) -> Box | None:
        """The box of the mass in an image of `size`; None, with a reason in `skipped`, if there is none."""
        readable = [file for file in self.files if not isinstance(self.contents[file], ImageError)]
        same_size = [file for file in readable if self._size(file) == size]
        binary = [file for file in readable if self.contents[file]["binary"]]
        described = [file for file in readable if "MASK" in self.facts[file]["description"]]
        chosen = next(
            filter(
                None,
                (
                    [file for file in binary if file in same_size and file in described],
                    [file for file in binary if file in same_size],
                    [file for file in described if file in same_size],
                    [file for file in binary if file in described],
                    binary,
                ),
            ),
            [],
        )
        boxes = {tuple(self.contents[file]["box"] or ()) for file in chosen}
        if len(boxes) > 1:
            skipped.append(Skipped(row.where, "several masks that differ", _names(chosen, source)))
            return None
        if not chosen or not boxes or boxes == {()}:
            seen = _names(self.files, source) or f"no file for {row.mask}"
            skipped.append(Skipped(row.where, "no mask", f"neither binary nor of the image's size: {seen}"))
            return None
        mask = chosen[0]
        if self.contents[mask]["pieces"] > 1:
            warnings.append(
                f"{relative(mask, source)}: the mask has {self.contents[mask]['pieces']} pieces; one box around all"
            )
        box: Box = tuple(self.contents[mask]["box"])
        if self._size(mask) == size:
            return box
        (rows, columns), (image_rows, image_columns) = self._size(mask), size
        shape = "" if abs(rows * image_columns / (columns * image_rows) - 1) < 0.01 else ", of another shape"
        warnings.append(
            f"{relative(mask, source)}: mask of {rows} × {columns}, image of {image_rows} × {image_columns}"
            f"{shape}: the box is stretched to the image"
        )
        return to_size(box, (rows, columns), size)

    def _size(self, file: Path) -> tuple[int, int]:
        return self.facts[file]["rows"], self.facts[file]["columns"]


def _tables(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.suffix.lower() == ".csv"]


def _names(files: Iterable[Path], source: Path) -> str:
    return ", ".join(relative(file, source) for file in files)


def _in_both_splits(rows: Iterable[Row]) -> list[str]:
    """Mass and calcification splits were drawn separately: who is trained on in one, and tested in the other?"""
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
