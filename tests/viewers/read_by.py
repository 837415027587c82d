"""The table of docs/viewers.md: which program read which report, and what a test checked."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "viewers.md"
ROWS = []


def read_by(reader, checked, *kinds):
    """Decorates a test: adds a row for each kind of report that its reader reads there."""
    ROWS.extend((kind, reader, checked) for kind in kinds)
    return lambda test: test


def table():
    """The rows of the page."""
    order = ("measurements", "presentation", "picture", "cad")
    rows = sorted(ROWS, key=lambda row: order.index(row[0]))
    head = ["| report | read by | what is checked |", "|---|---|---|"]
    return [*head, *(f"| `{kind}` | {reader} | {checked} |" for kind, reader, checked in rows)]
