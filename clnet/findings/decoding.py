"""From a network's raw outputs to findings in the pixels of the stored images."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from clnet.boxes import clip_to_image, denormalise
from clnet.data.pair import VIEW_NAMES
from clnet.findings.types import Attention, Detections, Link, PairFindings
from clnet.preprocessing.placement import Placement


class DecodeFindingsd:
    """A post-processing transform for MONAI's evaluator.

    It adds ``findings``, a `PairFindings` for each pair, and hands on ``lesion_boxes``, what was marked, in
    the same pixels. Detections come from the detector, links from the matcher (Section 4.1).

    Args:
        max_detections: kept in each view, those with the highest scores.
    """

    def __init__(self, max_detections: int) -> None:
        self.max_detections = max_detections

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read ``pred`` and the batch it belongs to; see `decode_findings`."""
        findings = decode_findings(data["pred"], data, self.max_detections)
        return {**data, "findings": findings, "lesion_boxes": data["original_boxes"]}


def decode_findings(
    outputs: Mapping[str, Tensor], batch: Mapping[str, Any], max_detections: int
) -> list[PairFindings]:
    """Turn the outputs of `CLNet` for a batch into findings.

    Args:
        outputs: ``logits`` [layers, B, 2, N], ``boxes`` [layers, B, 2, N, 4], ``links`` [B, P, 2],
            ``link_scores`` [B, P], and, where it was asked for, ``link_attention`` [B, P, 2, N + 1].
        batch: ``image`` [B, 2, H, W] and lists of B: ``pair_id``, ``placements``, ``meta``.
        max_detections: kept in each view, those with the highest scores.
    """
    rows, columns = batch["image"].shape[-2:]
    scores = outputs["logits"][-1].float().sigmoid().cpu()  # [B, 2, N]
    boxes = denormalise(outputs["boxes"][-1].double().cpu(), rows, columns)
    links, link_scores = outputs["links"].cpu(), outputs["link_scores"].float().cpu()
    kept = scores.argsort(dim=-1, descending=True, stable=True)[..., :max_detections]
    attention = outputs.get("link_attention")
    findings = []
    for index, pair_id in enumerate(batch["pair_id"]):
        views = {
            name: _detections(
                boxes[index, view, kept[index, view]],
                scores[index, view, kept[index, view]],
                batch["placements"][index][view],
                batch["meta"][index][view],
            )
            for view, name in enumerate(VIEW_NAMES)
        }
        kept_in = [
            kept[index, view] if views[name] else kept.new_empty(0) for view, name in enumerate(VIEW_NAMES)
        ]
        seen = None if attention is None else _attention_of_pair(attention[index].float().cpu(), kept_in)
        pair_links = _links_of_pair(links[index], link_scores[index], _places(kept_in), seen)
        findings.append(PairFindings(pair_id, views["cc"], views["mlo"], pair_links))
    return findings


def _detections(
    boxes: Tensor, scores: Tensor, placement: dict[str, float] | None, meta: Mapping[str, Any] | None
) -> Detections | None:
    """Boxes [n, 4] in pixels of the canvas to boxes in pixels of the file; None for a missing view."""
    if placement is None or meta is None:
        return None
    original = clip_to_image(Placement.from_dict(placement).invert(boxes), meta["rows"], meta["columns"])
    return Detections(original.float().numpy(), scores.double().numpy())


def _places(kept: Sequence[Tensor]) -> list[dict[int, int]]:
    """For each view, where each detection is among the findings; nowhere in a missing view."""
    return [{query: place for place, query in enumerate(view.tolist())} for view in kept]


def _attention_of_pair(weights: Tensor, kept: Sequence[Tensor]) -> list[Attention]:
    """For each of P links its weights [P, 2, N + 1] on the findings of each view and on the dustbin."""
    views = []
    for view, detections in zip(weights.unbind(1), kept, strict=True):
        columns = torch.cat([detections, detections.new_tensor([view.shape[-1] - 1])])
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
        places: see `_places`; what is not there (the dustbin too) is None in a link.
        attention: of each link, if known.
    """
    best: dict[tuple[int | None, int | None], Link] = {}
    for index, ((cc, mlo), score) in enumerate(zip(links.tolist(), scores.tolist(), strict=True)):
        ends = places[0].get(cc), places[1].get(mlo)
        # A link from nowhere to nowhere says nothing.
        if ends != (None, None) and (ends not in best or score > best[ends].score):
            best[ends] = Link(*ends, score, attention[index] if attention else None)
    return tuple(sorted(best.values(), key=lambda link: -link.score))
