"""From a folder of DICOM files to results that people and machines can read; see docs/deployment.md.

Loader processes read and preprocess, this one runs the network and writes. The results of a breast appear
together when they are done (`clnet.predict.breast_folder`), so that a run which was killed resumes where it
was. Started by torchrun, each process takes its share of the breasts, and the first writes the common files.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import ignite.distributed as idist
from tqdm import tqdm

from clnet.data.header import BURNED_IN
from clnet.data.study import LeftOut
from clnet.distributed import first_decides, gather, is_first_process, join_processes, leave_processes
from clnet.errors import ClnetError
from clnet.findings.types import PairFindings
from clnet.predict.analysed import AnalysedBreast
from clnet.predict.breast_folder import (
    PICTURE,
    read_breast,
    remove_unfinished,
    write_breast,
)
from clnet.predict.breasts import BreastImages, Task, find_breasts
from clnet.predict.bundle import load
from clnet.predict.loading import LoadedBreast, reason_of
from clnet.predict.model import BATCH_SIZE, BundleModel
from clnet.predict.summary import Summary, write_common
from clnet.reports.dicom import DICOM_REPORTS
from clnet.reports.sr_document import save_report


class PredictError(ClnetError):
    """Invalid settings."""


@dataclass(frozen=True)
class PredictSettings:
    """Settings of a run.

    Attributes:
        model: see `clnet.load`; by default the shipped model.
        device: "cpu", "cuda", …; by default the process's GPU, or the CPU.
        min_score: the least score of a lesion in the reports; by default the model's.
        workers: processes that read and preprocess; 0 for none.
        batch_size: breasts that pass the network together.
        secondary_capture: accept Secondary Capture images.
    """

    model: str | Path | None = None
    device: str | None = None
    min_score: float | None = None
    workers: int = 2
    batch_size: int = BATCH_SIZE
    secondary_capture: bool = False

    def __post_init__(self) -> None:
        for name, least in (("min_score", 0), ("workers", 0), ("batch_size", 1)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise PredictError(f"{name} is {getattr(self, name)}; at least {least} is expected")


def predict(path: str | Path, output: str | Path, settings: PredictSettings) -> Summary | None:
    """Analyse every breast of an input that has not been analysed before.

    Args:
        path: see `find_breasts`.
        output: the folder for the results.
        settings: of the run.

    Returns:
        What was done; None in processes that are not the first.
    """
    path, output = Path(path), Path(output)
    refuse_output_in_input(path, output)
    if "RANK" in os.environ:
        join_processes()
    model = load(settings.model, settings.device)
    plan = first_decides(lambda: _plan(path, output, model, settings))
    analysis = Analysis(model, plan.task, output, settings)
    mine = plan.waiting[idist.get_rank() :: idist.get_world_size()]
    refused = [item for part in gather(analysis.analyse(mine)) for item in part]
    done_before = len(plan.task.breasts) - len(plan.waiting)
    summary = analysis.finish(refused, done_before) if is_first_process() else None
    leave_processes()
    return summary


def refuse_output_in_input(path: Path, output: Path) -> None:
    """Raise an error if results would be taken for input."""
    if output.resolve().is_relative_to(path.resolve()):
        raise PredictError(
            f"{output} lies in {path}; results would be taken for input. Give another folder with --output"
        )


@dataclass(frozen=True)
class Plan:
    """What all processes must agree on before the first of them writes a result.

    Attributes:
        task: all breasts of the input.
        waiting: those that are still to be analysed.
    """

    task: Task
    waiting: list[BreastImages]


@dataclass(frozen=True)
class Analysis:
    """Analyses breasts and writes their results.

    Attributes:
        model: finds the lesions.
        task: all breasts of the input.
        output: the folder for the results.
        settings: of the run.
    """

    model: BundleModel
    task: Task
    output: Path
    settings: PredictSettings

    @property
    def min_score(self) -> float:
        """The least score of a lesion in the reports."""
        return self.model.min_score if self.settings.min_score is None else self.settings.min_score

    @cached_property
    def keys(self) -> dict[str, str]:
        """By breast_id; a result of another key is out of date."""
        return {breast.breast_id: self.model.key_of(breast, self.min_score) for breast in self.task.breasts}

    def analyse(self, breasts: Sequence[BreastImages]) -> list[LeftOut]:
        """Analyse breasts and write their results; returns the files that were refused, and why."""
        refused: list[LeftOut] = []
        batches = self.model.analyse(breasts, self.settings.batch_size, self.settings.workers)
        with tqdm(total=len(breasts), desc="Breasts", unit="breast", disable=None) as bar:
            for batch in batches:
                for loaded, findings in batch:
                    refused += self.write_or_refuse(loaded, findings)
                bar.update(len(batch))
        return refused

    def write_or_refuse(self, loaded: LoadedBreast, findings: PairFindings | None) -> list[LeftOut]:
        """Write the results of a breast; returns its files that were refused, and why."""
        if findings is None:
            return [LeftOut(file, reason) for file, reason in loaded.refused.items()]
        try:
            self.write(loaded, findings)
        except Exception as error:  # one bad study does not stop the others
            files = [view.image for view in loaded.breast.pair.views.values()]
            return [LeftOut(file, reason_of(error)) for file in files]
        return []

    def write(self, loaded: LoadedBreast, findings: PairFindings) -> None:
        """Write the reports, the picture and the findings of a breast."""
        result = self.model.result(loaded, findings, self.min_score, self.task.name_of)
        report = result.report()
        if report is None:
            result = _warned(result, "no DICOM report: the images are not DICOM")
        elif len({source.StudyInstanceUID for source in report.sources.values()}) == 2:
            result = _warned(result, "CC and MLO are of two studies; the reports belong to that of CC")
        if result.shows_text:
            result = _warned(result, f"no picture: {BURNED_IN}")

        def write_more(folder: Path) -> None:
            if report is not None:
                for name, make in DICOM_REPORTS.items():
                    save_report(make(report), folder / f"{name}.dcm")
            if not result.shows_text:
                result.draw().save(folder / PICTURE)

        write_breast(self.output, result, self.model.name, write_more)

    def finish(self, refused: Sequence[LeftOut], done_before: int) -> Summary:
        """Write the files about all breasts, from what was written of each."""
        results = [read_breast(self.output, breast_id, key) for breast_id, key in self.keys.items()]
        done = [result for result in results if result is not None]
        model, now = self.model, len(done) - done_before
        summary = Summary(model.name, model.notice, self.min_score, self.task, done, refused, now)
        write_common(summary, self.output)
        return summary


def _warned(result: AnalysedBreast, warning: str) -> AnalysedBreast:
    return replace(result, warnings=(*result.warnings, warning))


def _plan(path: Path, output: Path, model: BundleModel, settings: PredictSettings) -> Plan:
    task = find_breasts(path, settings.secondary_capture)
    output.mkdir(parents=True, exist_ok=True)
    remove_unfinished(output)
    keys = Analysis(model, task, output, settings).keys
    waiting = [
        breast
        for breast in task.breasts
        if read_breast(output, breast.breast_id, keys[breast.breast_id]) is None
    ]
    return Plan(task, waiting)
