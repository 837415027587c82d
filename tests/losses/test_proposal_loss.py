"""The loss of proposals: which cells answer for a lesion, and what their answers cost."""

import math

import pytest
import torch
from whole_loss import DETECTION

from clnet.losses import DetectionLoss, ProposalLoss
from clnet.losses.targets import gather_targets
from clnet.networks.feature_levels import ImageFeatures
from clnet.networks.proposals import ProposalHead

LOSS = ProposalLoss(weight=1.0, class_weight=4.0, cells=9)


def grid(*shapes):
    """Centres [S, 2] of the cells of some levels."""
    return torch.tensor(
        [
            [(column + 0.5) / columns, (row + 0.5) / rows]
            for rows, columns in shapes
            for row in range(rows)
            for column in range(columns)
        ]
    )


def lesions(*views, present=None):
    """Boxes of breasts: for each breast those of CC and of MLO."""
    targets = [
        {
            "boxes": [torch.tensor(boxes).reshape(-1, 4) for boxes in breast],
            "lesion_ids": [torch.arange(len(boxes)) for boxes in breast],
        }
        for breast in views
    ]
    everything = torch.ones(len(views), 2, dtype=torch.bool)
    return gather_targets(targets, everything if present is None else present, torch.zeros(1))


def answering_by_hand(cost, centres, boxes, cells):
    """Pairs (box, cell), one after the other."""
    pairs = set()
    for index, (x, y, width, height) in enumerate(boxes.tolist()):
        offset = [(abs(cx - x) / width, abs(cy - y) / height) for cx, cy in centres.tolist()]
        by_distance = sorted(range(len(offset)), key=lambda cell: sum(offset[cell]))
        candidates = {cell for cell, (dx, dy) in enumerate(offset) if dx < 0.3 and dy < 0.3}
        candidates |= set(by_distance[:3])
        ranked = sorted(candidates, key=lambda cell: cost[index, cell].item())
        pairs |= {(index, cell) for cell in ranked[:cells]}
    return pairs


@pytest.mark.parametrize("cells", [1, 4, 9])
def test_the_cheapest_of_the_central_and_nearest_cells_answer(cells):
    torch.manual_seed(0)
    centres, boxes = grid((16, 8), (8, 4)), torch.rand(20, 4)
    boxes[:, 2:] = boxes[:, 2:] ** 3 + 0.01  # from less than a cell to the whole canvas
    cost = torch.randn(20, len(centres))
    cell, answers = ProposalLoss(1.0, 4.0, cells).answering_cells(cost, centres, boxes)
    found = [(lesion, cell[lesion, place].item()) for lesion, place in answers.nonzero().tolist()]
    assert len(found) == len(set(found))
    assert set(found) == answering_by_hand(cost, centres, boxes, cells)
    assert answers.sum(1).min() >= 1 and answers.sum(1).max() == cells


def test_every_lesion_has_a_cell_however_wrong_the_cells_are():
    centres, boxes = grid((4, 4)), torch.tensor([[0.5, 0.5, 0.01, 0.01]])
    _, answers = LOSS.answering_cells(torch.full((1, 16), 1e6), centres, boxes)
    assert answers.sum() == 3


CENTRES = torch.tensor([[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]])
LESION = [0.25, 0.25, 0.2, 0.2]


def four_cells():
    """Two views of four cells, all scores ½; in CC cell 0 is right, cell 1 is off by 0.1."""
    boxes = torch.tensor([LESION, [0.35, 0.25, 0.2, 0.2], [0.75, 0.75, 0.2, 0.2], [0.5, 0.9, 0.1, 0.1]])
    return torch.zeros(1, 2, 4, requires_grad=True), boxes.expand(1, 2, 4, 4).clone().requires_grad_()


