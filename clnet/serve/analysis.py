"""The analysis of one study, by what `clnet predict` does."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pydicom

from clnet.errors import ClnetError
from clnet.predict.bundle import load
from clnet.predict.folder_run import PredictSettings, predict_with
from clnet.predict.studies import STUDIES
from clnet.reports.dicom import DEFAULT_REPORTS
from clnet.reports.predecessor import refer_to_predecessor
from clnet.runs.allocator import keep_freed_memory
from clnet.serve.settings import ServeSettings


class NothingToReportError(ClnetError):
    """A study of which no image can be analysed: trying again will not help."""


@dataclass(frozen=True)
class Outcome:
    """What the analysis of a study found.

    Attributes:
        lesions: how many.
        warnings: what could not be used, and why.
    """

    lesions: int
    warnings: Sequence[str]


class Analyser:
    """Holds the model; analyses a study at a time.

    Args:
        settings: of the node.
    """

    def __init__(self, settings: ServeSettings) -> None:
        keep_freed_memory()
        self._model = load(settings.model, settings.device)
        self._settings = PredictSettings(
            min_score=settings.min_score,
            workers=0,  # processes must not be forked off one with threads
            secondary_capture=settings.secondary_capture,
            reports=DEFAULT_REPORTS if settings.reports is None else settings.reports,
        )

    def analyse(self, images: Path, results: Path, before: Path | None) -> Outcome:
        """Analyse a study; what a killed process has written already is not done again.

        Args:
            images: the folder of its images.
            results: the folder to write to.
            before: the folder of its last results that were sent, if there are any.
        """
        summary = predict_with(self._model, images, results, self._settings)
        if summary is None:
            raise ClnetError("clnet serve runs in one process; start it without torchrun")
        reasons = [*summary.refusals.values(), *summary.left_out.values()]
        reports = report_files(results)
        if not reports:
            raise NothingToReportError("; ".join(dict.fromkeys(reasons)) or "no report could be written")
        if before is not None and not have_same_reports(results, before):
            _refer(reports, report_files(before))
        lesions = sum(len(result.lesions) for result in summary.results)
        return Outcome(lesions, tuple(dict.fromkeys(reasons)))


def report_files(results: Path) -> list[Path]:
    """The DICOM reports in a folder of results; those in hidden folders are not finished."""
    return sorted(results.glob(f"{STUDIES}/[!.]*/*.dcm"))


def have_same_reports(results: Path, others: Path) -> bool:
    """Whether the reports in two folders of results are the same objects."""
    return {*map(_uid_of, report_files(results))} == {*map(_uid_of, report_files(others))}


def _uid_of(report: Path) -> str:
    return str(pydicom.dcmread(report, specific_tags=["SOPInstanceUID"]).SOPInstanceUID)


def _refer(reports: Sequence[Path], before: Sequence[Path]) -> None:
    """Structured reports name those that they replace."""
    old = {file.name: file for file in before}
    for report in reports:
        is_structured = pydicom.dcmread(report, specific_tags=["Modality"]).Modality == "SR"
        if is_structured and report.name in old:
            refer_to_predecessor(report, old[report.name])
