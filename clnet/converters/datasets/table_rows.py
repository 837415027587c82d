"""The rows of a table of boxes: which column means what, and the values in it.

A row is a box in an image; a row without a box is an image without masses.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from clnet.converters.annotated import Box, ConversionError
from clnet.converters.tables import read_table
from clnet.data.views import Laterality

SIDES: Mapping[str, Laterality] = {"L": "L", "LEFT": "L", "R": "R", "RIGHT": "R"}
SECTIONS = {
    **dict.fromkeys(("TRAINING", "TRAIN"), "training"),
    **dict.fromkeys(("VALIDATION", "VAL"), "validation"),
    "TEST": "test",
}

Choice = TypeVar("Choice")
Cells = dict[str, str]


class CellError(ConversionError):
    """A cell that cannot be used; the message names its column and value."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns, as in the table but in lower case.

    Attributes:
        patient, laterality, view, image: one column each.
        box: x_min, y_min, x_max, y_max.
        study, split, lesion: "" if the table does not have it.
        pixel_size, original_size: two columns each, height and width; empty if the table does not have them.
        lesion_attributes, breast_attributes: columns by the name that the attribute gets.
    """

    patient: str
    laterality: str
    view: str
    image: str
    box: tuple[str, ...]
    study: str
    split: str
    lesion: str
    pixel_size: tuple[str, ...]
    original_size: tuple[str, ...]
    lesion_attributes: Mapping[str, str]
    breast_attributes: Mapping[str, str]


# The names that are looked for where no option gives another.
DEFAULT_NAMES: Mapping[str, tuple[str, ...]] = {
    "patient": ("patient",),
    "laterality": ("laterality",),
    "view": ("view",),
    "image": ("image",),
    "box": ("x_min", "y_min", "x_max", "y_max"),
    "study": ("study",),
    "split": ("split",),
    "lesion": ("lesion_id",),
    "pixel_size": ("pixel_size_y", "pixel_size_x"),
    "original_size": ("original_height", "original_width"),
}
NEEDED = ("patient", "laterality", "view", "image", "box")


@dataclass(frozen=True)
class ImageFacts:
    """What the rows of an image say about all of it, and must agree on; see `AnnotatedView`."""

    patient: str
    study: str
    laterality: Laterality
    view: str
    section: str | None
    pixel_size: tuple[float, float] | None
    original_size: tuple[float, float] | None

    def differences(self, other: "ImageFacts") -> str:
        """What another row says otherwise; "" if nothing."""
        values = [(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return ", ".join(f"{name} {one!r} and {two!r}" for name, one, two in values if one != two)


def read_rows(file: Path, options: Mapping[str, str | Sequence[str] | None]) -> tuple[Columns, list[Cells]]:
    """The columns of a table and its rows.

    Args:
        file: CSV or XLS.
        options: the user's names of columns by the fields of `Columns`, None for the default names. An
            attribute is given as ``COLUMN`` or ``NAME=COLUMN``.
    """
    rows = read_table(file, ())
    if not rows:
        raise ConversionError(f"{file}: has no rows. A row is a box in an image, or an image without masses.")
    names = [name for name in rows[0] if name]

    def find(field: str) -> tuple[str, ...]:
        given = options[field]
        wanted = DEFAULT_NAMES[field] if given is None else (given,) if isinstance(given, str) else given
        columns = tuple(column.lower() for column in wanted)
        if given is None and field not in NEEDED and not set(columns) <= set(names):
            return ()
        _check_columns(columns, names, field, file)
        return columns

    def find_attributes(field: str) -> dict[str, str]:
        words = [word.rsplit("=", 1) for word in options[field] or ()]
        _check_columns((word[-1].lower() for word in words), names, field, file)
        return {word[0]: word[-1].lower() for word in words}

    columns = Columns(
        patient=find("patient")[0],
        laterality=find("laterality")[0],
        view=find("view")[0],
        image=find("image")[0],
        box=find("box"),
        study="".join(find("study")),
        split="".join(find("split")),
        lesion="".join(find("lesion")),
        pixel_size=find("pixel_size"),
        original_size=find("original_size"),
        lesion_attributes=find_attributes("lesion_attributes"),
        breast_attributes=find_attributes("breast_attributes"),
    )
    return columns, rows


def image_facts(cells: Cells, columns: Columns) -> ImageFacts:
    """What a row says about its image; the view is as in the table, in lower case."""
    patient = cells[columns.patient]
    if not patient:
        raise CellError(f"column {columns.patient!r} is empty; expected a patient")
    study = cells[columns.study] if columns.study else ""
    return ImageFacts(
        patient=patient,
        study=f"{patient}_{study}" if study else patient,
        laterality=_choice(cells, columns.laterality, SIDES),
        view=cells[columns.view].lower(),
        section=_choice(cells, columns.split, SECTIONS) if cells.get(columns.split) else None,
        pixel_size=_size(cells, columns.pixel_size),
        original_size=_size(cells, columns.original_size),
    )


def box_of(cells: Cells, columns: Columns) -> Box | None:
    """The box of a row; None if its cells are empty."""
    if not any(cells[column] for column in columns.box):
        return None
    x_min, y_min, x_max, y_max = (_number(cells, column) for column in columns.box)
    if not (x_min < x_max and y_min < y_max):
        corners = ", ".join(f"{column} {cells[column]!r}" for column in columns.box)
        raise CellError(f"not a box: {corners}; expected the first corner before the second")
    return x_min, y_min, x_max, y_max


def attributes_of(cells: Cells, columns: Mapping[str, str]) -> dict[str, str]:
    """The cells of some columns that are not empty, by the names of the attributes."""
    return {name: cells[column] for name, column in columns.items() if cells[column]}


def _check_columns(columns: Iterable[str], names: Sequence[str], field: str, file: Path) -> None:
    for column in columns:
        if column not in names:
            raise ConversionError(
                f"{file}: has no column {column!r}; its columns are: {', '.join(names)}. Name the right one "
                f"with --{field.replace('_', '-')}."
            )


def _choice(cells: Cells, column: str, choices: Mapping[str, Choice]) -> Choice:
    value = cells[column].upper()
    if value not in choices:
        raise CellError(f"column {column!r} is {cells[column]!r}; expected one of {', '.join(choices)}")
    return choices[value]


def _size(cells: Cells, columns: tuple[str, ...]) -> tuple[float, float] | None:
    if not any(cells[column] for column in columns):
        return None
    height, width = (_number(cells, column) for column in columns)
    if height <= 0 or width <= 0:
        raise CellError(f"{columns[0]} {height:g} and {columns[1]} {width:g}; expected positive numbers")
    return height, width


def _number(cells: Cells, column: str) -> float:
    try:
        number = float(cells[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CellError(f"column {column!r} is {cells[column]!r}; expected a number such as 12.5")
    return number
