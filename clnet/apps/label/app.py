"""The app as MONAI Label loads it."""

from pathlib import Path
from typing import Any

from clnet.apps.label import compatibility  # noqa: F401  before MONAI Label
from monailabel.config import settings
from monailabel.interfaces.app import MONAILabelApp

from clnet.apps.label.datastore import StudyFolder
from clnet.apps.label.model import CurrentModel
from clnet.apps.label.pairs import ImagePairs, find_image_pairs

MODEL = "clnet"


class ClnetLabelApp(MONAILabelApp):
    """CL-Net at the side of who annotates pairs.

    Args:
        app_dir: where MONAI Label keeps what belongs to the app: models, logs.
        studies: a folder, or the address of a DICOMweb server.
        conf: settings of the command line: bundle, secondary_capture.
    """

    def __init__(self, app_dir: str, studies: str, conf: dict[str, str]) -> None:
        bundle = conf.get("bundle")
        self.model = CurrentModel(Path(app_dir) / "model" / MODEL, Path(bundle) if bundle else None)
        self.secondary_capture = conf.get("secondary_capture", "false").lower() == "true"
        super().__init__(
            app_dir, studies, conf, name="clnet", description="CL-Net: masses in both views of a breast", labels=["mass"]
        )

    def init_datastore(self) -> StudyFolder:
        """The studies."""
        return StudyFolder(self.studies, settings.MONAI_LABEL_DATASTORE_FILE_EXT)

    def pairs(self) -> ImagePairs:
        """The pairs of the datastore as it is now."""
        return find_image_pairs(self.datastore(), self.secondary_capture)
