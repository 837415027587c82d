"""From a folder of DICOM files to results that people and machines can read; see docs/deployment.md.

Loader processes read and preprocess, this one runs the network and writes. Each breast's results appear as a
whole when they are done (`clnet.inference.breast_folder`), so a run that was killed goes on where it was.
Started by torchrun, each process takes its share of the breasts, and the first writes what is common to all.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from torch import distributed
from torch.utils.data import DataLoader
from tqdm import tqdm

from clnet import __version__
from clnet.data.header import image_format
from clnet.data.pair import VIEW_NAMES
from clnet.data.study import LeftOut
from clnet.errors import ClnetError
from clnet.inference.breast_folder import (
    MAMMOGRAPHY_CAD,
    MEASUREMENTS,
    PICTURE,
    BreastResult,
    ViewResult,
    read_breast,
    remove_unfinished,
    write_breast,
)
from clnet.inference.breasts import Breast, Task, find_breasts, source_key
from clnet.inference.bundle import BundleModel, open_bundle
from clnet.inference.findings import Detections, PairFindings
from clnet.inference.loading import PICTURE_ROWS, BreastDataset, LoadedBreast, reason_of
from clnet.inference.picture import findings_picture
from clnet.inference.sr_document import BreastReport, read_source, save_report
from clnet.inference.sr_mammography_cad import mammography_cad_report
from clnet.inference.sr_measurements import measurement_report
from clnet.inference.summary import Summary, write_common
from clnet.training.batch import collate_pairs
from clnet.training.dataset import is_first_process
from clnet.training.processes import join_processes, leave_processes, process_device

Made = TypeVar("Made")


class PredictError(ClnetError):
    """Settings that cannot be."""


@dataclass(frozen=True)
class PredictSettings:
    """How to analyse.

    Attributes:
        bundle: its folder; the checkout's by default.
        device: "cpu", "cuda", …; by default the process's GPU, or the CPU.
        min_score: of the lesions that are reported, see `find_lesions_of_pair`.
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
    if output.resolve().is_relative_to(path.resolve()):
        raise PredictError(
            f"{output} lies in {path}; results would be taken for input. Choose another folder"
        )
    if "RANK" in os.environ:
        join_processes()
    model = open_bundle(settings.bundle, settings.device or process_device())
    plan = _first_decides(lambda: _plan(path, output, model, settings))
    analysis = Analysis(model, plan.task, output, settings, plan.keys)
    refused = _gather(analysis.analyse(plan.waiting[_rank() :: _processes()]))
    summary = None
    if is_first_process():
        results = [read_breast(output, breast_id, key) for breast_id, key in plan.keys.items()]
        done = [result for result in results if result is not None]
        before = len(plan.keys) - len(plan.waiting)
        summary = Summary(
            model.name, model.notice, settings.min_score, plan.task, done, refused, len(done) - before
        )
        write_common(summary, output)
    leave_processes()
    return summary


@dataclass(frozen=True)
class Plan:
    """What all processes must agree on before the first of them writes a result.

    Attributes:
        task: what there is.
        keys: of each breast_id; a result of another key is out of date.
        waiting: the breasts that are yet to be analysed.
    """

    task: Task
    keys: dict[str, str]
    waiting: list[Breast]


@dataclass(frozen=True)
class Analysis:
    """What is done to each breast, and what stays the same from one to the next.

    Attributes:
        model: of the bundle.
        task: what there is to analyse.
        output: the folder for the results.
        settings: how.
        keys: see `Plan`.
    """

    model: BundleModel
    task: Task
    output: Path
    settings: PredictSettings
    keys: dict[str, str]

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
                readable = [item for item in loaded if item.sample is not None]
                for item in loaded:
                    if item.sample is None:
                        refused += [LeftOut(file, reason) for file, reason in item.refused.items()]
                for item, findings in self.find(readable):
                    try:
                        self.write(item, findings)
                    except Exception as error:  # one bad study does not stop the others
                        files = [view.image for view in item.breast.pair.views.values()]
                        refused += [LeftOut(file, reason_of(error)) for file in files]
                bar.update(len(loaded))
        return refused

    def find(self, loaded: Sequence[LoadedBreast]) -> list[tuple[LoadedBreast, PairFindings]]:
        """The findings of breasts that could be read."""
        samples = [item.sample for item in loaded if item.sample is not None]
        return list(zip(loaded, self.model.find(collate_pairs(samples)), strict=True)) if samples else []

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
            result = _warned(result, "no picture: BurnedInAnnotation is YES")
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
    return any(
        "BurnedInAnnotation is YES" in word for view in result.views.values() for word in view.warnings
    )


def _plan(path: Path, output: Path, model: BundleModel, settings: PredictSettings) -> Plan:
    task = find_breasts(path, settings.secondary_capture)
    output.mkdir(parents=True, exist_ok=True)
    remove_unfinished(output)
    keys = {breast.breast_id: key_of(breast, model, settings) for breast in task.breasts}
    waiting = [
        breast
        for breast in task.breasts
        if read_breast(output, breast.breast_id, keys[breast.breast_id]) is None
    ]
    return Plan(task, keys, waiting)


def key_of(breast: Breast, model: BundleModel, settings: PredictSettings) -> str:
    """Changes with whatever the result of a breast depends on."""
    words = (__version__, model.name, settings.min_score, breast.pair.pair_id, source_key(breast))
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


def _first_decides(make: Callable[[], Made]) -> Made:
    """What the first process makes, in every process."""
    made = [make() if is_first_process() else None]
    if distributed.is_initialized():
        distributed.broadcast_object_list(made)
    return made[0]  # type: ignore[return-value]


def _gather(mine: list[LeftOut]) -> list[LeftOut]:
    """What all processes have, in every process; none goes on before all are here."""
    shards = [mine]
    if distributed.is_initialized():
        shards = [[] for _ in range(_processes())]
        distributed.all_gather_object(shards, mine)
    return [item for shard in shards for item in shard]


def _rank() -> int:
    return distributed.get_rank() if distributed.is_initialized() else 0


def _processes() -> int:
    return distributed.get_world_size() if distributed.is_initialized() else 1
