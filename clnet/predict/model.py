"""A model that finds and links lesions: from images to results, a batch at a time."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard, cast

import torch
from torch import nn
from torch.utils.data import DataLoader

from clnet import __version__
from clnet.data.pair import VIEW_NAMES
from clnet.findings.consistency import mismatch_warning
from clnet.findings.result import ViewResult
from clnet.findings.types import PairFindings
from clnet.predict.analysed import AnalysedBreast
from clnet.predict.breasts import (
    Arrays,
    BreastImages,
    InputError,
    Source,
    Task,
    breast_of_arrays,
    find_breasts,
    source_key,
)
from clnet.predict.loading import BreastDataset, LoadedBreast, PairLoader
from clnet.preprocessing.batch import Batch, collate_pairs, prepare_batch
from clnet.processes import end_with_parent

logger = logging.getLogger(__name__)

BATCH_SIZE = 8


@dataclass(frozen=True)
class BundleModel:
    """What a bundle does to the images of breasts; `clnet.load` opens one.

    Attributes:
        name: variant, version and a digest of the weights: another network has another name.
        version: of the bundle, and the digest.
        notice: a sentence on its use, at most 64 characters.
        device: where the network is.
        min_score: the least score of a lesion, unless another is asked for.
        min_consistency: below it a result warns that the two views may not be of one breast.
        network, inferer: from a batch to raw outputs.
        loader: from images to samples.
        postprocessing: from raw outputs to findings.
    """

    name: str
    version: str
    notice: str
    device: torch.device
    min_score: float
    min_consistency: float
    network: nn.Module = field(repr=False)
    inferer: Callable[..., Any] = field(repr=False)
    loader: PairLoader = field(repr=False)
    postprocessing: Callable[[Any], Any] = field(repr=False)

    def predict(
        self,
        source: Source | Arrays,
        *,
        laterality: str | None = None,
        min_score: float | None = None,
        batch_size: int = BATCH_SIZE,
        workers: int = 0,
        secondary_capture: bool = False,
    ) -> Iterator[AnalysedBreast]:
        """Find and link the lesions of every breast in an input. Batches are computed as they are needed.

        Args:
            source: a DICOM file, a folder of them, several of these, a datalist or its file; or two arrays
                (cc, mlo), each [H, W], rows first, bright where dense, or None for a missing view.
            laterality: "L" or "R", for arrays.
            min_score: the least score of a lesion; by default the model's.
            batch_size: breasts that pass the network together.
            workers: processes that read and preprocess; 0 for none.
            secondary_capture: accept Secondary Capture images.

        Returns:
            An iterator over results, one per breast: ``lesions``, ``findings``, ``warnings``, ``draw()``.
            Files that cannot be read are logged as warnings.
        """
        if _are_arrays(source):
            task = Task(Path(), [breast_of_arrays(source, laterality)])
        else:
            task = find_breasts(cast(Source, source), secondary_capture)
        if not task.breasts:
            reasons = "; ".join(item.reason for item in (*task.refused, *task.left_out)[:3])
            raise InputError(f"no CC or MLO mammogram in {source}" + (f" ({reasons})" if reasons else ""))
        for item in task.refused:
            logger.warning("refused %s", item.reason)
        least = self.min_score if min_score is None else min_score
        return self._results(task, least, batch_size, workers)

    def _results(
        self, task: Task, min_score: float, batch_size: int, workers: int
    ) -> Iterator[AnalysedBreast]:
        for batch in self.analyse(task.breasts, batch_size, workers):
            for loaded, findings in batch:
                for reason in loaded.refused.values():
                    logger.warning("refused %s", reason)
                if findings is not None:
                    yield self.result(loaded, findings, min_score, task.name_of)

    def analyse(
        self, breasts: Sequence[BreastImages], batch_size: int, workers: int
    ) -> Iterator[list[tuple[LoadedBreast, PairFindings | None]]]:
        """Read breasts and find their lesions, a batch at a time; see `find_in_breasts`."""
        batches = DataLoader(
            BreastDataset(breasts, self.loader),
            batch_size=batch_size,
            num_workers=min(workers, len(breasts)),
            collate_fn=list,
            worker_init_fn=end_with_parent,
        )
        for loaded in batches:
            yield self.find_in_breasts(loaded)

    def find_in_breasts(
        self, loaded: Sequence[LoadedBreast]
    ) -> list[tuple[LoadedBreast, PairFindings | None]]:
        """The findings of a batch of breasts; None for those of which no view could be read."""
        samples = [item.sample for item in loaded if item.sample is not None]
        findings = iter(self.find(collate_pairs(samples)) if samples else ())
        return [(item, None if item.sample is None else next(findings)) for item in loaded]

    @torch.inference_mode()
    def find(self, batch: Batch) -> list[PairFindings]:
        """The findings of each pair of a collated batch."""
        inputs, _, positional, named = prepare_batch(batch, self.device)
        outputs = self.inferer(inputs, self.network, *positional, **named)
        return self.postprocessing({**batch, "pred": outputs})["findings"]

    def result(
        self,
        loaded: LoadedBreast,
        findings: PairFindings,
        min_score: float,
        name_of: Callable[[Path], str],
    ) -> AnalysedBreast:
        """The result of a breast.

        Args:
            loaded: as it was read.
            findings: of the views that were read.
            min_score: the least score of a lesion.
            name_of: gives the name of a file in results.
        """
        breast, sample = loaded.breast, loaded.sample or {}
        mismatch = mismatch_warning(findings.consistency, self.min_consistency)
        metas = dict(zip(VIEW_NAMES, sample["meta"], strict=True))
        views = {
            name: ViewResult(
                name_of(breast.pair.views[name].image),
                metas[name]["rows"],
                metas[name]["columns"],
                tuple(metas[name]["warnings"]),
            )
            for name in findings.views
        }
        return AnalysedBreast(
            breast_id=breast.breast_id,
            laterality=breast.pair.laterality,
            key=self.key_of(breast, min_score),
            min_score=min_score,
            views=views,
            refused={
                name_of(file): reason.removeprefix(f"{file}: ") for file, reason in loaded.refused.items()
            },
            warnings=(*breast.warnings, *filter(None, [mismatch])),
            findings=findings,
            min_consistency=self.min_consistency,
            version=self.version,
            notice=self.notice,
            pictures=loaded.pictures,
            tags=loaded.tags,
        )

    def key_of(self, breast: BreastImages, min_score: float) -> str:
        """Changes with whatever the result of a breast depends on."""
        settings = (min_score, self.min_consistency)
        words = (__version__, self.name, *settings, breast.pair.pair_id, source_key(breast))
        return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


def _are_arrays(source: object) -> TypeGuard[Arrays]:
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        return False
    return all(array is None or hasattr(array, "__array__") for array in source)
