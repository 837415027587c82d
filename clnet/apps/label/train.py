"""Training as MONAI Label requests it: the bundle is fine-tuned on the saved labels.

The bundle's own commands train and evaluate, each in its own process: their output is the progress that MONAI
Label shows, and stopping them stops everything. The new model replaces the current one only if its mean
recall on the validation section is higher.
"""

import json
import runpy
import sys
import time
import warnings
from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from monailabel.config import settings
from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.train import TrainTask

from clnet.apps.label.catalog import PairCatalog
from clnet.apps.label.current_model import CurrentModel
from clnet.apps.label.labels import label_of, labelled_pair
from clnet.apps.label.request_errors import RequestError
from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair
from clnet.evaluation.folder import read_metrics
from clnet.files import write_text
from clnet.predict.breasts import digest
from clnet.predict.bundle import config_files

VALIDATION_SHARE = 0.2  # of the patients
PARAMS: Mapping[str, int | float] = {"max_epochs": 10, "learning_rate": 0.0001, "batch_size": 8}
SECTIONS = ("training", "validation")
IOU = "iou=0.5"
START_METHOD = "fork" if sys.platform == "linux" else "spawn"  # fork saves importing everything again


class TrainPair(TrainTask):
    """Fine-tunes the current model.

    Request params: max_epochs, learning_rate, batch_size.

    Args:
        catalog: of the labelled pairs.
        model: that is fine-tuned, and replaced if the result is better.
        folder: of the app, for runs and their outcomes.
    """

    def __init__(self, catalog: PairCatalog, model: CurrentModel, folder: Path) -> None:
        super().__init__("Fine-tune CL-Net on the saved labels; a better model becomes the current one")
        self.catalog = catalog
        self.model = model
        self.folder = folder

    def config(self) -> dict[str, Any]:
        """The params with their defaults."""
        return dict(PARAMS)

    def stats(self) -> dict[str, Any]:
        """The outcome of each training so far, the latest last."""
        outcomes = _read_json(self._outcomes_file, [])
        return {"trainings": outcomes} if outcomes else {}

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any]:
        """Train, compare, and keep the better model."""
        params = checked(request)
        datalist = self.datalist()
        write_datalist(datalist, self.folder / "labelled" / "datalist.json")
        pairs = {section: len(datalist[section]) for section in SECTIONS}
        params["batch_size"] = min(params["batch_size"], pairs["training"])
        run = time.strftime("fine_tune-%Y%m%d-%H%M%S")
        report_progress(f"{pairs['training']} pairs to train on, {pairs['validation']} to validate on")
        self._run_bundle("training", "fine_tune", run_name=run, weights=self.model.weights, **params)
        new = self.folder / "runs" / run / "model.pt"
        recalls = {
            name: self._evaluate(f"{run}-{name}", weights)
            for name, weights in (("current", self.model.weights), ("new", new))
        }
        is_better = recalls["new"] is not None and recalls["new"] > (recalls["current"] or 0.0)
        if is_better:
            self.model.replace_weights(new)
        outcome = {"run": run, "pairs": pairs, "mean_recall": recalls, "taken": is_better}
        _write_json(self._outcomes_file, [*_read_json(self._outcomes_file, []), outcome])
        report_progress(
            "the new model is better and becomes the current one"
            if is_better
            else "the new model is not better; the current one stays"
        )
        return outcome

    def datalist(self) -> Datalist:
        """The labelled pairs; a patient's breasts are in one section and stay there."""
        labels = ((pair, label_of(self.catalog.datastore, pair)) for pair in self.catalog.pairs(fresh=True))
        pairs = [
            labelled_pair(self.catalog.fetched(pair), label) for pair, label in labels if label is not None
        ]
        file = self.folder / "model" / "sections.json"
        sections = sections_of(pairs, _read_json(file, {}))
        by_section = {
            section: tuple(pair for pair in pairs if sections[pair.patient_id] == section)
            for section in SECTIONS
        }
        if not by_section["training"]:
            raise RequestError(
                f"there are labels of {len({pair.patient_id for pair in pairs})} patients; training needs at "
                "least two, one to train on and one to validate on"
            )
        _write_json(file, sections)
        return Datalist("labels", by_section)

    @property
    def _outcomes_file(self) -> Path:
        return self.folder / "model" / "trainings.json"

    def _evaluate(self, run: str, weights: Path) -> float | None:
        """The mean recall of a model on the validation section; None if that has no lesions."""
        self._run_bundle(
            "evaluating",
            "evaluate",
            run_name=run,
            weights=weights,
            section="validation",
            report=False,
            attention=False,
        )
        return read_metrics(self.folder / "runs" / run)["detection"][IOU]["mean_recall"]["value"]

    def _run_bundle(self, run_id: str, config: str, **options: Any) -> None:
        """Run a workflow of the bundle in its own process."""
        bundle = self.model.folder
        options |= {
            "config_file": str(config_files(bundle, config)),
            "bundle_root": bundle,
            "dataset_dir": self.folder / "labelled",
            "output_dir": self.folder / "runs",
            "experiment": "label",
        }
        if settings.MONAI_LABEL_TRACKING_URI:
            options["tracking_uri"] = settings.MONAI_LABEL_TRACKING_URI
        arguments = ["run", run_id, *(f"--{name}={value}" for name, value in options.items())]
        process = get_context(START_METHOD).Process(  # type: ignore[attr-defined]
            target=_monai_bundle, args=(arguments,)
        )
        process.start()
        process.join()
        if process.exitcode:
            raise RequestError(f"{run_id} failed with status {process.exitcode}; the lines above say why")


def _monai_bundle(arguments: list[str]) -> None:
    """``python -m monai.bundle ARGUMENTS``."""
    sys.argv = ["monai.bundle", *arguments]
    warnings.simplefilter("ignore")
    runpy.run_module("monai.bundle", run_name="__main__", alter_sys=True)


def checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a request; only numbers, as the bundle's configs would run a string as code."""
    params = {name: request.get(name, default) for name, default in PARAMS.items()}
    for name, value in params.items():
        types = (int,) if isinstance(PARAMS[name], int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, types) or not 0 < value < 1e6:
            raise RequestError(f"{name} is {value!r}; expected a number such as {PARAMS[name]}")
    return params


def sections_of(pairs: Iterable[Pair], known: Mapping[str, str]) -> dict[str, str]:
    """The section of each patient; known patients keep theirs, so no model is validated on its training data.

    Args:
        pairs: the labelled ones.
        known: patient → section, of earlier trainings.
    """
    has_lesions: dict[str, bool] = {}
    for pair in pairs:
        marked = any(len(view.boxes) for view in pair.views.values())
        has_lesions[pair.patient_id] = has_lesions.get(pair.patient_id, False) or marked
    sections = dict(known)
    new = [patient for patient in has_lesions if patient not in known]
    for patient in sorted(new, key=lambda name: (not has_lesions[name], digest(name))):
        validating = list(sections.values()).count("validation")
        needs_more = validating < VALIDATION_SHARE * (len(sections) + 1)
        sections[patient] = "validation" if needs_more else "training"
    return sections


def report_progress(line: str) -> None:
    """A line that MONAI Label shows as progress."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _read_json(file: Path, default: Any) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else default


def _write_json(file: Path, content: Any) -> None:
    write_text(file, json.dumps(content, indent=1) + "\n")
