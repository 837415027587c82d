"""What a run analysed, what it did not, and why: the files about all breasts, and a table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clnet.data.counted import counted
from clnet.data.study import LeftOut
from clnet.files import write_text
from clnet.findings.result import BreastResult
from clnet.findings.types import FINDINGS_FILE, Findings, write_findings
from clnet.predict.breast_folder import BREASTS
from clnet.predict.breasts import Task
from clnet.predict.studies import STUDIES, StudyResult
from clnet.reports.coco import coco_of

COCO, SUMMARY = "coco.json", "summary.json"
SCHEMA_VERSION = 1
TABLE_ROWS = 20


@dataclass(frozen=True)
class Summary:
    """The outcome of a run.

    Attributes:
        model, notice: the name of the model, and a sentence on its use.
        min_score: the least score of a lesion.
        task: what there was to analyse.
        results: of each breast that was analysed, now or before.
        studies: the reports of each study.
        refused: files of breasts that could not be analysed.
        analysed_now: the number of breasts that were analysed now.
    """

    model: str
    notice: str
    min_score: float
    task: Task
    results: Sequence[BreastResult]
    studies: Sequence[StudyResult]
    refused: Sequence[LeftOut]
    analysed_now: int

    @property
    def refusals(self) -> dict[str, str]:
        """Each file that should have been used and could not be, with the reason."""
        reasons = _by_name(self.task, [*self.task.refused, *self.refused])
        for result in self.results:
            reasons |= result.refused
        return dict(sorted(reasons.items()))

    @property
    def left_out(self) -> dict[str, str]:
        """Each image that is rightly not part of a pair, with the reason."""
        return _by_name(self.task, self.task.left_out)

    @property
    def exit_status(self) -> int:
        """0 if all was analysed, 1 if something was refused or nothing was there to analyse."""
        return int(bool(self.refusals) or not self.results)


def write_common(summary: Summary, output: Path) -> None:
    """Write findings.json, coco.json and, last, summary.json."""
    pairs = tuple(result.findings for result in summary.results)
    write_findings(Findings(summary.model, pairs), output / FINDINGS_FILE)
    _write_json(coco_of(summary.results, summary.model, summary.notice), output / COCO)
    _write_json(_to_json(summary), output / SUMMARY)


def describe(summary: Summary, output: Path) -> str:
    """The table that is printed at the end."""
    lines = [summary.notice, ""] if summary.notice else []
    if summary.results:
        lines.append("breast        side  views   lesions  linked  note")
    for result in summary.results[:TABLE_ROWS]:
        views = "+".join(name.upper() for name in result.views)
        linked = sum(lesion.is_linked for lesion in result.lesions)
        counts = f"{len(result.lesions):>7}{linked:>8}"
        row = f"{result.breast_id:<14}{result.laterality:<6}{views:<8}{counts}  {'; '.join(result.warnings)}"
        lines.append(row.rstrip())
    if len(summary.results) > TABLE_ROWS:
        lines.append(f"and {len(summary.results) - TABLE_ROWS} more")
    lines += [f"study     {s.study_id}: {word}" for s in summary.studies for word in s.warnings]
    for words, reasons in (("refused", summary.refusals), ("left out", summary.left_out)):
        lines += [f"{words:<10}{name}: {reason}" for name, reason in list(reasons.items())[:TABLE_ROWS]]
        if len(reasons) > TABLE_ROWS:
            lines.append(f"and {len(reasons) - TABLE_ROWS} more {words}")
    if not summary.results:
        lines += ["", "NOTHING WAS ANALYSED: no file is a CC or MLO mammogram that can be used, see above"]
    lines += [
        "",
        f"{counted(len(summary.results), 'breast')} analysed, {summary.analysed_now} of them now; "
        f"{counted(len(summary.refusals), 'file')} refused, {len(summary.left_out)} left out",
        f"findings  {output / FINDINGS_FILE}\nCOCO      {output / COCO}\nsummary   {output / SUMMARY}",
        f"reports   {output / STUDIES}/*/*.dcm\npictures  {output / BREASTS}/*/*.png",
    ]
    return "\n".join(lines)


def _to_json(summary: Summary) -> dict[str, Any]:
    def named(reasons: dict[str, str]) -> list[dict[str, str]]:
        return [{"file": name, "reason": reason} for name, reason in reasons.items()]

    analysed = [
        {
            "breast_id": result.breast_id,
            "pair_id": result.findings.pair_id,
            "laterality": result.laterality,
            "views": list(result.views),
            "alone": len(result.views) == 1,
            "lesions": len(result.lesions),
            "linked": sum(lesion.is_linked for lesion in result.lesions),
            "warnings": [
                *result.warnings,
                *(f"{name}: {word}" for name, view in result.views.items() for word in view.warnings),
            ],
        }
        for result in summary.results
    ]
    return {
        "schema": SCHEMA_VERSION,
        "notice": summary.notice,
        "model": summary.model,
        "min_score": summary.min_score,
        "analysed": analysed,
        "studies": [
            {
                "study_id": study.study_id,
                "breasts": list(study.breasts),
                "reports": list(study.reports),
                "warnings": list(study.warnings),
            }
            for study in summary.studies
        ],
        "refused": named(summary.refusals),
        "left_out": named(summary.left_out),
    }


def _by_name(task: Task, items: Sequence[LeftOut]) -> dict[str, str]:
    names = [(task.name_of(item.file), item) for item in items]
    return {
        name: item.reason.removeprefix(f"{item.file}: ").removeprefix(f"{name}: ") for name, item in names
    }


def _write_json(content: dict[str, Any], path: Path) -> None:
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
