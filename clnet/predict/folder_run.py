"""From a folder of DICOM files to results that people and machines can read; see docs/deployment.md.

Loader processes read and preprocess, this one runs the network, and writer processes write. The results of a
breast appear together when they are done (`clnet.predict.breast_folder`), and so do the reports of a study
(`clnet.predict.studies`), so that a run which was killed resumes where it was. Started by torchrun, each
process takes its share of the studies, and the first writes the common files.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ignite.distributed as idist
from tqdm import tqdm

from clnet.data.study import LeftOut
from clnet.distributed import first_decides, gather, is_first_process, join_processes, leave_processes
from clnet.errors import ClnetError
from clnet.files import only_writer, remove_unfinished_folders
from clnet.findings.types import PairFindings
from clnet.predict.analysed import AnalysedBreast
from clnet.predict.breast_folder import BREASTS, read_breast
from clnet.predict.breasts import BreastImages, Task, find_breasts
from clnet.predict.bundle import load
from clnet.predict.loading import LoadedBreast
from clnet.predict.model import BATCH_SIZE, BundleModel
from clnet.predict.result_writer import ResultWriter, WriterProcesses, refuse
from clnet.predict.studies import STUDIES, Study, group_by_study
from clnet.predict.study_reports import ReportSettings, StudyReports
from clnet.predict.summary import Summary, write_common
from clnet.reports.dicom import DEFAULT_REPORTS, DICOM_REPORTS


class PredictError(ClnetError):
    """Invalid settings."""


@dataclass(frozen=True)
class PredictSettings:
    """Settings of a run.

    Attributes:
        model: see `clnet.load`; by default the shipped model.
        device: "cpu", "cuda", …; by default the process's GPU, or the CPU.
        min_score: the least score of a lesion in the reports; by default the model's.
        workers: processes that read and preprocess, and as many that write; 0 for none.
        batch_size: breasts that pass the network together.
        secondary_capture: accept Secondary Capture images.
        reports: the DICOM reports of a study to write, keys of `clnet.reports.dicom.DICOM_REPORTS`.
        deidentify: leave out of these reports who the patient is.
    """

    model: str | Path | None = None
    device: str | None = None
    min_score: float | None = None
    workers: int = 2
    batch_size: int = BATCH_SIZE
    secondary_capture: bool = False
    reports: Sequence[str] = DEFAULT_REPORTS
    deidentify: bool = False

    def __post_init__(self) -> None:
        for name in self.reports:
            if name not in DICOM_REPORTS:
                raise PredictError(f"reports has {name!r}; expected some of {', '.join(DICOM_REPORTS)}")
        if self.min_score is not None and not 0 <= self.min_score <= 1:
            raise PredictError(f"min_score is {self.min_score}; expected a number from 0 to 1")
        for name, least in (("workers", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
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
    summary = predict_with(load(settings.model, settings.device), path, output, settings)
    leave_processes()
    return summary


def predict_with(model: BundleModel, path: Path, output: Path, settings: PredictSettings) -> Summary | None:
    """As `predict`, with a model that is loaded already."""
    with only_run(output) if is_first_process() else nullcontext():
        plan = first_decides(lambda: _plan(path, output, model, settings))
        mine = plan.studies[idist.get_rank() :: idist.get_world_size()]
        analysis = Analysis(model, plan.task, output, settings, mine, plan.waiting)
        refused = [item for part in gather(analysis.analyse()) for item in part]
        done_before = len(plan.task.breasts) - len(plan.waiting)
        return analysis.finish(plan.studies, refused, done_before) if is_first_process() else None


@contextmanager
def only_run(output: Path) -> Iterator[None]:
    """Be the only run that writes to a folder, and remove what a killed one has left half written."""
    with only_writer(output):
        for name in (BREASTS, STUDIES):
            remove_unfinished_folders(output / name)
        yield


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
        studies: all studies of the input.
        waiting: breast_ids of the breasts that are still to be analysed.
    """

    task: Task
    studies: list[Study]
    waiting: set[str]


