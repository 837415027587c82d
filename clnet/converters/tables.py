"""Read the tables of data sets as rows of text: CSV with any of the usual separators, and `.xls`."""

import csv
import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from clnet.converters.annotated import ConversionError


def read_table(file: Path, needed: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a table that are not blank, by column name in lower case, with cells stripped.

    Args:
        file: CSV, or the first sheet of an XLS if its name ends so.
        needed: columns that the table must have.
    """
    try:
        rows = list(_xls_rows(file) if file.suffix.lower() == ".xls" else _csv_rows(file))
    except (OSError, csv.Error) as error:
        raise ConversionError(f"{file}: cannot be read as a table: {error}") from error
    names = [name.lower() for name in rows[0]] if rows else []
    missing = [name for name in needed if name not in names]
    if missing:
        found = ", ".join(filter(None, names)) or "none"
        raise ConversionError(f"{file}: has no column {missing[0]!r}; its columns are: {found}")
    return [
        dict(zip(names, [*row, *[""] * (len(names) - len(row))], strict=False))
        for row in rows[1:]
        if any(row)
    ]


def _csv_rows(file: Path) -> Iterator[list[str]]:
    with file.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        first = stream.readline()
        stream.seek(0)
        separator = max(",;\t", key=first.count)
        for row in csv.reader(stream, delimiter=separator):
            yield [cell.strip() for cell in row]


def _xls_rows(file: Path) -> Iterator[list[str]]:
    try:
        xlrd = importlib.import_module("xlrd")
    except ImportError as error:
        raise ConversionError(
            f"{file}: reading .xls needs the package xlrd: pip install 'clnet[xls]', or save it as CSV"
        ) from error
    try:
        sheet = xlrd.open_workbook(file, on_demand=True).sheet_by_index(0)
    except (xlrd.XLRDError, AssertionError, LookupError, ValueError) as error:
        raise ConversionError(f"{file}: cannot be read as .xls ({error}); save it as CSV") from error
    for number in range(sheet.nrows):
        yield [_text(value) for value in sheet.row_values(number)]


def _text(value: Any) -> str:
    """Whole numbers without their .0: in an xls, all numbers are floats, even file names."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
