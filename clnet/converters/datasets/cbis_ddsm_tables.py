"""The case description tables of CBIS-DDSM, in both of their schemas.

A row is an abnormality in a view. The older schema has `side`, `view`, `abn_num` and `od_img_path`, the
current one `left or right breast`, `image view`, `abnormality id` and `image file path`. Mass tables have
`breast_density`, calcification tables `breast density`. The last path of a row may end with a line break
inside its quotes, so a row can span several lines.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from clnet.converters.annotated import ConversionError, Mass, Skipped
from clnet.converters.links import certain_links
from clnet.converters.tables import read_table
from clnet.data.pair import LINK_SOURCES
from clnet.data.views import Laterality

# The names of each column in the schemas, in lower case and with spaces for underscores.
COLUMNS = {
    "patient": ("patient id",),
    "side": ("left or right breast", "side"),
    "view": ("image view", "view"),
    "abnormality": ("abnormality id", "abn num"),
    "kind": ("abnormality type", "abn type"),
    "density": ("breast density",),
    "shape": ("mass shape",),
    "margins": ("mass margins",),
    "assessment": ("assessment",),
    "pathology": ("pathology",),
    "subtlety": ("subtlety",),
    "image": ("image file path", "od img path"),
    "crop": ("cropped image file path", "od crop path"),
    "mask": ("roi mask file path", "mask path"),
}
NEEDED = ("side", "view", "abnormality", "image", "mask")
DESCRIPTORS = ("shape", "margins", "assessment", "pathology", "subtlety")
SIDES: dict[str, Laterality] = {"LEFT": "L", "RIGHT": "R", "L": "L", "R": "R"}
# What the rows of one lesion must agree on for their number to be reliable.
MUST_AGREE = ("shape", "margins", "pathology")


@dataclass(frozen=True, eq=False)
class Row:
    """An abnormality in a view.

    Attributes:
        where: table and row, for messages.
        patient: such as "P_00173".
        laterality, view: "L" or "R", "cc" or "mlo".
        abnormality: its number; the same number in the other view need not be the same lesion.
        is_mass: whether it is a mass rather than a calcification.
        section: "training", "test" or None.
        density: of the breast, "" if unknown.
        descriptors: shape, margins, assessment, pathology, subtlety.
        image, crop, mask: paths as in the table, in the layout of the first downloader.
    """

    where: str
    patient: str
    laterality: Laterality
    view: str
    abnormality: str
    is_mass: bool
    section: str | None
    density: str
    descriptors: dict[str, str]
    image: PurePosixPath
    crop: PurePosixPath
    mask: PurePosixPath


def read_tables(files: Iterable[Path]) -> tuple[list[Row], list[Skipped]]:
    """The rows of all case description tables among some CSV files, and what was skipped."""
    rows: list[Row] = []
    skipped: list[Skipped] = []
    tables = 0
    for file in files:
        if not file.is_file():
            raise ConversionError(f"{file}: no such table. Check the path.")
        try:
            found = read_table(file, ())
        except ConversionError as error:
            skipped.append(Skipped(file.name, "unreadable table", str(error)))
            continue
        names = {name.replace("_", " "): name for name in (found[0] if found else ())}
        columns = {
            key: next((names[alias] for alias in aliases if alias in names), "")
            for key, aliases in COLUMNS.items()
        }
        if not all(columns[key] for key in NEEDED):
            skipped.append(Skipped(file.name, "not a CBIS-DDSM table"))
            continue
        tables += 1
        for number, values in enumerate(found, start=1):
            where = f"{file.name} row {number}"
            cells = {key: values.get(name, "") for key, name in columns.items()}
            row = _row(cells, file.name, where)
            if row:
                rows.append(row)
            else:
                detail = f"side {cells['side']!r}, view {cells['view']!r}"
                skipped.append(Skipped(where, "unknown patient, breast or view", detail))
    if not tables:
        raise ConversionError(
            "no CBIS-DDSM table found, such as mass_case_description_train_set.csv: put the tables into the "
            "folder, or name them with --tables"
        )
    return _without_duplicates(rows, skipped), skipped


def numbers_are_reliable(cc: Sequence[Row], mlo: Sequence[Row]) -> bool:
    """Whether equal abnormality numbers mean equal lesions in a breast: counts and descriptors agree."""
    if len(cc) == len(mlo) == 1:
        return False  # one mass in each view needs no numbers, and they sometimes differ there
    by_number = [{row.abnormality: row for row in rows} for rows in (cc, mlo)]
    return (
        len(cc) == len(by_number[0]) == len(mlo) == len(by_number[1])
        and set(by_number[0]) == set(by_number[1])
        and all(
            row.descriptors.get(name) == by_number[1][number].descriptors.get(name)
            for number, row in by_number[0].items()
            for name in MUST_AGREE
        )
    )


def rows_by_breast(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, list[Row]]]:
    """Rows by (patient, laterality) and view."""
    breasts: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: {"cc": [], "mlo": []})
    for row in rows:
        breasts[row.patient, row.laterality][row.view].append(row)
    return breasts


def count_rows(rows: Iterable[Row]) -> dict[str, int]:
    """The numbers of rows, patients, views, breasts and links."""
    rows = list(rows)
    masses = [row for row in rows if row.is_mass]
    breasts = rows_by_breast(masses)
    sources: Counter[str] = Counter()
    for views in breasts.values():
        cc, mlo = (
            [Mass((0, 0, 1, 1), row.abnormality, row.descriptors) for row in views[name]]
            for name in ("cc", "mlo")
        )
        links = certain_links(cc, mlo, numbers_are_reliable(views["cc"], views["mlo"]))
        sources.update(link.source for link in links)
        if cc and mlo:
            sources["not linked"] += len(cc) + len(mlo) - 2 * len(links)
    return {
        "rows": len(rows),
        "rows of masses": len(masses),
        "patients": len({row.patient for row in masses}),
        "views": sum(bool(view) for views in breasts.values() for view in views.values()),
        "breasts": len(breasts),
        "breasts with masses in both views": sum(all(views.values()) for views in breasts.values()),
        **{f"links {source}": sources[source] for source in LINK_SOURCES if source != "geometric"},
        "masses not linked": sources["not linked"],
    }


def _row(cells: dict[str, str], table: str, where: str) -> Row | None:
    image, crop, mask = (PurePosixPath(cells[name].replace("\\", "/")) for name in ("image", "crop", "mask"))
    folder = image.parts[0] if image.parts else ""
    in_path = re.search(r"P_\d+", folder)
    patient = cells["patient"] or (in_path[0] if in_path else "")
    laterality = SIDES.get(cells["side"].upper())
    view = cells["view"].lower()
    if not patient or laterality is None or view not in ("cc", "mlo"):
        return None
    split = re.search("train|test", folder.split("_")[0], re.IGNORECASE) or re.search(
        "train|test", table, re.IGNORECASE
    )
    kind = cells["kind"] or folder or table
    return Row(
        where=where,
        patient=patient,
        laterality=laterality,
        view=view,
        abnormality=cells["abnormality"],
        is_mass="mass" in kind.lower(),
        section={"train": "training", "test": "test"}[split[0].lower()] if split else None,
        density=cells["density"],
        descriptors={name: cells[name].upper() for name in DESCRIPTORS if cells[name]},
        image=image,
        crop=crop,
        mask=mask,
    )


def _without_duplicates(rows: Iterable[Row], skipped: list[Skipped]) -> list[Row]:
    """Skip the rows of a copied table, or of the same table in the other schema."""
    seen: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = (row.patient, row.laterality, row.view, row.abnormality, str(row.is_mass), str(row.mask))
        if key in seen:
            skipped.append(Skipped(row.where, "duplicate row", f"same as {seen[key].where}"))
        else:
            seen[key] = row
    return list(seen.values())
