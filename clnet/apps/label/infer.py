"""Inference as MONAI Label asks for it: by one image, whose partner the app finds itself."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monailabel.interfaces.datastore import Datastore
from monailabel.interfaces.tasks.batch_infer import BatchInferTask
from monailabel.interfaces.tasks.infer_v2 import InferTask, InferType

from clnet.apps.label.answer import boxes_of_image, lesions_of, slicer_markups
from clnet.apps.label.pairs import missing_view
from clnet.apps.label.refusals import RequestError
from clnet.errors import ClnetError
from clnet.findings.types import PairFindings
from clnet.predict.folder_run import PredictSettings
from clnet.predict.loading import LoadedBreast
from clnet.predict.model import BundleModel
from clnet.reports.sr_document import save_report
from clnet.reports.sr_mammography_cad import mammography_cad_report
from clnet.reports.sr_measurements import measurement_report

if TYPE_CHECKING:
    from clnet.apps.label.app import ClnetLabelApp

REPORTS = {"measurements": measurement_report, "mammography_cad": mammography_cad_report}
PARAMS = {"min_score": PredictSettings.min_score, "alone": False, "report": ""}


class InferPair(InferTask):
    """Runs the pair of an image.

    Params of a request:
        min_score: see `merge_into_lesions`.
        alone: whether to go on where there is no partner view.
        report: the file to make: "measurements" or "mammography_cad", the DICOM SR of the breast; by default
            Slicer's markups of the image.
    """

    def __init__(self, app: "ClnetLabelApp") -> None:
        super().__init__(
            InferType.DETECTION,
            ["mass"],
            2,
            "Masses of an image, linked to those of the other view",
            dict(PARAMS),
        )
        self.app = app

    def is_valid(self) -> bool:
        """There is always a model."""
        return True

    def get_path(self, validate: bool = True) -> str | None:
        """Of the weights, for who downloads them."""
        return str(self.app.model.weights)

    def __call__(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The file that was asked for, and the boxes of the image."""
        params = _checked(request)
        datastore = self.app.datastore()
        image = datastore.known(request["image"])
        pair = self.app.pairs().of_image(image)
        view, missing = pair.view_of(image), missing_view(pair)
        if missing and not params["alone"]:
            raise RequestError(
                f"image {image!r} has no partner: the datastore has no {missing.upper()} of this breast; "
                'params {"alone": true} asks for what the model sees in one view'
            )
        model, loaded, findings = self.app.model.find(self.app.fetched(pair))
        if view not in findings.views:
            raise RequestError(loaded.refused[pair.breast.pair.views[view].image])
        boxes = boxes_of_image(lesions_of(findings, params["min_score"]), pair, view)
        markups = slicer_markups(boxes, datastore.spacing_of(image), model.name)
        answer = {
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
            return _report(params, model, loaded, findings), answer
        return _written(markups), answer


class InferAll(BatchInferTask):
    """Runs many images, one after the other; an image that is refused does not stop the rest."""

    def __call__(
        self, request: Mapping[str, Any], datastore: Datastore, infer: Callable[..., dict[str, Any]]
    ) -> dict[str, Any]:
        """The boxes of each image, or the reason why there are none."""
        answers = {}
        for image in sorted(self.get_images(request, datastore)):
            try:
                result = infer({**request, "image": image}, datastore)
                Path(result["file"]).unlink()
                answers[image] = result["params"]
            except ClnetError as error:
                answers[image] = {"refused": datastore.without_folder(str(error))}
        return answers


def _checked(request: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a request, each of the kind that is expected."""
    params = {name: request.get(name, default) for name, default in PARAMS.items()}
    score = params["min_score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise RequestError(f"min_score is {score!r}; a number from 0 to 1 is expected")
    if not isinstance(params["alone"], bool):
        raise RequestError(f"alone is {params['alone']!r}; true or false is expected")
    if params["report"] and params["report"] not in REPORTS:
        raise RequestError(f"report is {params['report']!r}; expected one of {', '.join(REPORTS)}")
    return params


def _report(
    params: Mapping[str, Any], model: BundleModel, loaded: LoadedBreast, findings: PairFindings
) -> str:
    """The DICOM SR of a breast, the one that `clnet predict` writes."""
    report = model.result(loaded, findings, params["min_score"], str).report()
    if report is None:
        raise RequestError("no DICOM report: the images are not DICOM")
    file = _temporary(".dcm")
    save_report(REPORTS[params["report"]](report), file)
    return str(file)


def _written(markups: Mapping[str, Any]) -> str:
    file = _temporary(".mrk.json")
    file.write_text(json.dumps(markups, indent=1) + "\n", encoding="utf-8")
    return str(file)


def _temporary(ending: str) -> Path:
    """A file that MONAI Label removes when it was sent."""
    with tempfile.NamedTemporaryFile(prefix="clnet-", suffix=ending, delete=False) as file:
        return Path(file.name)
