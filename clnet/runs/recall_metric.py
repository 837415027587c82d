"""R@t as a metric of an Ignite engine, the same number in one process and in several."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ignite.engine import Engine
from ignite.metrics import Metric

from clnet.distributed import gather
from clnet.evaluation.froc import IOU_THRESHOLDS, MEAN_RATES, RATES, recall_table
from clnet.evaluation.hits import ImageResult


class MeanRecall(Metric):
    """The mean of R@t over some t at one IoU; its table of all R@t joins the engine's metrics.

    The engine's output (after `output_transform`) is a list with a mapping for each pair::

        {"pair_id": str,
         "present": bool [2],                        CC, MLO; absent views are no images
         "detection_boxes": [cc [n, 4], mlo [m, 4]],  xyxy, in the unit of the lesions' boxes
         "detection_scores": [cc [n], mlo [m]],
         "lesion_boxes": [cc [k, 4], mlo [l, 4]]}     xyxy

    A pair that comes twice, as padding of the last batches of several processes does, counts once. IoU does
    not change when an axis is scaled, so boxes normalised by the canvas do as well as pixels.

    After an epoch ``engine.state.metrics`` holds, beside the mean under the name of this metric,
    ``recall_iou0.5_fpi0.25`` and so on for every IoU threshold and rate.

    Args:
        iou: of the mean.
        mean_rates: the t that the mean is over.
        ious, rates: of the table.
        count_duplicates: as in `clnet.evaluation.froc.froc`.
        output_transform: from ``engine.state.output`` to the list above.
    """

    def __init__(
        self,
        iou: float = 0.5,
        mean_rates: Sequence[float] = MEAN_RATES,
        ious: Sequence[float] = IOU_THRESHOLDS,
        rates: Sequence[float] = RATES,
        count_duplicates: bool = False,
        output_transform: Callable[[Any], Any] = lambda output: output,
    ) -> None:
        self.iou = iou
        self.mean_rates = tuple(mean_rates)
        self.ious = tuple(sorted({*ious, iou}))
        self.rates = tuple(sorted({*rates, *mean_rates}))
        self.count_duplicates = count_duplicates
        super().__init__(output_transform)

    def reset(self) -> None:
        """Forget all pairs."""
        self._pairs: dict[str, list[ImageResult]] = {}
        self._images: list[ImageResult] | None = None
        self._table: dict[float, dict[float, float]] | None = None

    def update(self, output: Sequence[Mapping[str, Any]]) -> None:
        """Take in the pairs of a batch."""
        for pair in output:
            self._pairs[pair["pair_id"]] = [
                ImageResult(
                    _array(pair["detection_boxes"][view]),
                    _array(pair["detection_scores"][view]),
                    _array(pair["lesion_boxes"][view]),
                )
                for view in (0, 1)
                if pair["present"][view]
            ]

    def compute(self) -> float:
        """The mean recall in [0, 1] over the pairs of all processes; nan without lesions."""
        recall = self.table()[self.iou]
        return float(np.mean([recall[rate] for rate in self.mean_rates]))

    def table(self) -> dict[float, dict[float, float]]:
        """All R@t, ``table[iou][t]``, over the pairs of all processes. Every process must call it."""
        if self._table is None:
            self._table = recall_table(self.images(), self.rates, self.ious, self.count_duplicates)
        return self._table

    def images(self) -> list[ImageResult]:
        """The images of the pairs of all processes. Every process must call it."""
        if self._images is None:
            pairs = {pair_id: images for part in gather(self._pairs) for pair_id, images in part.items()}
            self._images = [image for pair_id in sorted(pairs) for image in pairs[pair_id]]
        return self._images

    def completed(self, engine: Engine, name: str) -> None:
        """Write the mean under its name, and the table beside it."""
        super().completed(engine, name)
        for iou, recall in self.table().items():
            for rate, value in recall.items():
                engine.state.metrics[f"recall_iou{iou:g}_fpi{rate:g}"] = value


def _array(values: Any) -> Any:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().float().numpy()  # numpy knows no bfloat16
    return np.asarray(values)
