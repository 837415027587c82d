"""The content of the evidence pages as data, docs/evidence.json, computed from the kept runs alone."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ablations.kept import KeptRun
from ablations.numbers import Numbers, holm
from ablations.tables import QUESTIONS, RATES, TABLES, Question, Row, Table

IOUS = ("0.2", "0.5")
BESIDE = {
    "links_beside_geometry": "docs/evidence/links.json",
    "links_by_eye": "docs/evidence/links_by_eye.json",
    "robustness": "docs/robustness.json",
    "digital": "bundle/models/record/film_digital.json",
}
"""Results of other scripts, and the files in which those keep them."""
LINKS = ("links", "links of several", "links of single pairs")


def evidence(
    runs: Mapping[tuple[str, int], KeptRun],
    command: str,
    resamples: int,
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of all pages.

    Args:
        runs: that are kept.
        command: that makes them.
        resamples: of patients and seeds.
        beside: other results that the pages show, by the names of `BESIDE`; those that are not known may be
            missing.
    """
    numbers = Numbers(runs, resamples=resamples)
    tables = {name: _table(numbers, table, runs) for name, table in TABLES.items()}
    return {
        "command": command,
        "resamples": resamples,
        "answers": answers(numbers),
        "tables": {name: content for name, content in tables.items() if content["rows"]},
        **{name: (beside or {}).get(name) for name in BESIDE},
        "runs": [_run(run.content) for run in runs.values()],
    }


def answers(numbers: Numbers) -> list[dict[str, Any]]:
    """The difference that answers each question; questions without runs are left out.

    ``corrected`` is p by Holm's method over the questions whose settings both have several seeds; others have
    none, since they say nothing about another training.
    """
    found = []
    for question in QUESTIONS:
        difference = numbers.difference(question.ours, question.theirs)
        if difference:
            seeds = [len(numbers.seeds(name)) for name in (question.ours, question.theirs)]
            found.append({**asdict(question), "seeds": seeds, **difference[measure_of(question)]})
    of_several = [answer for answer in found if min(answer["seeds"]) > 1]
    for answer, corrected in zip(of_several, holm([answer["p"] for answer in of_several]), strict=True):
        answer["corrected"] = corrected
    return found


def measure_of(question: Question) -> str:
    """The measure of a question, at the IoU of its table."""
    return f"iou={TABLES[question.table].iou:g}/{question.measure}"


def _table(numbers: Numbers, table: Table, runs: Mapping[tuple[str, int], KeptRun]) -> dict[str, Any]:
    rows = [row for row in table.rows if numbers.seeds(row.setting)]
    return {
        "rows": [_row(numbers, table, row, runs) for row in rows],
        "missing": {
            row.setting: row.seeds - len(numbers.seeds(row.setting))
            for row in table.rows
            if len(numbers.seeds(row.setting)) < row.seeds
        },
        "gain": _shown(table, numbers.difference(*table.gain) or {}) if table.gain else {},
    }


def _row(numbers: Numbers, table: Table, row: Row, runs: Mapping[tuple[str, int], KeptRun]) -> dict[str, Any]:
    alone = {
        seed: runs[row.setting, seed].content["sections"]["test"]["only_in_one_view"]
        for seed in numbers.seeds(row.setting)
    }
    return {
        "setting": row.setting,
        "name": row.name,
        "paper": dict(zip(RATES, row.paper, strict=False)),
        "seeds": numbers.seeds(row.setting),
        "numbers": _shown(table, numbers.row(row.setting)),
        "only_in_one_view": {str(seed): of.get(f"iou={table.iou:g}") for seed, of in alone.items()},
    }


def _shown(table: Table, measures: Mapping[str, Any]) -> dict[str, Any]:
    """The measures that pages show: recall and links at both IoUs, groups at the table's."""
    names = {
        f"iou={iou}/{part}recall/{rate}" for iou in IOUS for part in ("", "both views/") for rate in RATES
    }
    names |= {name for name in measures if name.split("/")[1] in LINKS}
    names |= {
        name
        for name in measures
        if name.startswith(f"iou={table.iou:g}/") and name.endswith(f"/recall/{RATES[0]}")
    }
    return {name: numbers for name, numbers in measures.items() if name in names}


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{key: value for key, value in run.items() if key not in ("sections", "settings")},
        "evaluation_seconds": sum(part["seconds"] for part in run["sections"].values()),
    }
