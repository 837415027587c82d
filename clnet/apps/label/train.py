"""Training as MONAI Label asks for it: the bundle goes on learning from the labels that were saved.

The bundle's own commands train and evaluate, each in a process of its own: what they print is the progress
that MONAI Label shows, and to stop them is to stop everything. The new model becomes the current one only if
it finds more in the validation section than the current one does.
"""

import json
import runpy
import sys
import time
import warnings
from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monailabel.config import settings
from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.train import TrainTask

from clnet.apps.label.labels import label_of, labelled_pair
from clnet.apps.label.model import CurrentModel, replace_file
from clnet.apps.label.refusals import RequestError
from clnet.data.datalist import Datalist, write_datalist
from clnet.data.pair import Pair
from clnet.evaluation.folder import read_metrics
from clnet.files import write_text
from clnet.predict.breasts import digest
from clnet.predict.bundle import config_files

if TYPE_CHECKING:
    from clnet.apps.label.app import ClnetLabelApp

VALIDATION_SHARE = 0.2  # of the patients
PARAMS: Mapping[str, int | float] = {"max_epochs": 10, "learning_rate": 0.0001, "batch_size": 8}
IOU = "iou=0.5"
START = "fork" if sys.platform == "linux" else "spawn"  # what is imported already need not be imported again


class TrainPair(TrainTask):
    """Fine-tunes the current model.

    Params of a request: max_epochs, learning_rate, batch_size.
    """

    def __init__(self, app: "ClnetLabelApp") -> None:
        super().__init__("Fine-tune CL-Net on the saved labels; a better model becomes the current one")
        self.app = app
        self.folder = Path(app.app_dir)

    def config(self) -> dict[str, Any]:
        """What may be changed."""
        return dict(PARAMS)

    def stats(self) -> dict[str, Any]:
        """What came of the trainings so far, the last one last."""
        file = self.folder / "model" / "trainings.json"
        return {"trainings": json.loads(file.read_text(encoding="utf-8"))} if file.is_file() else {}

    def __call__(self, request: Mapping[str, Any], datastore: Datastore) -> dict[str, Any]:
        """Train, compare, and take the new model if it is better."""
        params = checked(request)
        datalist = self.datalist()
        write_datalist(datalist, self.folder / "labelled" / "datalist.json")
        params["batch_size"] = min(params["batch_size"], len(datalist["training"]))
        run = time.strftime("fine_tune-%Y%m%d-%H%M%S")
        say(f"{len(datalist['training'])} pairs to learn from, {len(datalist['validation'])} to compare on")
        self._bundle("training", "fine_tune", run_name=run, **params)
        new = self.folder / "runs" / run / "model.pt"
        recalls = {
            name: self._evaluate(f"{run}-{name}", weights)
            for name, weights in (("current", self.app.model.weights), ("new", new))
        }
        better = recalls["new"] is not None and recalls["new"] > (recalls["current"] or 0.0)
        if better:
            replace_weights(self.app.model, new)
        outcome = {
            "run": run,
            "pairs": {section: len(datalist[section]) for section in ("training", "validation")},
            "mean_recall": recalls,
            "taken": better,
        }
        trainings = [*self.stats().get("trainings", []), outcome]
        _write_json(self.folder / "model" / "trainings.json", trainings)
        say("the new model is better and is now the current one" if better else "the current model stays")
        return outcome

    def datalist(self) -> Datalist:
        """The labelled pairs, the breasts of a patient in one section, where they stay."""
        datastore = self.app.datastore()
        labels = ((pair, label_of(datastore, pair)) for pair in self.app.pairs(fresh=True))
        pairs = [labelled_pair(self.app.fetched(pair), label) for pair, label in labels if label is not None]
        file = self.folder / "model" / "sections.json"
        known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        sections = sections_of(pairs, known)
        by_section = {
            section: tuple(pair for pair in pairs if sections[pair.patient_id] == section)
            for section in ("training", "validation")
        }
        if not by_section["training"]:
            raise RequestError(
                f"labels of {len({pair.patient_id for pair in pairs})} patients; training needs those of at "
                "least two, one to learn from and one to compare on"
            )
        _write_json(file, sections)
        return Datalist("labels", by_section)

    def _evaluate(self, run: str, weights: Path) -> float | None:
        """The mean recall of a model on the validation section; None if there is nothing to find there."""
        self._bundle(
            "evaluating",
            "evaluate",
            run_name=run,
            weights=weights,
            section="validation",
            report=False,
            attention=False,
        )
        return read_metrics(self.folder / "runs" / run)["detection"][IOU]["mean_recall"]["value"]

    def _bundle(self, run_id: str, config: str, **options: Any) -> None:
        """A command of the bundle."""
        bundle = self.app.model.folder
        options |= {
            "config_file": str(config_files(bundle, config)),
            "bundle_root": bundle,
            "dataset_dir": self.folder / "labelled",
            "output_dir": self.folder / "runs",
            "experiment": "label",
        }
        if settings.MONAI_LABEL_TRACKING_URI:
            options["tracking_uri"] = settings.MONAI_LABEL_TRACKING_URI
        words = [f"--{name}={value}" for name, value in options.items()]
        process = get_context(START).Process(  # type: ignore[attr-defined]
            target=_run_bundle, args=(["run", run_id, *words],)
        )
        process.start()
        process.join()
        if process.exitcode:
            raise RequestError(f"{run_id} failed with status {process.exitcode}; the lines above say why")


def _run_bundle(words: list[str]) -> None:
    """``python -m monai.bundle WORDS``."""
    sys.argv = ["monai.bundle", *words]
    warnings.simplefilter("ignore")
    runpy.run_module("monai.bundle", run_name="__main__", alter_sys=True)


def checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a request; numbers alone, for the bundle's configs would run a text as code."""
    params = {name: request.get(name, default) for name, default in PARAMS.items()}
    for name, value in params.items():
        kinds = (int,) if isinstance(PARAMS[name], int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 1e6:
            raise RequestError(f"{name} is {value!r}; a number such as {PARAMS[name]} is expected")
    return params


def sections_of(pairs: Iterable[Pair], known: Mapping[str, str]) -> dict[str, str]:
    """The section of each patient; who has one keeps it, so that no model is tested on what it learnt from.

    Args:
        pairs: that are labelled.
        known: the section of each patient so far.
    """
    has_lesions: dict[str, bool] = {}
    for pair in pairs:
        marked = any(len(view.boxes) for view in pair.views.values())
        has_lesions[pair.patient_id] = has_lesions.get(pair.patient_id, False) or marked
    sections = dict(known)
    new = [patient for patient in has_lesions if patient not in known]
    for patient in sorted(new, key=lambda name: (not has_lesions[name], digest(name))):
        there = list(sections.values()).count("validation")
        sections[patient] = "validation" if there < VALIDATION_SHARE * (len(sections) + 1) else "training"
    return sections


def replace_weights(model: CurrentModel, weights: Path) -> None:
    """Make weights the current ones; the old ones stay beside them as previous.pt."""
    replace_file(model.weights.with_name("previous.pt"), model.weights)
    replace_file(model.weights, weights)


def say(words: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _write_json(file: Path, content: Any) -> None:
    write_text(file, json.dumps(content, indent=1) + "\n")
