"""Writes the reports of each study when the last of its breasts is done.

Breasts that were analysed now come with what their reports say; those of an earlier run are read back from
their folders and their files' tags, so that one changed breast renews the reports of its study.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clnet.data.header import BURNED_IN
from clnet.data.reader import read_tags
from clnet.data.study import LeftOut
from clnet.files import WriteError
from clnet.predict.breast_folder import read_breast, read_picture
from clnet.predict.breasts import BreastImages, digest
from clnet.predict.loading import reason_of
from clnet.predict.studies import Study, StudyResult, read_study, write_study
from clnet.reports.dicom import write_reports
from clnet.reports.study import BreastReport, StudyReport, report_source

NOT_DICOM = "no DICOM report: the images are not DICOM"
NO_PICTURE = f"no picture: {BURNED_IN}"


@dataclass(frozen=True)
class ReportSettings:
    """What the reports of all studies have in common.

    Attributes:
        kinds: keys of `clnet.reports.dicom.DICOM_REPORTS`.
        deidentify: leave out who the patient is.
        version, notice: of the model.
        min_score: the least score of a lesion.
    """

    kinds: tuple[str, ...]
    deidentify: bool
    version: str
    notice: str
    min_score: float


class StudyReports:
    """The reports of studies.

    Args:
        output: the folder for the results.
        settings: of all reports.
        keys: of the result of each breast, by breast_id.
        studies: those to report on.
        waiting: breast_ids of those breasts that will be analysed.
    """

    def __init__(
        self,
        output: Path,
        settings: ReportSettings,
        keys: Mapping[str, str],
        studies: Sequence[Study],
        waiting: Collection[str],
    ) -> None:
        self.output = output
        self.settings = settings
        self.keys = keys
        self._study_of = {breast.breast_id: study for study in studies for breast in study.breasts}
        self._waiting = set(waiting)
        self._fresh: dict[str, BreastReport] = {}

    def study_of(self, breast: BreastImages) -> Study:
        """The study of a breast."""
        return self._study_of[breast.breast_id]

    def read(self, study: Study) -> StudyResult | None:
        """What was written for a study; None if it is out of date."""
        return read_study(self.output, study.study_id, self._key(study))

    def write_complete(self, study: Study) -> list[LeftOut]:
        """Write the reports of a study if it waits for no breast; returns what was refused, and why."""
        return self._write(study) if self._is_complete(study) else []

    def add(self, breast: BreastImages, report: BreastReport | None) -> list[LeftOut]:
        """Note that a breast is done; returns the files that were refused, and why.

        Args:
            breast: which.
            report: what is to be said about it; None if it was refused, or is not DICOM.
        """
        self._waiting.remove(breast.breast_id)
        if report is not None:
            self._fresh[breast.breast_id] = report
        return self.write_complete(self.study_of(breast))

    def _is_complete(self, study: Study) -> bool:
        return not any(breast.breast_id in self._waiting for breast in study.breasts)

    def _key(self, study: Study) -> str:
        keys = [self.keys[breast.breast_id] for breast in study.breasts]
        return digest(repr((keys, self.settings)))

    def _write(self, study: Study) -> list[LeftOut]:
        is_changed = any(breast.breast_id in self._fresh for breast in study.breasts)
        if not is_changed and self.read(study) is not None:
            return []
        try:
            reports = {breast.breast_id: self._report(breast) for breast in study.breasts}
            there = {breast_id: report for breast_id, report in reports.items() if report is not None}
            if there:
                write_study(self.output, study.study_id, lambda folder: self._write_to(folder, study, there))
        except WriteError:
            raise  # the others could not be written either
        except Exception as error:  # one bad study does not stop the others
            files = [view.image for breast in study.breasts for view in breast.pair.views.values()]
            return [LeftOut(file, reason_of(error)) for file in files]
        return []

    def _write_to(self, folder: Path, study: Study, breasts: Mapping[str, BreastReport]) -> StudyResult:
        settings = self.settings
        report = StudyReport(tuple(breasts.values()), settings.version, settings.notice, settings.min_score)
        names = write_reports(report, settings.kinds, folder, settings.deidentify)
        number = len({source.StudyInstanceUID for source in report.sources})
        first = next(iter(breasts.values()))
        place = f"{first.laterality} {next(iter(first.sources)).upper()}"
        warnings = [f"the images are of {number} studies; the reports belong to that of {place}"]
        return StudyResult(
            study.study_id,
            self._key(study),
            tuple(breasts),
            tuple(names),
            tuple(warnings) if number > 1 else (),
        )

    def _report(self, breast: BreastImages) -> BreastReport | None:
        """What is to be said about a breast, analysed now or before; None as in `add`."""
        fresh = self._fresh.pop(breast.breast_id, None)
        if fresh is not None:
            return fresh
        result = read_breast(self.output, breast.breast_id, self.keys[breast.breast_id])
        if result is None or NOT_DICOM in result.warnings:
            return None
        files = {name: breast.pair.views[name].image for name in result.views}
        sources = {name: report_source(read_tags(file), file) for name, file in files.items()}
        picture = read_picture(self.output, breast.breast_id)
        return BreastReport(result.laterality, result.lesions, sources, picture, result.mismatch)
