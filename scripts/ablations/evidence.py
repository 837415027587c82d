"""The content of the evidence pages as data, docs/evidence.json, computed from the kept runs alone."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from ablations.numbers import Numbers
from ablations.tables import PAPER_RATES, REFERENCE, TABLES, Table
from ablations.words import QUESTIONS

IOU, RATE = "iou=0.5", PAPER_RATES[0]


def evidence(
    numbers: Numbers, epochs: int, command: str, links: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The content of all pages; `links` is what scripts/compare_links.py keeps."""
    runs = [run.content for run in numbers.runs.values()]
    settings = {run["setting"] for run in runs}
    reference = next((run["settings"] for run in runs if run["setting"] == REFERENCE), {})
    return {
        "command": command,
        "epochs": epochs,
        "resamples": numbers.resamples,
        "reference": REFERENCE,
        "answers": answers(numbers),
        "tables": {
            name: _table(numbers, table)
            for name, table in TABLES.items()
            if any(name in settings for name in table_settings(table))
        },
        "links_beside_geometry": links,
        "settings": reference,
        "runs": [_run(run, reference) for run in runs],
    }


def table_settings(table: Table) -> set[str]:
    """What the rows of a table compare with its reference."""
    return {row.setting for row in table.rows} - {table.reference}


def answers(numbers: Numbers) -> list[dict[str, Any]]:
    """The difference at R@0.25, IoU 0.5, that answers each question; questions without runs are left out."""
    found = []
    for question in QUESTIONS:
        sides = TABLES[question.table], question.ours, question.theirs
        contrast = numbers.contrast(*sides)
        if contrast:
            found.append(
                {
                    "question": question.words,
                    "difference": question.difference,
                    "table": question.table,
                    "numbers": contrast[IOU]["recall"][RATE],
                    "seeds_resampled": numbers.seeds_resampled(*sides, float(IOU.removeprefix("iou=")), RATE),
                }
            )
    return found


def order(numbers: Numbers, table: Table) -> list[dict[str, Any]]:
    """Every two rows that the paper orders by R@0.25, and whether they have the same order here.

    Returns:
        For each ``better`` and ``worse``, settings in the paper's order; ``paper``, its difference in points;
        and ``ours``, difference, interval and p, as shares, at IoU 0.5.
    """
    compared = []
    for pair in combinations([row for row in table.rows if row.paper], 2):
        better, worse = sorted(pair, key=lambda row: -row.paper[0])
        found = numbers.contrast(table, better.setting, worse.setting)
        if found and better.paper[0] != worse.paper[0]:
            compared.append(
                {
                    "better": better.setting,
                    "worse": worse.setting,
                    "paper": round(better.paper[0] - worse.paper[0], 1),
                    "ours": found[IOU]["recall"][RATE],
                }
            )
    return compared


def _table(numbers: Numbers, table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "section": table.section,
        "rows": [
            {
                "setting": row.setting,
                "labels": row.labels,
                "words": row.words,
                "view": row.view,
                "paper": dict(zip(PAPER_RATES, row.paper, strict=False)) or None,
                "numbers": numbers.row(table, row),
                "false_positives": numbers.false_positives(table, row),
            }
            for row in table.rows
        ],
        "contrasts": [
            {"ours": ours, "theirs": theirs, "numbers": numbers.contrast(table, ours, theirs)}
            for ours, theirs in table.contrasts
        ],
        "order": order(numbers, table),
    }


def _run(run: Mapping[str, Any], reference: Mapping[str, str]) -> dict[str, Any]:
    return {
        **{key: value for key, value in run.items() if key not in ("sections", "settings")},
        "changed": {k: v for k, v in run["settings"].items() if reference.get(k) != v},
        "evaluation_seconds": {name: part["seconds"] for name, part in run["sections"].items()},
        "metrics": {k: v for part in run["sections"].values() for k, v in part["metrics"].items()},
    }
