"""From a network's raw outputs to findings in the pixels of the stored images."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from clnet.boxes import clip_to_image, denormalise
from clnet.data.pair import VIEW_NAMES
from clnet.findings.consistency import PairConsistency
from clnet.findings.duplicates import kept_indices
from clnet.findings.types import Attention, Detections, Link, PairFindings
from clnet.preprocessing.placement import Placement


class DecodeFindingsd:
    """A post-processing transform for MONAI's evaluator.

    It adds ``findings``, a `PairFindings` for each pair, and hands on ``lesion_boxes``, what was marked, in
    the same pixels. Detections come from the detector, links from the matcher (Section 4.1).

    Args:
        max_detections: kept in each view, those with the highest scores.
        duplicate_iou: of detections of a view that overlap by this IoU or more the surest alone is kept; None
            keeps all.
        consistency: says how well the two views of a pair fit together; None for no such score.
    """

    def __init__(
        self,
        max_detections: int,
        duplicate_iou: float | None = None,
        consistency: PairConsistency | None = None,
    ) -> None:
        self.max_detections = max_detections
        self.duplicate_iou = duplicate_iou
        self.consistency = consistency

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read ``pred`` and the batch it belongs to; see `decode_findings`."""
        findings = decode_findings(
            data["pred"], data, self.max_detections, self.duplicate_iou, self.consistency
        )
        return {**data, "findings": findings, "lesion_boxes": data["original_boxes"]}


def decode_findings(
    outputs: Mapping[str, Tensor],
    batch: Mapping[str, Any],
    max_detections: int,
    duplicate_iou: float | None = None,
    consistency: PairConsistency | None = None,
) -> list[PairFindings]:
    """Turn the outputs of `CLNet` for a batch into findings.

    Args:
        outputs: ``logits`` [layers, B, 2, N], ``boxes`` [layers, B, 2, N, 4], ``links`` [B, P, 2],
            ``link_scores`` [B, P], and, where it was asked for, ``link_attention`` [B, P, 2, N + 1].
        batch: ``image`` [B, 2, H, W] and lists of B: ``pair_id``, ``placements``, ``meta``.
        max_detections: kept in each view, those with the highest scores.
        duplicate_iou: see `DecodeFindingsd`; links of a duplicate become links of the one that is kept.
        consistency: see `DecodeFindingsd`; pairs with one view get no score.
    """
    rows, columns = batch["image"].shape[-2:]
    scores = outputs["logits"][-1].float().sigmoid().cpu()  # [B, 2, N]
    boxes = denormalise(outputs["boxes"][-1].double().cpu(), rows, columns)
    links, link_scores = outputs["links"].cpu(), outputs["link_scores"].float().cpu()
    surest = scores.argsort(dim=-1, descending=True, stable=True)[..., :max_detections]
    attention = outputs.get("link_attention")
    findings = []
    for index, pair_id in enumerate(batch["pair_id"]):
        cc, mlo = (
            _decode_view(
                boxes[index, view],
                scores[index, view],
                surest[index, view],
                batch["placements"][index][view],
                batch["meta"][index][view],
                duplicate_iou,
            )
            for view in range(len(VIEW_NAMES))
        )
        seen = None if attention is None else _attention_of_pair(attention[index].float().cpu(), (cc, mlo))
        pair_links = _links_of_pair(links[index], link_scores[index], (cc.places, mlo.places), seen)
        fit = None
        if consistency is not None and None not in batch["placements"][index]:
            fit = consistency(*batch["image"][index].float().cpu().numpy())
        findings.append(PairFindings(pair_id, cc.detections, mlo.detections, pair_links, fit))
    return findings


class _DecodedView(NamedTuple):
    """The detections that are kept of a view, and where object queries are among them."""

    detections: Detections | None
    queries: Tensor
    """int [n], the object query of each."""
    places: dict[int, int]
    """The place of each object query; that of the surer one for a duplicate."""


def _decode_view(
    boxes: Tensor,
    scores: Tensor,
    surest: Tensor,
    placement: dict[str, float] | None,
    meta: Mapping[str, Any] | None,
    duplicate_iou: float | None,
) -> _DecodedView:
    """Boxes [N, 4] in pixels of the canvas to detections in pixels of the file; none for a missing view."""
    if placement is None or meta is None:
        return _DecodedView(None, surest[:0], {})
    original = Placement.from_dict(placement).invert(boxes[surest])
    original = clip_to_image(original, meta["rows"], meta["columns"])
    every = Detections(original.float().numpy(), scores[surest].double().numpy())
    kept = list(range(len(every))) if duplicate_iou is None else kept_indices(every, duplicate_iou)
    firsts = sorted(set(kept))
    place = {first: number for number, first in enumerate(firsts)}
    return _DecodedView(
        Detections(every.boxes[firsts], every.scores[firsts]),
        surest[firsts],
        {query: place[first] for query, first in zip(surest.tolist(), kept, strict=True)},
    )


def _attention_of_pair(weights: Tensor, decoded: Sequence[_DecodedView]) -> list[Attention]:
    """For each of P links its weights [P, 2, N + 1] on the findings of each view and on the dustbin."""
    views = []
    for view, (_, queries, _) in zip(weights.unbind(1), decoded, strict=True):
        columns = torch.cat([queries, queries.new_tensor([view.shape[-1] - 1])])
        views.append(view[:, columns].double().mul(1000).round().div(1000).tolist())
    return [Attention(tuple(cc), tuple(mlo)) for cc, mlo in zip(*views, strict=True)]


def _links_of_pair(
    links: Tensor,
    scores: Tensor,
    places: Sequence[dict[int, int]],
    attention: Sequence[Attention] | None,
) -> tuple[Link, ...]:
    """The links of one pair, the most certain first; of several between the same detections the best.

    Args:
        links: int [P, 2], detections in CC and MLO.
        scores: [P].
        places: of `_DecodedView`; what is not there (the dustbin too) is None in a link.
        attention: of each link, if known.
    """
    best: dict[tuple[int | None, int | None], Link] = {}
    for index, ((cc, mlo), score) in enumerate(zip(links.tolist(), scores.tolist(), strict=True)):
        ends = places[0].get(cc), places[1].get(mlo)
        # A link from nowhere to nowhere says nothing.
        if ends != (None, None) and (ends not in best or score > best[ends].score):
            best[ends] = Link(*ends, score, attention[index] if attention else None)
    return tuple(sorted(best.values(), key=lambda link: -link.score))
