"""The app as MONAI Label loads it."""

import sys
from functools import cached_property
from pathlib import Path
from typing import Any

from dicomweb_client.session_utils import create_session_from_user_pass
from monailabel.config import settings
from monailabel.datastore.dicom import DICOMwebClientX
from monailabel.interfaces.app import MONAILabelApp
from monailabel.interfaces.tasks.infer_v2 import InferTask
from monailabel.interfaces.tasks.scoring import ScoringMethod
from monailabel.interfaces.tasks.strategy import Strategy
from monailabel.interfaces.tasks.train import TrainTask
from monailabel.utils.async_tasks.utils import processes

from clnet.apps.label.access import Access
from clnet.apps.label.catalog import PairCatalog
from clnet.apps.label.current_model import CurrentModel
from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.dicomweb import StudyServer
from clnet.apps.label.disagreement import DISAGREEMENT, ScoreDisagreement, SuggestDisagreement
from clnet.apps.label.infer import InferAll, InferPair
from clnet.apps.label.request_errors import NotFoundError, RequestError
from clnet.apps.label.train import TrainPair
from clnet.errors import ClnetError
from clnet.predict.breasts import digest

MODEL = "clnet"


class ClnetLabelApp(MONAILabelApp):
    """CL-Net as an assistant for annotating pairs.

    Args:
        app_dir: where MONAI Label stores models, runs and logs of the app.
        studies: a folder, or the address of a DICOMweb server.
        conf: `--conf` settings of the command line: bundle, secondary_capture, origins (other sites
            whose pages may send requests) and hosts (names of this machine), each separated by commas.
    """

    def __init__(self, app_dir: str, studies: str, conf: dict[str, str]) -> None:
        bundle = conf.get("bundle")
        self.model = CurrentModel(Path(app_dir) / "model" / MODEL, Path(bundle) if bundle else None)
        self.secondary_capture = conf.get("secondary_capture", "false").lower() == "true"
        self.access = Access(conf.get("origins", ""), conf.get("hosts", ""))
        super().__init__(
            app_dir,
            studies,
            conf,
            name="clnet",
            description="CL-Net: masses in both views of a breast, and which are the same",
            labels=["mass"],
        )

    @cached_property
    def catalog(self) -> PairCatalog:
        """The pairs of the datastore."""
        return PairCatalog(self.datastore(), self.secondary_capture)

    def init_datastore(self) -> StudyFolder:
        """The studies."""
        if not self.studies.startswith(("http://", "https://")):
            return StudyFolder(self.studies, settings.MONAI_LABEL_DATASTORE_FILE_EXT)
        address = self.studies.strip().rstrip("/")
        name, password = settings.MONAI_LABEL_DICOMWEB_USERNAME, settings.MONAI_LABEL_DICOMWEB_PASSWORD
        client = DICOMwebClientX(
            url=address,
            session=create_session_from_user_pass(name, password) if name and password else None,
            qido_url_prefix=settings.MONAI_LABEL_QIDO_PREFIX,
            wado_url_prefix=settings.MONAI_LABEL_WADO_PREFIX,
            stow_url_prefix=settings.MONAI_LABEL_STOW_PREFIX,
        )
        cache = settings.MONAI_LABEL_DICOMWEB_CACHE_PATH.strip() or Path(self.app_dir) / "dicomweb"
        return StudyServer(client, Path(cache) / digest(address), settings.MONAI_LABEL_DICOMWEB_SEARCH_FILTER)

    def init_infers(self) -> dict[str, InferTask]:
        """The one model."""
        return {MODEL: InferPair(self.catalog, self.model)}

    def init_batch_infer(self) -> InferAll:
        """The same model on many images."""
        return InferAll()

    def init_trainers(self) -> dict[str, TrainTask]:
        """The one training."""
        return {MODEL: TrainPair(self.catalog, self.model, Path(self.app_dir))}

    def init_strategies(self) -> dict[str, Strategy]:
        """MONAI Label's strategies and ours."""
        return {**super().init_strategies(), DISAGREEMENT: SuggestDisagreement(self.catalog)}

    def init_scoring_methods(self) -> dict[str, ScoringMethod]:
        """The scores that our strategy needs."""
        return {DISAGREEMENT: ScoreDisagreement(self.catalog, self.model)}

    def infer(self, request: dict[str, Any], datastore: StudyFolder | None = None) -> dict[str, Any]:
        """Run a model on an image of the datastore.

        MONAI Label itself would accept any path on the server's file system as an image, and uploads.
        """
        task = self._infers.get(request.get("model"))
        if task is None:
            raise NotFoundError(
                f"there is no model {request.get('model')!r}; expected {', '.join(self._infers)}"
            )
        file, params = task(request)
        return {"label": file, "tag": "original", "file": file, "params": params}

    def train(self, request: dict[str, Any]) -> dict[str, Any]:
        """Train in the process that MONAI Label starts for it; an error becomes the last line of its log."""
        if self._server_mode:
            raise RequestError("training only runs in the background; leave out run_sync")
        try:
            return super().train(request)
        except ClnetError as error:
            sys.exit(f"training: {error}")

    def next_sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """The next image to annotate; MONAI Label adds where its file is."""
        sample = dict(super().next_sample(request) or {})
        sample.pop("path", None)
        return sample

    def infer_wsi(self, request: dict[str, Any], datastore: StudyFolder | None = None) -> dict[str, Any]:
        """Refused: a mammogram is not a whole-slide image."""
        raise RequestError(
            "this app has no model for whole-slide images; POST /infer/clnet?image=… runs a pair"
        )

    def async_scoring(self, method: str | None, params: dict[str, Any] | None = None) -> Any:
        """Score, unless scoring is running or done: MONAI Label requests it after every change."""
        scoring: ScoreDisagreement = self._scoring_methods[DISAGREEMENT]
        if processes("scoring") or not scoring.pending():
            return {}
        return super().async_scoring(method, params)
