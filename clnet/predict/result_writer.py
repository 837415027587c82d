"""Writes results beside the network, in processes of their own: writing takes longer than a small network.

A process gets whole studies, so that it holds what the reports of a study are about.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from clnet.data.study import LeftOut
from clnet.files import WriteError
from clnet.predict.analysed import AnalysedBreast
from clnet.predict.breast_folder import write_breast
from clnet.predict.breasts import BreastImages
from clnet.predict.loading import reason_of
from clnet.predict.studies import Study
from clnet.predict.study_reports import NO_PICTURE, NOT_DICOM, StudyReports
from clnet.processes import end_with_parent
from clnet.reports.study import BreastReport

MOST_WAITING = 32  # results that wait for a writer, each with its pictures


@dataclass(frozen=True)
class ResultWriter:
    """Writes the results of breasts, and the reports of each study.

    Attributes:
        output: the folder for the results.
        model: the name of the model.
        reports: of the studies.
    """

    output: Path
    model: str
    reports: StudyReports

    def write(self, breast: BreastImages, result: AnalysedBreast | None) -> list[LeftOut]:
        """Write the results of a breast, and the reports of its study if it was the last one.

        Args:
            breast: which.
            result: None if it was refused.

        Returns:
            The files that were refused, and why.
        """
        refused, report = [], None
        if result is not None:
            try:
                report = self._write(result)
            except WriteError:
                raise  # the others could not be written either
            except Exception as error:  # one bad breast does not stop the others
                refused = refuse(breast, error)
        return refused + self.reports.add(breast, report)

    def write_complete(self, study: Study) -> list[LeftOut]:
        """Write the reports of a study if it waits for no breast; returns what was refused, and why."""
        return self.reports.write_complete(study)

    def _write(self, result: AnalysedBreast) -> BreastReport | None:
        """Write the picture and the findings of a breast; returns what its study's reports say about it."""
        picture = None if result.shows_text else result.draw()
        report = result.report(picture)
        warnings = [NOT_DICOM] * (report is None) + [NO_PICTURE] * (picture is None)
        result = replace(result, warnings=(*result.warnings, *warnings))
        write_breast(self.output, result, self.model, picture)
        return report


def refuse(breast: BreastImages, error: Exception) -> list[LeftOut]:
    """All files of a breast, with the reason."""
    return [LeftOut(view.image, reason_of(error)) for view in breast.pair.views.values()]


Work = Callable[[ResultWriter], list[LeftOut]]
"""Something to write, such as ``partial(ResultWriter.write, breast=…, result=…)``; it can be pickled."""


class WriterProcesses:
    """Processes that write.

    Args:
        writer: what each of them writes with; none of them sees what another one was given.
        number: of processes; 0: this one writes.
    """

    def __init__(self, writer: ResultWriter, number: int) -> None:
        self._writer = writer
        self._pools = [ProcessPoolExecutor(1, initializer=_start, initargs=(writer,)) for _ in range(number)]
        self._waiting: deque[Future[list[LeftOut]]] = deque()
        self._refused: list[LeftOut] = []
        for pool in self._pools:
            pool.submit(os.getpid)  # starts the process, before the network starts threads

    def __enter__(self) -> "WriterProcesses":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)  # after `finish`, there are none

    def add(self, study: Study, work: Work) -> None:
        """Write something of a study; waits if too much is waiting."""
        if not self._pools:
            self._refused += work(self._writer)
            return
        pool = self._pools[int(study.study_id, 16) % len(self._pools)]
        self._waiting.append(pool.submit(_work, work))
        while len(self._waiting) > MOST_WAITING:
            self._refused += self._waiting.popleft().result()

    def finish(self) -> list[LeftOut]:
        """Wait until all is written; returns the files that were refused, and why, in the order of `add`."""
        while self._waiting:
            self._refused += self._waiting.popleft().result()
        return self._refused


_writers: list[ResultWriter] = []  # in a process that writes: its own


def _start(writer: ResultWriter) -> None:
    _writers.append(writer)
    end_with_parent()


def _work(work: Work) -> list[LeftOut]:
    return work(_writers[0])
