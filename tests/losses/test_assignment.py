"""Assignment against brute force, hand computation and transformers' matcher."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.data.box_utils import box_pair_giou
from transformers.loss.loss_deformable_detr import DeformableDetrHungarianMatcher

from clnet.boxes import cxcywh_to_xyxy
from clnet.losses.assignment import (
    AssignmentError,
    DetectionCost,
    assign_detections,
    assign_paired_queries,
    giou,
    link_cost,
    link_targets,
    solve,
)
from clnet.losses.targets import LesionBoxes, gather_targets

COST = DetectionCost(class_weight=2.0, l1_weight=5.0, giou_weight=2.0, alpha=0.25, gamma=2.0)


def random_boxes(*shape: int) -> torch.Tensor:
    return torch.cat([torch.rand(*shape, 2), torch.rand(*shape, 2) * 0.3 + 0.05], dim=-1)


def best_total(cost: torch.Tensor) -> float:
    """The lowest total over all ways to give each row a column of its own."""
    rows, columns = cost.shape
    return min(
        sum(cost[row, column].item() for row, column in enumerate(choice))
        for choice in itertools.permutations(range(columns), rows)
    )


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.integers(3, 5), st.integers(0, 10**6))
def test_every_block_is_assigned_at_the_lowest_total_cost(lesions_of_block, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    block = torch.tensor([b for b, lesions in enumerate(lesions_of_block) for _ in range(lesions)])
    cost = torch.randn(2, len(block), columns, generator=generator, dtype=torch.float64)
    queries = solve(cost, block)
    for layer in range(2):
        for b in set(block.tolist()):
            rows = cost[layer, block == b]
            chosen = queries[layer, block == b].tolist()
            assert len(set(chosen)) == len(chosen), "a query answers for one lesion"
            total = sum(rows[row, column].item() for row, column in enumerate(chosen))
            assert total == pytest.approx(best_total(rows))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_cost_that_is_not_finite_is_named(bad):
    cost = torch.zeros(1, 2, 3)
    cost[0, 1, 2] = bad
    with pytest.raises(AssignmentError, match="not finite"):
        solve(cost, torch.tensor([0, 0]))


def test_boxes_that_are_not_finite_are_named():
    lesions = LesionBoxes(random_boxes(1), *(torch.tensor([0]) for _ in range(4)))
    boxes = random_boxes(6).view(1, 1, 2, 3, 4)
    boxes[0, 0, 1, 2, 0] = torch.nan  # of a view without a lesion
    with pytest.raises(AssignmentError, match="network's outputs are not"):
        solve(COST.cost(torch.zeros(1, 1, 2, 3), boxes, lesions), lesions.breast)


def test_more_lesions_than_queries_are_refused_in_words():
    with pytest.raises(AssignmentError, match=r"4 lesions .* 3 queries.*object_queries or link_queries"):
        solve(torch.zeros(1, 5, 3), torch.tensor([0, 1, 1, 1, 1]))


def test_giou_is_that_of_monai():
    boxes, truth = random_boxes(200), random_boxes(200)
    expected = box_pair_giou(cxcywh_to_xyxy(boxes), cxcywh_to_xyxy(truth))
    torch.testing.assert_close(giou(boxes, truth), expected)


def test_giou_of_boxes_computed_by_hand():
    # Corners (0, 0, 2, 2) and (1, 1, 3, 3): overlap 1, union 7, hull 9. Then two that are apart: hull 4 × 1.
    boxes = torch.tensor([[1.0, 1.0, 2.0, 2.0], [0.5, 0.5, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]])
    truth = torch.tensor([[2.0, 2.0, 2.0, 2.0], [3.5, 0.5, 1.0, 1.0], [0.5, 0.5, 1.0, 1.0]])
    assert giou(boxes, truth).tolist() == pytest.approx([1 / 7 - 2 / 9, -2 / 4, 1.0], abs=1e-5)


def test_detection_cost_computed_by_hand():
    """A query with score 1/2: focal terms α(½)² ln 2 − (1 − α)(½)² ln 2 with α = ¼."""
    box, truth = torch.tensor([0.3, 0.3, 0.2, 0.2]), torch.tensor([0.4, 0.4, 0.2, 0.2])
    lesions = LesionBoxes(truth[None], *(torch.tensor([index]) for index in (0, 1, 0, 0)))
    found = COST.cost(torch.zeros(1, 1, 2, 1), box.expand(1, 1, 2, 1, 4), lesions)
    focal = (0.25 - 0.75) * 0.25 * 0.693147
    overlap = 0.01 / 0.07 - (0.09 - 0.07) / 0.09
    assert found.shape == (1, 1, 1)
    assert found.item() == pytest.approx(2 * focal + 5 * 0.2 - 2 * overlap, abs=1e-4)


def test_matching_has_the_focal_settings_of_the_loss():
    """With γ = 0 and α = ½ a score of 1/2 gains nothing: its two cross-entropies are equal."""
    lesions = LesionBoxes(torch.tensor([[0.5, 0.5, 0.2, 0.2]]), *(torch.tensor([0]) for _ in range(4)))
    plain = replace(COST, alpha=0.5, gamma=0.0)
    found = plain.cost(torch.zeros(1, 1, 2, 1), lesions.boxes.expand(1, 1, 2, 1, 4), lesions)
    assert found.item() == pytest.approx(-2.0, abs=1e-5)  # the overlap's part alone


def random_targets(counts: list[tuple[int, int]]) -> list[dict]:
    return [
        {"boxes": [random_boxes(n), random_boxes(m)], "lesion_ids": [torch.arange(n), torch.arange(m) + 1]}
        for n, m in counts
    ]


def test_detections_are_matched_as_transformers_matches_them():
    torch.manual_seed(0)
    logits, boxes = torch.randn(3, 3, 2, 8), random_boxes(3, 3, 2, 8)
    targets, present = random_targets([(1, 2), (0, 3), (2, 0)]), torch.ones(3, 2, dtype=torch.bool)
    lesions = gather_targets(targets, present, boxes)
    found = assign_detections(COST.cost(logits, boxes, lesions), lesions)
    matcher = DeformableDetrHungarianMatcher(class_cost=2, bbox_cost=5, giou_cost=2)
    labels = [
        {"class_labels": torch.zeros(len(b), dtype=torch.long), "boxes": b}
        for t in targets
        for b in t["boxes"]
    ]
    for layer in range(3):
        outputs = {
            "logits": logits[layer].flatten(0, 1)[..., None],
            "pred_boxes": boxes[layer].flatten(0, 1),
        }
        for image, (queries, order) in enumerate(matcher(outputs, labels)):
            expected = queries[order.argsort()]
            of_image = (lesions.breast == image // 2) & (lesions.view == image % 2)
            assert found[layer, of_image].tolist() == expected.tolist()


def test_a_paired_query_is_matched_by_the_larger_cost_of_its_two_views():
    torch.manual_seed(0)
    layers = 12  # enough chances for the smaller cost, or the mean, to choose another query
    logits, boxes = torch.randn(layers, 2, 2, 5), random_boxes(layers, 2, 2, 5)
    targets = [
        {
            "boxes": [random_boxes(2), random_boxes(2)],
            "lesion_ids": [torch.tensor([7, 3]), torch.tensor([3, 9])],
        },
        {"boxes": [random_boxes(1), random_boxes(0)], "lesion_ids": [torch.tensor([7]), torch.tensor([])]},
    ]
    lesions = gather_targets(targets, torch.ones(2, 2, dtype=torch.bool), boxes)
    cost = COST.cost(logits, boxes, lesions)
    found = assign_paired_queries(cost, lesions)
    for layer in range(layers):
        cc_7, cc_3, mlo_3, mlo_9, alone = cost[layer]
        table = torch.stack([cc_7, torch.maximum(cc_3, mlo_3), mlo_9])
        first, second, third = found[layer, [0, 1, 3]].tolist()
        assert found[layer, 2] == second, "both boxes of lesion 3 have the same query"
        assert (table[0, first] + table[1, second] + table[2, third]).item() == pytest.approx(
            best_total(table)
        )
        assert found[layer, 4] == alone.argmin()


def test_targets_become_flat_without_missing_views():
    cc, mlo = random_boxes(2), random_boxes(3)
    targets = [
        {"boxes": [cc, mlo], "lesion_ids": [torch.tensor([5, 8]), torch.tensor([8, 9, 5])]},
        {"boxes": [cc, mlo], "lesion_ids": [torch.tensor([5, 8]), torch.tensor([8, 9, 5])]},
        {"boxes": [cc[:0], mlo[:0]], "lesion_ids": [torch.tensor([]), torch.tensor([])]},
    ]
    present = torch.tensor([[True, True], [True, False], [True, True]])
    lesions = gather_targets(targets, present, cc)
    assert torch.equal(lesions.boxes, torch.cat([cc, mlo, cc]))
    assert lesions.breast.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert lesions.view.tolist() == [0, 0, 1, 1, 1, 0, 0]
    assert lesions.lesion.tolist() == [0, 1, 1, 2, 0, 3, 4]
    assert lesions.breast_of_lesion.tolist() == [0, 0, 0, 1, 1]
    queries = torch.tensor([10, 11, 12, 13, 14, 15, 16])
    assert link_targets(lesions, queries, dustbin=20).tolist() == [
        [10, 14],
        [11, 12],
        [20, 13],
        [15, 20],
        [16, 20],
    ]


SIMILARITY = torch.tensor(  # two views, M = 2 link queries, N + 1 = 3 candidates
    [[[0.6, -0.2, 0.0], [0.1, 0.9, -1.0]], [[-0.4, 0.3, 0.8], [0.5, 0.2, -1.0]]]
)[None, None]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # emd of query 0: ¼·0.6 + ¾·0.3 + 1 = 1.375; of query 1: ¼·0.1 + ¾·0.2 + 1 = 1.175; scores ½ and ¾.
        ("mul", [-(1.375**0.6) * 0.5**0.4, -(1.175**0.6) * 0.75**0.4]),
        ("add", [-(0.6 * 1.375 + 0.4 * 0.5), -(0.6 * 1.175 + 0.4 * 0.75)]),
    ],
)
def test_link_cost_computed_by_hand(method, expected):
    logits = torch.tensor([[[0.0, 1.0986123]]])
    found = link_cost(
        SIMILARITY, logits, torch.tensor([[0, 1]]), torch.tensor([0]), alpha=0.6, beta=0.25, method=method
    )
    assert found.shape == (1, 1, 2)
    assert found.flatten().tolist() == pytest.approx(expected, abs=1e-6)


def test_link_cost_is_a_number_where_both_views_are_opposite():
    """Query 1 against the dustbin in both views: emd is 0, or a little less by rounding."""
    similarity = SIMILARITY - 1e-7
    found = link_cost(
        similarity, torch.zeros(1, 1, 2), torch.tensor([[2, 2]]), torch.tensor([0]), 0.5, 0.5, "mul"
    )
    assert found[0, 0, 1] == 0
    assert found.isfinite().all()
