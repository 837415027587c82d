"""The app as MONAI Label loads it."""

import sys
import threading
import time
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

from clnet.apps.label.active import DISAGREEMENT, OfferDisagreement, ScoreDisagreement
from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.dicomweb import StudyServer
from clnet.apps.label.infer import InferAll, InferPair
from clnet.apps.label.labels import label_of
from clnet.apps.label.model import CurrentModel
from clnet.apps.label.pairs import ImagePair, ImagePairs, find_image_pairs
from clnet.apps.label.refusals import NotThereError, RequestError
from clnet.apps.label.train import TrainPair
from clnet.errors import ClnetError
from clnet.predict.breasts import digest

MODEL = "clnet"


class ClnetLabelApp(MONAILabelApp):
    """CL-Net at the side of who annotates pairs.

    Args:
        app_dir: where MONAI Label keeps what belongs to the app: models, runs, logs.
        studies: a folder, or the address of a DICOMweb server.
        conf: settings of the command line: bundle, secondary_capture, origins (of pages on other sites that
            may ask, with commas).
    """

    def __init__(self, app_dir: str, studies: str, conf: dict[str, str]) -> None:
        bundle = conf.get("bundle")
        self.model = CurrentModel(Path(app_dir) / "model" / MODEL, Path(bundle) if bundle else None)
        self.secondary_capture = conf.get("secondary_capture", "false").lower() == "true"
        self.origins = [word.strip() for word in conf.get("origins", "").split(",")]
        self._looked: tuple[float, ImagePairs] | None = None
        self._looking = threading.Lock()
        super().__init__(
            app_dir,
            studies,
            conf,
            name="clnet",
            description="CL-Net: masses in both views of a breast, and which are the same",
            labels=["mass"],
        )

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
        """One model."""
        return {MODEL: InferPair(self)}

    def init_batch_infer(self) -> InferAll:
        """The same model on many images."""
        return InferAll()

    def init_trainers(self) -> dict[str, TrainTask]:
        """One training."""
        return {MODEL: TrainPair(self)}

    def init_strategies(self) -> dict[str, Strategy]:
        """MONAI Label's own, and ours."""
        return {**super().init_strategies(), DISAGREEMENT: OfferDisagreement(self)}

    def init_scoring_methods(self) -> dict[str, ScoringMethod]:
        """What our strategy needs."""
        return {DISAGREEMENT: ScoreDisagreement(self)}

    def pairs(self, fresh: bool = False) -> ImagePairs:
        """The pairs of the datastore.

        Args:
            fresh: look again, even if that was done a moment ago.
        """
        datastore = self.datastore()
        with self._looking:
            now = time.monotonic()
            if fresh or self._looked is None or now - self._looked[0] > datastore.look_again_after:
                self._looked = now, find_image_pairs(datastore, self.secondary_capture)
            return self._looked[1]

    def fetched(self, pair: ImagePair) -> ImagePair:
        """A pair whose files are here."""
        for image in pair.images.values():
            self.datastore().file_of(image)
        return pair

    def unlabelled(self) -> list[ImagePair]:
        """The pairs without a label."""
        return [pair for pair in self.pairs() if label_of(self.datastore(), pair) is None]

    def infer(self, request: dict[str, Any], datastore: StudyFolder | None = None) -> dict[str, Any]:
        """Run a model on an image of the datastore.

        MONAI Label itself would take any path of the server's file system for an image, and paths of uploads.
        """
        task = self._infers.get(request.get("model"))
        if task is None:
            raise NotThereError(
                f"there is no model {request.get('model')!r}; expected {', '.join(self._infers)}"
            )
        file, params = task(request)
        return {"label": file, "tag": "original", "file": file, "params": params}

    def train(self, request: dict[str, Any]) -> dict[str, Any]:
        """Train, in the process that MONAI Label makes for it; an error is its last line."""
        if self._server_mode:
            raise RequestError("training runs in the background alone; leave run_sync out")
        try:
            return super().train(request)
        except ClnetError as error:
            sys.exit(f"training: {error}")

    def infer_wsi(self, request: dict[str, Any], datastore: StudyFolder | None = None) -> dict[str, Any]:
        """Refused: a mammogram is no slide."""
        raise RequestError(
            "this app has no model for whole-slide images; POST /infer/clnet?image=… runs a pair"
        )

    def async_scoring(self, method: str | None, params: dict[str, Any] | None = None) -> Any:
        """Score, unless that is under way or done: MONAI Label asks for it at every turn."""
        scoring: ScoreDisagreement = self._scoring_methods[DISAGREEMENT]
        if processes("scoring") or not scoring.waiting():
            return {}
        return super().async_scoring(method, params)
