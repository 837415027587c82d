"""The three operators of the app; each calls the parts that `clnet predict` is made of.

Each message carries the task beside its batch, so that the last operator knows what there is to analyse.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monai.deploy.core import ExecutionContext, Fragment, InputContext, Operator, OperatorSpec, OutputContext

from clnet.data.study import LeftOut
from clnet.files import WriteError
from clnet.findings.types import PairFindings
from clnet.predict.breasts import BreastImages, Task, find_breasts
from clnet.predict.folder_run import Analysis, PredictSettings
from clnet.predict.loading import LoadedBreast
from clnet.predict.model import BundleModel
from clnet.predict.studies import Study, group_by_study
from clnet.predict.summary import Summary


class SelectPairs(Operator):
    """Chooses the CC and MLO image of each breast, by SOP instance.

    The SDK's own selector chooses series. In mammography that is too coarse: each view may be a series of its
    own, or one series may hold all views of both breasts, together with magnifications and retakes.

    Args:
        fragment: the application.
        input_path: the DICOM files.
        settings: its batch_size and secondary_capture.
        name: of the operator.
    """

    def __init__(self, fragment: Fragment, input_path: Path, settings: PredictSettings, name: str) -> None:
        self.input_path = input_path
        self.settings = settings
        self.batches: list[tuple[Task, list[BreastImages]]] = []
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """Output: (task, breasts)."""
        spec.output("breasts")

    def start(self) -> None:
        """Read the headers. An input without breasts gives one empty batch."""
        task = find_breasts(self.input_path, self.settings.secondary_capture)
        size = self.settings.batch_size
        starts = range(0, max(len(task.breasts), 1), size)
        self.batches = [(task, list(task.breasts[start : start + size])) for start in starts]

    def compute(self, op_input: InputContext, op_output: OutputContext, context: ExecutionContext) -> None:
        """Send the next batch."""
        op_output.emit(self.batches.pop(0), "breasts")
        if not self.batches:
            self.stop_execution()


class FindLesions(Operator):
    """Reads and preprocesses breasts as the bundle's configs say, and runs its network on them.

    Args:
        fragment: the application.
        model: the bundle.
        name: of the operator.
    """

    def __init__(self, fragment: Fragment, model: BundleModel, name: str) -> None:
        self.model = model
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """Input: (task, breasts). Output: (task, loaded breasts with their findings)."""
        spec.input("breasts")
        spec.output("findings")

    def compute(self, op_input: InputContext, op_output: OutputContext, context: ExecutionContext) -> None:
        """Analyse a batch."""
        task, breasts = op_input.receive("breasts")
        batches = self.model.analyse(breasts, batch_size=max(len(breasts), 1), workers=0)
        op_output.emit((task, [item for batch in batches for item in batch]), "findings")


class WriteReports(Operator):
    """Writes a picture of each breast, the reports of each study, and after the last one the common files.

    Args:
        fragment: the application.
        model: the bundle.
        output_path: the folder for the results.
        settings: which lesions to report.
        name: of the operator.

    Attributes:
        summary: the outcome; None before the end.
        error: why nothing more could be written; what comes then is not.
    """

    def __init__(
        self, fragment: Fragment, model: BundleModel, output_path: Path, settings: PredictSettings, name: str
    ) -> None:
        self.model = model
        self.output_path = output_path
        self.settings = settings
        self.analysis: Analysis | None = None
        self.studies: list[Study] = []
        self.received = 0
        self.refused: list[LeftOut] = []
        self.summary: Summary | None = None
        self.error: WriteError | None = None
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """Input: (task, loaded breasts with their findings)."""
        spec.input("findings")

    def compute(self, op_input: InputContext, op_output: Any, context: ExecutionContext) -> None:
        """Write the results of a batch."""
        task, found = op_input.receive("findings")
        try:
            if self.error is None:
                self._write(task, found)
        except WriteError as error:
            self.error = error

    def _write(self, task: Task, found: Sequence[tuple[LoadedBreast, PairFindings | None]]) -> None:
        if self.analysis is None:
            self.studies = group_by_study(task.breasts)
            everything = [breast.breast_id for breast in task.breasts]
            self.analysis = Analysis(
                self.model, task, self.output_path, self.settings, self.studies, everything
            )
        for loaded, findings in found:
            self.refused += self.analysis.write_or_refuse(loaded, findings)
        self.received += len(found)
        if self.received == len(task.breasts):
            self.summary = self.analysis.finish(self.studies, self.refused, done_before=0)
