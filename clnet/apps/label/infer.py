"""Inference as MONAI Label requests it: for one image, whose partner view the app finds itself."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.batch_infer import BatchInferTask
from monailabel.interfaces.tasks.infer_v2 import InferTask, InferType

from clnet.apps.label.catalog import PairCatalog
from clnet.apps.label.current_model import CurrentModel
from clnet.apps.label.request_errors import RequestError
from clnet.apps.label.responses import boxes_of_image, lesions_of, slicer_markups
from clnet.errors import ClnetError
from clnet.findings.types import PairFindings
from clnet.predict.loading import LoadedBreast
from clnet.predict.model import BundleModel
from clnet.reports.dicom import DICOM_REPORTS
from clnet.reports.objects import save_object
from clnet.reports.study import StudyReport

PARAMS = {"min_score": None, "alone": False, "report": ""}


class InferPair(InferTask):
    """Runs the model on the pair of an image.

    Request params:
        min_score: see `merge_into_lesions`; by default the model's.
        alone: analyse the image by itself if its partner view is missing.
        report: which file to return: a DICOM report of the breast, a key of `DICOM_REPORTS`; by default 3D
            Slicer's markups of the image.
    """

    def __init__(self, catalog: PairCatalog, model: CurrentModel) -> None:
        super().__init__(
            InferType.DETECTION,
            ["mass"],
            2,
            "Masses of an image, linked to those of the other view",
            dict(PARAMS),
        )
        self.catalog = catalog
        self.model = model

    def is_valid(self) -> bool:
        """There is always a model."""
        return True

    def get_path(self, validate: bool = True) -> str | None:
        """The weights, for clients that download them."""
        return str(self.model.weights)

    def __call__(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The requested file, and the boxes of the image."""
        params = _checked(request)
        datastore = self.catalog.datastore
        image = datastore.known(request["image"])
        pair = self.catalog.pairs().of_image(image)
        view = pair.view_of(image)
        if pair.missing_view and not params["alone"]:
            raise RequestError(
                f"image {image!r} has no partner: the datastore has no {pair.missing_view.upper()} of this "
                'breast; params {"alone": true} analyse the one view'
            )
        model, loaded, findings = self.model.find(self.catalog.fetched(pair))
        if params["min_score"] is None:
            params["min_score"] = model.min_score
        if view not in findings.views:
            raise RequestError(loaded.refused[pair.breast.pair.views[view].image])
        boxes = boxes_of_image(lesions_of(findings, params["min_score"]), pair, view)
        markups = slicer_markups(boxes, datastore.spacing_of(image), model.name)
        response = {
            "model": model.name,
            "notice": model.notice,
            "min_score": params["min_score"],
            "pair_id": pair.pair_id,
            "image": image,
            "view": view,
            "laterality": pair.breast.pair.laterality,
            "partner": next((other for other in pair.images.values() if other != image), None),
            "boxes": boxes,
            "warnings": [*pair.warnings[view], *map(datastore.without_folder, loaded.refused.values())],
            "markups": markups,
        }
        if params["report"]:
            return _report(params, model, loaded, findings), response
        file = _temporary_file(".mrk.json")
        file.write_text(json.dumps(markups, indent=1) + "\n", encoding="utf-8")
        return str(file), response


class InferAll(BatchInferTask):
    """Runs the model on many images, one after the other; a refused image does not stop the rest."""

    def __call__(
        self, request: Mapping[str, Any], datastore: Datastore, infer: Callable[..., dict[str, Any]]
    ) -> dict[str, Any]:
        """The boxes of each image, or the reason why it was refused."""
        responses = {}
        for image in sorted(self.get_images(request, datastore)):
            try:
                result = infer({**request, "image": image}, datastore)
                Path(result["file"]).unlink()
                responses[image] = result["params"]
            except ClnetError as error:
                responses[image] = {"refused": datastore.without_folder(str(error))}
        return responses


def _checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a request, each of its expected type."""
    params = {name: request.get(name, default) for name, default in PARAMS.items()}
    score = params["min_score"]
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is not None and not (is_number and 0 <= score <= 1):
        raise RequestError(f"min_score is {score!r}; expected a number from 0 to 1")
    if not isinstance(params["alone"], bool):
        raise RequestError(f"alone is {params['alone']!r}; expected true or false")
    if params["report"] and params["report"] not in DICOM_REPORTS:
        raise RequestError(f"report is {params['report']!r}; expected one of {', '.join(DICOM_REPORTS)}")
    return params


def _report(
    params: Mapping[str, Any], model: BundleModel, loaded: LoadedBreast, findings: PairFindings
) -> str:
    """A DICOM report as `clnet predict` writes it, of this breast alone."""
    result = model.result(loaded, findings, params["min_score"], str)
    breast = result.report(None if result.shows_text else result.draw())
    if breast is None:
        raise RequestError("no DICOM report: the images are not DICOM")
    study = StudyReport((breast,), model.version, model.notice, params["min_score"])
    documents = DICOM_REPORTS[params["report"]](study)
    if not documents:
        raise RequestError("no picture: the images may show the patient's name")
    file = _temporary_file(".dcm")
    save_object(documents[0], file)
    return str(file)


def _temporary_file(ending: str) -> Path:
    """A file that MONAI Label removes after sending it."""
    with tempfile.NamedTemporaryFile(prefix="clnet-", suffix=ending, delete=False) as file:
        return Path(file.name)
