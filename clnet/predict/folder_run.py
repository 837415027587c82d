"""From a folder of DICOM files to results that people and machines can read; see docs/deployment.md.

Loader processes read and preprocess, this one runs the network and writes. Each breast's results appear as a
whole when they are done (`clnet.predict.breast_folder`), so a run that was killed goes on where it was.
Started by torchrun, each process takes its share of the breasts, and the first writes what is common to all.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import ignite.distributed as idist
from torch.utils.data import DataLoader
from tqdm import tqdm

from clnet import __version__
from clnet.data.header import BURNED_IN, image_format, may_show_text
from clnet.data.pair import VIEW_NAMES
from clnet.data.study import LeftOut
from clnet.distributed import (
    first_decides,
    gather,
    is_first_process,
    join_processes,
    leave_processes,
    process_device,
)
from clnet.errors import ClnetError
from clnet.findings.result import BreastResult, ViewResult
from clnet.findings.types import Detections, PairFindings
from clnet.predict.breast_folder import (
    MAMMOGRAPHY_CAD,
    MEASUREMENTS,
    PICTURE,
    read_breast,
    remove_unfinished,
    write_breast,
)
from clnet.predict.breasts import Breast, Task, find_breasts, source_key
from clnet.predict.bundle import BundleModel, open_bundle
from clnet.predict.loading import PICTURE_ROWS, BreastDataset, LoadedBreast, reason_of
from clnet.predict.summary import Summary, write_common
from clnet.preprocessing.batch import collate_pairs
from clnet.reports.picture import findings_picture
from clnet.reports.sr_document import BreastReport, read_source, save_report
from clnet.reports.sr_mammography_cad import mammography_cad_report
from clnet.reports.sr_measurements import measurement_report


class PredictError(ClnetError):
    """Settings that cannot be."""


@dataclass(frozen=True)
class PredictSettings:
    """How to analyse.

    Attributes:
        bundle: its folder; the checkout's by default.
        device: "cpu", "cuda", …; by default the process's GPU, or the CPU.
        min_score: of the lesions that are reported, see `merge_into_lesions`.
        workers: processes that read and preprocess; 0: none of their own.
        batch_size: pairs that pass the network together.
        secondary_capture: accept Secondary Capture images.
    """

    bundle: Path | None = None
    device: str | None = None
    min_score: float = 0.3
    workers: int = 2
    batch_size: int = 8
    secondary_capture: bool = False

    def __post_init__(self) -> None:
        for name, least in (("min_score", 0), ("workers", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise PredictError(f"{name} is {getattr(self, name)}; at least {least} is expected")


def predict(path: str | Path, output: str | Path, settings: PredictSettings) -> Summary | None:
    """Analyse every breast of an input, unless that has been done.

    Args:
        path: see `find_breasts`.
        output: the folder for the results.
        settings: how.

    Returns:
        What was done; None in processes that are not the first.
    """
    path, output = Path(path), Path(output)
    refuse_output_in_input(path, output)
    if "RANK" in os.environ:
        join_processes()
    model = open_bundle(settings.bundle, settings.device or process_device())
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
            f"{output} lies in {path}; results would be taken for input. Choose another folder"
        )


def find_in_breasts(
    model: BundleModel, loaded: Sequence[LoadedBreast]
) -> list[tuple[LoadedBreast, PairFindings | None]]:
    """The findings of a batch of breasts; None for those that could not be read."""
    samples = [item.sample for item in loaded if item.sample is not None]
    findings = iter(model.find(collate_pairs(samples)) if samples else ())
    return [(item, None if item.sample is None else next(findings)) for item in loaded]


@dataclass(frozen=True)
class Plan:
    """What all processes must agree on before the first of them writes a result.

    Attributes:
        task: what there is.
        waiting: the breasts that are yet to be analysed.
    """

    task: Task
    waiting: list[Breast]


@dataclass(frozen=True)
class Analysis:
    """What is done to each breast, and what stays the same from one to the next.

    Attributes:
        model: of the bundle.
        task: what there is to analyse.
        output: the folder for the results.
        settings: how.
    """

    model: BundleModel
    task: Task
    output: Path
    settings: PredictSettings

    @cached_property
    def keys(self) -> dict[str, str]:
        """Of each breast_id; a result of another key is out of date."""
        return {breast.breast_id: key_of(breast, self.model, self.settings) for breast in self.task.breasts}

    def analyse(self, breasts: Sequence[Breast]) -> list[LeftOut]:
        """Analyse and write; what was refused, and why."""
        refused: list[LeftOut] = []
        loader = DataLoader(
            BreastDataset(breasts, self.model.load),
            batch_size=self.settings.batch_size,
            num_workers=min(self.settings.workers, len(breasts)),
            collate_fn=list,
        )
        with tqdm(total=len(breasts), desc="Breasts", unit="breast", disable=None) as bar:
            for loaded in loader:
                for item, findings in find_in_breasts(self.model, loaded):
                    refused += self.write_or_refuse(item, findings)
                bar.update(len(loaded))
        return refused

    def write_or_refuse(self, loaded: LoadedBreast, findings: PairFindings | None) -> list[LeftOut]:
        """Write what was found in a breast; what was refused of it, and why."""
        if findings is None:
            return [LeftOut(file, reason) for file, reason in loaded.refused.items()]
        try:
            self.write(loaded, findings)
        except Exception as error:  # one bad study does not stop the others
            files = [view.image for view in loaded.breast.pair.views.values()]
            return [LeftOut(file, reason_of(error)) for file in files]
        return []

    def finish(self, refused: Sequence[LeftOut], done_before: int) -> Summary:
        """Write what is common to all breasts, from what is there of each."""
        results = [read_breast(self.output, breast_id, key) for breast_id, key in self.keys.items()]
        done = [result for result in results if result is not None]
        model, min_score, now = self.model, self.settings.min_score, len(done) - done_before
        summary = Summary(model.name, model.notice, min_score, self.task, done, refused, now)
        write_common(summary, self.output)
        return summary

    def write(self, loaded: LoadedBreast, findings: PairFindings) -> None:
        """Write reports, picture and findings of a breast."""
        result = self._result(loaded, findings)
        views = loaded.breast.pair.views
        if all(image_format(views[name].image) == "DICOM" for name in findings.views):
            report = BreastReport(
                laterality=result.laterality,
                findings=findings,
                lesions=result.lesions,
                sources={name: read_source(views[name].image) for name in findings.views},
                version=self.model.version,
                notice=self.model.notice,
                key=result.key,
            )
            if len({source.StudyInstanceUID for source in report.sources.values()}) == 2:
                result = _warned(result, "CC and MLO are of two studies; the reports belong to that of CC")
        else:
            report = None
            result = _warned(result, "no DICOM report: the images are not DICOM")

        def write_more(folder: Path) -> None:
            if report is not None:
                save_report(measurement_report(report), folder / MEASUREMENTS)
                save_report(mammography_cad_report(report), folder / MAMMOGRAPHY_CAD)
            if not _shows_text(result):
                self._draw(loaded, result, folder / PICTURE)

        if _shows_text(result):
            result = _warned(result, f"no picture: {BURNED_IN}")
        write_breast(self.output, result, self.model.name, write_more)

    def _result(self, loaded: LoadedBreast, findings: PairFindings) -> BreastResult:
        breast, sample = loaded.breast, loaded.sample or {}
        metas = dict(zip(VIEW_NAMES, sample["meta"], strict=True))
        views = {
            name: ViewResult(
                self.task.name_of(breast.pair.views[name].image),
                metas[name]["rows"],
                metas[name]["columns"],
                tuple(metas[name]["warnings"]),
            )
            for name in findings.views
        }
        refused = {
            self.task.name_of(file): reason.removeprefix(f"{file}: ")
            for file, reason in loaded.refused.items()
        }
        return BreastResult(
            breast_id=breast.breast_id,
            laterality=breast.pair.laterality,
            key=self.keys[breast.breast_id],
            min_score=self.settings.min_score,
            views=views,
            refused=refused,
            warnings=breast.warnings,
            findings=findings,
        )

    def _draw(self, loaded: LoadedBreast, result: BreastResult, file: Path) -> None:
        shrunk = {}
        for name, detections in result.findings.views.items():
            factor = loaded.pictures[name].shape[0] / result.views[name].rows
            shrunk[name] = Detections(detections.boxes * factor, detections.scores)
        alone = f", {next(iter(shrunk)).upper()} alone" if len(shrunk) == 1 else ""
        images = {name: loaded.pictures.get(name) for name in VIEW_NAMES}
        title = f"{result.breast_id} {result.laterality}{alone}   {self.model.notice}"
        findings = replace(result.findings, cc=shrunk.get("cc"), mlo=shrunk.get("mlo"))
        findings_picture(images, findings, title, result.min_score, height=PICTURE_ROWS).save(file)


def _warned(result: BreastResult, warning: str) -> BreastResult:
    return replace(result, warnings=(*result.warnings, warning))


def _shows_text(result: BreastResult) -> bool:
    """Whether the pixels may name the patient."""
    return any(may_show_text(view.warnings) for view in result.views.values())


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


def key_of(breast: Breast, model: BundleModel, settings: PredictSettings) -> str:
    """Changes with whatever the result of a breast depends on."""
    words = (__version__, model.name, settings.min_score, breast.pair.pair_id, source_key(breast))
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]
