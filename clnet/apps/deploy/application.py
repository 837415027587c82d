"""The app as MONAI Deploy runs it: three operators in a row."""

import os
from contextlib import ExitStack
from pathlib import Path

from monai.deploy.core import Application

from clnet.apps.deploy.operators import FindLesions, SelectPairs, WriteReports
from clnet.predict.bundle import METADATA, load
from clnet.predict.folder_run import PredictError, PredictSettings, only_run, refuse_output_in_input

CONFIG = Path(__file__).parent / "app.yaml"


class ClnetApp(Application):
    """From DICOM files to structured reports.

    Input, output and model come from the command line (``-i``, ``-o``, ``-m``) or from the environment
    variables of a container; settings from section ``clnet`` of the file at HOLOSCAN_CONFIG_PATH.

    Attributes:
        writer: the last operator; None before the app runs.
        held: the output, which no other run may write to until this is closed.
    """

    def __init__(self) -> None:
        self.writer: WriteReports | None = None
        self.held = ExitStack()
        super().__init__()
        self.name = "clnet"
        config = Path(os.environ.get("HOLOSCAN_CONFIG_PATH") or CONFIG)
        if not config.is_file():
            raise PredictError(f"{config}: no such configuration file; check HOLOSCAN_CONFIG_PATH")
        self.config(str(config))

    def compose(self) -> None:
        """Open the bundle and connect the operators."""
        # Log messages below warnings contain file names and studies.
        paths = Application.init_app_context([self.argv[0], "--log-level", "WARN", *self.argv[1:]])
        input_path, output_path = Path(paths.input_path), Path(paths.output_path)
        refuse_output_in_input(input_path, output_path)
        settings = self.settings()
        model = load(bundle_in(Path(paths.model_path)), settings.device)
        self.held.enter_context(only_run(output_path))
        select = SelectPairs(self, input_path, settings, name="select_pairs")
        find = FindLesions(self, model, name="find_lesions")
        self.writer = WriteReports(self, model, output_path, settings, name="write_reports")
        self.add_flow(select, find, {("breasts", "breasts")})
        self.add_flow(find, self.writer, {("findings", "findings")})

    def settings(self) -> PredictSettings:
        """The settings of the configuration file."""
        section = self.kwargs("clnet")
        try:
            return PredictSettings(**section)
        except TypeError as error:
            raise PredictError(f"section clnet of the configuration file is {section}: {error}") from error


def bundle_in(path: Path) -> Path:
    """The bundle at a path, or in the only subfolder that is one, as in a container."""
    if (path / METADATA).is_file():
        return path
    bundles = [file.parent.parent for file in path.glob(f"*/{METADATA}")]
    return bundles[0] if len(bundles) == 1 else path