class Analysis:
    """Analyses the breasts of studies and writes their results.

    Args:
        model: finds the lesions.
        task: all breasts of the input.
        output: the folder for the results.
        settings: of the run.
        studies: those to work on.
        waiting: breast_ids of the breasts to analyse; the results of the others are there.

    Attributes:
        min_score: the least score of a lesion in the reports.
        keys: by breast_id; a result of another key is out of date.
    """

    def __init__(
        self,
        model: BundleModel,
        task: Task,
        output: Path,
        settings: PredictSettings,
        studies: Sequence[Study],
        waiting: Collection[str],
    ) -> None:
        self.model = model
        self.task = task
        self.output = output
        self.settings = settings
        self.studies = studies
        self.waiting = set(waiting)
        self.breasts = _with_batches(
            [breast for study in studies for breast in study.breasts], self.waiting, settings.batch_size
        )
        self.min_score = model.min_score if settings.min_score is None else settings.min_score
        self.keys = {breast.breast_id: model.key_of(breast, self.min_score) for breast in task.breasts}
        self.reports = StudyReports(
            output,
            ReportSettings(
                tuple(settings.reports), settings.deidentify, model.version, model.notice, self.min_score
            ),
            self.keys,
            studies,
            waiting,
        )
        self.writer = ResultWriter(output, model.name, self.reports)

    def analyse(self) -> list[LeftOut]:
        """Analyse breasts and write results; returns the files that were refused, and why."""
        processes = min(self.settings.workers, len(self.studies))
        with WriterProcesses(self.writer, processes) as writers:
            for study in self.studies:
                writers.add(study, partial(ResultWriter.write_complete, study=study))
            refused = self._analyse(writers)
            return refused + writers.finish()

    def _analyse(self, writers: WriterProcesses) -> list[LeftOut]:
        refused = []
        batches = self.model.analyse(self.breasts, self.settings.batch_size, self.settings.workers)
        with tqdm(total=len(self.breasts), desc="Breasts", unit="breast", disable=None) as bar:
            for batch in batches:
                for loaded, findings in batch:
                    if loaded.breast.breast_id not in self.waiting:
                        continue
                    result, files = self._result(loaded, findings)
                    refused += files
                    work = partial(ResultWriter.write, breast=loaded.breast, result=result)
                    writers.add(self.reports.study_of(loaded.breast), work)
                bar.update(len(batch))
        return refused

    def write_or_refuse(self, loaded: LoadedBreast, findings: PairFindings | None) -> list[LeftOut]:
        """Write the results of a breast, and the reports of its study if it was the last one.

        Returns:
            The files that were refused, and why.
        """
        result, refused = self._result(loaded, findings)
        return refused + self.writer.write(loaded.breast, result)

    def _result(
        self, loaded: LoadedBreast, findings: PairFindings | None
    ) -> tuple[AnalysedBreast | None, list[LeftOut]]:
        """The result of a breast, or the files that were refused, and why."""
        if findings is None:
            return None, [LeftOut(file, reason) for file, reason in loaded.refused.items()]
        try:
            return self.model.result(loaded, findings, self.min_score, self.task.name_of), []
        except Exception as error:  # one bad breast does not stop the others
            return None, refuse(loaded.breast, error)

    def finish(self, studies: Sequence[Study], refused: Sequence[LeftOut], done_before: int) -> Summary:
        """Write the files about all breasts, from what was written of each.

        Args:
            studies: all of the input.
            refused: files of breasts that could not be analysed.
            done_before: the number of breasts that were not to be analysed.
        """
        results = [read_breast(self.output, breast_id, key) for breast_id, key in self.keys.items()]
        done = [result for result in results if result is not None]
        written = [self.reports.read(study) for study in studies]
        summary = Summary(
            self.model.name,
            self.model.notice,
            self.min_score,
            self.task,
            done,
            [study for study in written if study is not None],
            refused,
            len(done) - done_before,
        )
        write_common(summary, self.output)
        return summary


def _plan(path: Path, output: Path, model: BundleModel, settings: PredictSettings) -> Plan:
    task = find_breasts(path, settings.secondary_capture)
    studies = group_by_study(task.breasts)
    done = Analysis(model, task, output, settings, studies, waiting=())
    keys = done.keys.items()
    waiting = {breast_id for breast_id, key in keys if read_breast(output, breast_id, key) is None}
    return Plan(task, studies, waiting)


def _with_batches(
    breasts: Sequence[BreastImages], waiting: Collection[str], batch_size: int
) -> list[BreastImages]:
    """The breasts of those batches in which one waits.

    How sums are rounded depends on the others of a batch. So a run that is resumed forms the batches of an
    undisturbed one, and gives the same findings to the bit.
    """
    batches = [breasts[start : start + batch_size] for start in range(0, len(breasts), batch_size)]
    return [breast for batch in batches if any(one.breast_id in waiting for one in batch) for breast in batch]
