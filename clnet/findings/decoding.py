"""From a network's raw outputs to findings in the pixels of the stored images."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from clnet.boxes import clip_to_image, denormalise
from clnet.data.pair import VIEW_NAMES
from clnet.findings.types import Attention, Detections, Link, PairFindings
from clnet.networks.pairs import LesionPairs, extract_pairs
from clnet.preprocessing.placement import Placement

LEAST_PAIR_SCORE = 0.01  # of a detection that no link points at; with it the scores of links begin


class DecodeFindingsd:
    """A post-processing transform for MONAI's evaluator.

    It adds ``findings``, a `PairFindings` for each pair, and hands on ``lesion_boxes``, what was marked, in
    the same pixels. Detections come from the detector, links from the linker (Section 4.1).

    Args:
        max_detections: the surest so many in each view.
        pair_score_weight: see `refine_scores`; 0, as in the paper, leaves detections to the detector.
    """

    def __init__(self, max_detections: int = 100, pair_score_weight: float = 0.0) -> None:
        self.max_detections = max_detections
        self.pair_score_weight = pair_score_weight

    def __call__(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Read ``pred`` and the batch it belongs to; see `find_lesions`."""
        return {
            **data,
            "findings": find_lesions(data["pred"], data, self.max_detections, self.pair_score_weight),
            "lesion_boxes": data["original_boxes"],
        }


def find_lesions(
    outputs: Mapping[str, Tensor],
    batch: Mapping[str, Any],
    max_detections: int,
    pair_score_weight: float = 0.0,
) -> list[PairFindings]:
    """Turn the outputs of `CLNet` for a batch into findings.

    Args:
        outputs: ``logits`` [layers, B, 2, N], ``boxes`` [layers, B, 2, N, 4], and those of a linker; its
            ``link_attention`` [layers, B, 2, M, N + 1], where it is given, goes to the links.
        batch: ``image`` [B, 2, H, W] and lists of B: ``pair_id``, ``placements``, ``meta``.
        max_detections: the surest so many in each view.
        pair_score_weight: see `refine_scores`.
    """
    rows, columns = batch["image"].shape[-2:]
    scores = outputs["logits"][-1].float().sigmoid().cpu()  # [B, 2, N]
    boxes = denormalise(outputs["boxes"][-1].double().cpu(), rows, columns)
    links = extract_pairs(dict(outputs))
    if links and pair_score_weight:
        scores = refine_scores(scores, links, pair_score_weight)
    kept = scores.argsort(dim=-1, descending=True, stable=True)[..., :max_detections]
    attention = outputs["link_attention"][-1].float().cpu() if "link_attention" in outputs else None
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
        seen = None if attention is None else _attention_of_pair(attention[index], kept_in)
        pair_links = _links_of_pair(links, index, _places(kept_in), seen) if links else ()
        findings.append(PairFindings(pair_id, views["cc"], views["mlo"], pair_links))
    return findings


def refine_scores(scores: Tensor, links: LesionPairs, weight: float) -> Tensor:
    """Detections that a sure link points at move up, all others down: ``score^(1 - w) · pair score^w``.

    The pair score of a detection is that of its surest link, at least `LEAST_PAIR_SCORE`.

    Args:
        scores: [B, 2, N] in [0, 1], on CPU.
        links: of the batch.
        weight: w in [0, 1].

    Returns:
        [B, 2, N] in [0, 1].
    """
    detections = scores.shape[-1]
    surest = scores.new_full((*scores.shape[:2], detections + 1), LEAST_PAIR_SCORE)  # the dustbin is last
    for view, index in enumerate((links.cc, links.mlo)):
        surest[:, view].scatter_reduce_(1, index.cpu(), links.score.float().cpu(), "amax")
    return scores ** (1 - weight) * surest[..., :detections] ** weight


def _detections(
    boxes: Tensor, scores: Tensor, placement: dict[str, float] | None, meta: Mapping[str, Any] | None
) -> Detections | None:
    """Boxes [n, 4] in pixels of the canvas to boxes in pixels of the file; None for a missing view."""
    if placement is None or meta is None:
        return None
    original = clip_to_image(Placement.from_dict(placement).invert(boxes), meta["rows"], meta["columns"])
    return Detections(original.float().numpy(), scores.double().numpy())


def _places(kept: Sequence[Tensor]) -> list[dict[int, int]]:
    """For each view, where each detection stands among the findings; nowhere in a missing view."""
    return [{query: place for place, query in enumerate(view.tolist())} for view in kept]


def _attention_of_pair(weights: Tensor, kept: Sequence[Tensor]) -> list[Attention]:
    """For each link query its weights [2, M, N + 1] on the findings of each view and on the dustbin."""
    views = []
    for view, detections in zip(weights, kept, strict=True):
        columns = torch.cat([detections, detections.new_tensor([view.shape[-1] - 1])])
        views.append(view[:, columns].double().mul(1000).round().div(1000).tolist())
    return [Attention(tuple(cc), tuple(mlo)) for cc, mlo in zip(*views, strict=True)]


def _links_of_pair(
    links: LesionPairs,
    index: int,
    places: Sequence[dict[int, int]],
    attention: Sequence[Attention] | None,
) -> tuple[Link, ...]:
    """The links of one pair, the surest first; of several between the same detections the surest.

    Args:
        links: of the batch.
        index: of the pair in the batch.
        places: see `_places`; what stands nowhere there (the dustbin too) is None in a link.
        attention: of each link query of the pair, if known.
    """
    surest: dict[tuple[int | None, int | None], Link] = {}
    queries = zip(
        links.cc[index].tolist(), links.mlo[index].tolist(), links.score[index].tolist(), strict=True
    )
    for query, (cc, mlo, score) in enumerate(queries):
        ends = places[0].get(cc), places[1].get(mlo)
        # A link from nowhere to nowhere says nothing.
        if ends != (None, None) and (ends not in surest or score > surest[ends].score):
            surest[ends] = Link(*ends, score, attention[query] if attention else None)
    return tuple(sorted(surest.values(), key=lambda link: -link.score))
