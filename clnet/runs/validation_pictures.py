"""What a validation looks like: its FROC curves, and some of its pairs with what was found in them."""

from pathlib import Path
from typing import Any

import numpy as np
from ignite.engine import Events
from monai.engines.workflow import Workflow

from clnet.data.header import may_show_text
from clnet.data.pair import VIEW_NAMES
from clnet.data.pictures import sheet
from clnet.data.reader import read_image
from clnet.evaluation.figure import draw_froc
from clnet.evaluation.froc import RATES, cutoff_scores, froc, recall_table
from clnet.evaluation.hits import find_hits, find_overlaps
from clnet.evaluation.metrics import CURVE_RATES
from clnet.findings.lesions import merge_into_lesions
from clnet.findings.types import PairFindings
from clnet.reports.picture import findings_picture
from clnet.runs.recall_metric import MeanRecall

SHOWN_RATE = 0.25  # false positives per image: the examples show what is found at that rate


class ValidationPictures:
    """Keeps ``froc.png`` and ``examples.png`` of the best validation so far, the one of ``model.pt``.

    The examples are the first pairs with lesions, the same ones every time. They are numbered, and images
    with burned-in text are left out: the pictures go to MLflow, which must not know patients.

    Args:
        run_dir: where the pictures go.
        metric: of the same engine, and its key metric.
        examples: how many pairs are drawn.
    """

    def __init__(self, run_dir: str | Path, metric: MeanRecall, examples: int = 6) -> None:
        self.run_dir = Path(run_dir)
        self.metric = metric
        self.examples = examples
        self._kept: list[tuple[PairFindings, list[Any], list[Any]]] = []

    def attach(self, engine: Workflow) -> None:
        """Follow the evaluator; the first process alone draws."""
        if engine.state.rank != 0:
            return
        engine.add_event_handler(Events.STARTED, lambda _: self._kept.clear())
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._keep)
        engine.add_event_handler(Events.COMPLETED, self._draw)

    def _keep(self, engine: Workflow) -> None:
        output = engine.state.output
        for found, lesions, meta in zip(
            output["findings"], output["lesion_boxes"], engine.state.batch["meta"], strict=True
        ):
            shows_text = any(may_show_text(view["warnings"]) for view in meta if view)
            if len(self._kept) < self.examples and any(len(boxes) for boxes in lesions) and not shows_text:
                self._kept.append((found, lesions, meta))

    def _draw(self, engine: Workflow) -> None:
        images = self.metric.images()
        has_lesions = any(len(image.lesions) for image in images)
        if engine.state.best_metric_epoch != engine.state.epoch or not has_lesions:
            return
        overlaps = find_overlaps(images)
        curve = froc(find_hits(overlaps, self.metric.iou), self.metric.count_duplicates)
        each = np.arange(len(images))
        shown_above = float(cutoff_scores(curve, [SHOWN_RATE], each, np.ones((1, len(images))))[0, 0])
        table = recall_table(images, CURVE_RATES, self.metric.ious, self.metric.count_duplicates)
        curves = {
            f"IoU ≥ {iou:g}": {"fpi": list(recall), "value": list(recall.values()), "low": [None]}
            for iou, recall in table.items()
        }
        draw_froc({f"validation, epoch {engine.state.epoch}": curves}, self.run_dir / "froc.png", RATES)
        pictures = [
            findings_picture(
                {
                    name: read_image(view["file"]).pixels if view else None
                    for name, view in zip(VIEW_NAMES, meta, strict=True)
                },
                merge_into_lesions(found, np.nextafter(shown_above, np.inf)),
                f"validation pair {number}   white: marked, coloured: found",
                dict(zip(VIEW_NAMES, lesions, strict=True)),
            )
            for number, (found, lesions, meta) in enumerate(self._kept, start=1)
        ]
        if pictures:
            sheet(pictures, columns=3).save(self.run_dir / "examples.png")