@pytest.mark.parametrize("weight", [1.0, 0.5])
@pytest.mark.parametrize("mlo", [True, False], ids=["both views", "MLO missing"])
def test_the_loss_computed_by_hand(weight, mlo):
    """Candidates are cells 0, 1 and 2, the nearest; of these, 0 and 1 are the cheapest two.

    Cell 1 overlaps the lesion by an IoU of 0.1 · 0.2 / (0.3 · 0.2) = 1/3, and the hull has no gap. Each of
    the two counts half. A focal loss at p = ½ is ¼ ln 2 times α, which is ¼ or, without a lesion, ¾.
    """
    logits, boxes = four_cells()
    present = torch.tensor([[True, mlo]])
    target = lesions(([LESION], [LESION]), present=torch.tensor([[True, False]]))
    loss = ProposalLoss(weight, 4.0, cells=2)
    parts = loss(logits, boxes, CENTRES, target, present, DetectionLoss(**DETECTION))
    assert parts["proposal_l1"].item() == pytest.approx(weight * 5 * 0.1 / 2, rel=1e-4)
    assert parts["proposal_giou"].item() == pytest.approx(weight * 2 * (1 - 1 / 3) / 2, rel=1e-4)
    without = 6 if mlo else 2
    focal = math.log(2) / 4 * (2 * 0.25 + without * 0.75)
    assert parts["proposal_class"].item() == pytest.approx(weight * 4 * focal / 2, rel=1e-4)

    sum(parts.values()).backward()
    assert logits.grad[0, 1].ne(0).all().item() is mlo
    assert boxes.grad[0, 1].eq(0).all(), "no lesion there"
    assert [row.any().item() for row in boxes.grad[0, 0].ne(0)] == [True, True, False, False]


def test_a_cell_that_does_not_answer_for_one_lesion_may_answer_for_another():
    """Of four cells, each lesion's are its nearest three; the fourth is the other lesion's own."""
    logits, boxes = four_cells()
    present, other = torch.tensor([[True, False]]), [0.75, 0.75, 0.2, 0.2]
    target = lesions(([LESION, other], []), present=present)
    loss = ProposalLoss(1.0, 4.0, cells=4)
    parts = loss(logits, boxes, CENTRES, target, present, DetectionLoss(**DETECTION))
    assert parts["proposal_class"].item() == pytest.approx(4 * 4 * 0.25 * math.log(2) / 4 / 6, rel=1e-4)


def test_a_lesion_counts_once_however_many_cells_answer():
    """The same lesion in both views: 9 cells answer in one, 3 in the other, for which it is too small."""
    centres = grid((16, 16))
    large, small = [0.5, 0.5, 0.6, 0.6], [0.51, 0.5, 0.001, 0.001]
    boxes = torch.tensor([[large] * 256, [small] * 256])[None].clone()
    boxes[..., 0] += 0.1  # every box is off by as much
    parts = LOSS(
        torch.zeros(1, 2, 256),
        boxes,
        centres,
        lesions(([large], [small])),
        torch.ones(1, 2, dtype=torch.bool),
        DetectionLoss(**DETECTION),
    )
    assert parts["proposal_l1"].item() == pytest.approx(5 * 0.1, rel=1e-3)


def test_without_lesions_loss_and_gradient_are_finite():
    logits, boxes = four_cells()
    present = torch.ones(1, 2, dtype=torch.bool)
    loss = ProposalLoss(1.0, 4.0, cells=2)
    parts = loss(logits, boxes, CENTRES, lesions(([], [])), present, DetectionLoss(**DETECTION))
    assert parts["proposal_l1"] == 0 and parts["proposal_giou"] == 0
    assert parts["proposal_class"].item() == pytest.approx(4 * 8 * 0.75 * math.log(2) / 4, rel=1e-4)
    sum(parts.values()).backward()
    assert logits.grad.isfinite().all() and boxes.grad.isfinite().all()


def test_the_loss_teaches_the_tokens_of_the_image():
    torch.manual_seed(0)
    tokens = torch.randn(2, 12, 32, requires_grad=True)
    features = ImageFeatures(tokens, grid((4, 3))[None], [(4, 3)], None)
    proposals = ProposalHead(32, queries=2)(features)
    parts = LOSS(
        proposals.logits[None],
        proposals.boxes[None],
        features.centres[0],
        lesions(([LESION], [])),
        torch.ones(1, 2, dtype=torch.bool),
        DetectionLoss(**DETECTION),
    )
    sum(parts.values()).backward()
    assert tokens.grad.isfinite().all()
    assert tokens.grad.ne(0).any(-1).all(), "every cell learns, if only that there is nothing"
