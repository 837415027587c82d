"""What joins MONAI's evaluator and the evaluation: input of the metric, metrics of written findings."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ignite.engine import Events
from monai.engines.workflow import Workflow

from clnet.data.pair import VIEW_NAMES
from clnet.evaluation.folder import evaluate_files
from clnet.evaluation.protocols import settings_of
from clnet.evaluation.tables import metrics_tables
from clnet.findings.types import FINDINGS_FILE

logger = logging.getLogger(__name__)


def pairs_of_output(output: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pairs of a batch for `MeanRecall`, all in pixels of the stored images.

    Args:
        output: of an engine with `DecodeFindingsd` as post-processing: ``findings`` and ``lesion_boxes``.
    """
    pairs = []
    for found, lesion_boxes in zip(output["findings"], output["lesion_boxes"], strict=True):
        views = [getattr(found, name) for name in VIEW_NAMES]
        pairs.append(
            {
                "pair_id": found.pair_id,
                "present": [view is not None for view in views],
                "detection_boxes": [view.boxes if view else () for view in views],
                "detection_scores": [view.scores if view else () for view in views],
                "lesion_boxes": lesion_boxes,
            }
        )
    return pairs


class EvaluationWriter:
    """Does what `clnet evaluate` does, with the findings that `FindingsWriter` has just written.

    Args:
        run_dir: where ``findings.json`` lies and the metrics go.
        dataset_dir: the data set of the findings.
        section: its section.
        report: whether to make the page too.
        protocol: the rules of counting, a name of `clnet.evaluation.protocols`.
    """

    def __init__(
        self,
        run_dir: str | Path,
        dataset_dir: str | Path,
        section: str,
        report: bool = True,
        protocol: str = "default",
    ) -> None:
        self.run_dir = Path(run_dir)
        self.dataset_dir = Path(dataset_dir)
        self.section = section
        self.report = report
        self.settings = settings_of(protocol)

    def attach(self, engine: Workflow) -> None:
        """Act when the evaluator has finished; to be attached after the writer of the findings."""
        engine.add_event_handler(Events.COMPLETED, self)

    def __call__(self, engine: Workflow) -> None:
        """Evaluate, write, and show the tables."""
        if engine.state.rank == 0:
            datalist, findings = self.dataset_dir / "datalist.json", self.run_dir / FINDINGS_FILE
            evaluation = evaluate_files(
                datalist, findings, self.section, self.run_dir, self.settings, self.report
            )
            logger.info("metrics: %s\n%s", self.run_dir, metrics_tables(evaluation.metrics))
