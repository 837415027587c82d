"""The three operators of the app; all that they do is done by the parts that `clnet predict` is made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monai.deploy.core import ExecutionContext, Fragment, InputContext, Operator, OperatorSpec, OutputContext

from clnet.data.study import LeftOut
from clnet.findings.types import PairFindings
from clnet.predict.breasts import BreastImages, Task, find_breasts
from clnet.predict.folder_run import Analysis, PredictSettings
from clnet.predict.loading import BreastDataset, LoadedBreast
from clnet.predict.model import BundleModel
from clnet.predict.summary import Summary


@dataclass(frozen=True)
class ChosenBreasts:
    """From `SelectPairs` to `FindLesions`.

    Attributes:
        task: all that there is to analyse.
        breasts: the next of them.
        are_last: whether no more come.
    """

    task: Task
    breasts: list[BreastImages]
    are_last: bool


@dataclass(frozen=True)
class AnalysedBreasts:
    """From `FindLesions` to `WriteReports`.

    Attributes:
        chosen: which they are.
        found: each breast as it was read, with its findings; None if it could not be read.
    """

    chosen: ChosenBreasts
    found: list[tuple[LoadedBreast, PairFindings | None]]


class SelectPairs(Operator):
    """Chooses the CC and MLO image of each breast, by SOP instance.

    The series selector of the SDK chooses series. In mammography that is too coarse: each view may be a
    series of its own, or one series holds all views of both breasts, beside magnifications and retakes.

    Args:
        fragment: the application.
        input_path: the DICOM files.
        settings: how many breasts to send at a time, and whether to take Secondary Capture images.
        name: of the operator.
    """

    def __init__(self, fragment: Fragment, input_path: Path, settings: PredictSettings, name: str) -> None:
        self.input_path = input_path
        self.settings = settings
        self.batches: list[ChosenBreasts] = []
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """Out go `ChosenBreasts`."""
        spec.output("breasts")

    def start(self) -> None:
        """Look at the headers. An input without breasts gives one empty batch."""
        task = find_breasts(self.input_path, self.settings.secondary_capture)
        size = self.settings.batch_size
        starts = range(0, max(len(task.breasts), 1), size)
        self.batches = [
            ChosenBreasts(task, list(task.breasts[start : start + size]), start == starts[-1])
            for start in starts
        ]

    def compute(self, op_input: InputContext, op_output: OutputContext, context: ExecutionContext) -> None:
        """Send the next breasts."""
        op_output.emit(self.batches.pop(0), "breasts")
        if not self.batches:
            self.stop_execution()


class FindLesions(Operator):
    """Reads and preprocesses breasts as the bundle says, and runs its network on them.

    Args:
        fragment: the application.
        model: the bundle.
        name: of the operator.
    """

    def __init__(self, fragment: Fragment, model: BundleModel, name: str) -> None:
        self.model = model
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """In come `ChosenBreasts`, out go `AnalysedBreasts`."""
        spec.input("breasts")
        spec.output("findings")

    def compute(self, op_input: InputContext, op_output: OutputContext, context: ExecutionContext) -> None:
        """Analyse some breasts."""
        chosen: ChosenBreasts = op_input.receive("breasts")
        dataset = BreastDataset(chosen.breasts, self.model.loader)
        loaded = [dataset[index] for index in range(len(dataset))]
        op_output.emit(AnalysedBreasts(chosen, self.model.find_in_breasts(loaded)), "findings")


class WriteReports(Operator):
    """Writes both structured reports and a picture of each breast, and after the last one what is common.

    Args:
        fragment: the application.
        model: the bundle.
        output_path: the folder for the results.
        settings: which lesions to report.
        name: of the operator.

    Attributes:
        summary: what was done; None before the end.
    """

    def __init__(
        self, fragment: Fragment, model: BundleModel, output_path: Path, settings: PredictSettings, name: str
    ) -> None:
        self.model = model
        self.output_path = output_path
        self.settings = settings
        self.analysis: Analysis | None = None
        self.refused: list[LeftOut] = []
        self.summary: Summary | None = None
        super().__init__(fragment, name=name)

    def setup(self, spec: OperatorSpec) -> None:
        """In come `AnalysedBreasts`."""
        spec.input("findings")

    def compute(self, op_input: InputContext, op_output: Any, context: ExecutionContext) -> None:
        """Write the results of some breasts."""
        analysed: AnalysedBreasts = op_input.receive("findings")
        task = analysed.chosen.task
        if self.analysis is None:
            self.analysis = Analysis(self.model, task, self.output_path, self.settings)
        for loaded, findings in analysed.found:
            self.refused += self.analysis.write_or_refuse(loaded, findings)
        if analysed.chosen.are_last:
            self.summary = self.analysis.finish(self.refused, done_before=0)
