"""Proposals: where boxes begin, which cells are chosen, and what tells the positions of boxes apart."""

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import maximum_filter

from clnet.networks.feature_levels import FeatureLevels
from clnet.networks.geometry import Content
from clnet.networks.proposals import BoxPosition, ProposalHead, first_boxes, peaks

WIDTH = 32
SHAPES = [(8, 5), (4, 3)]


@pytest.fixture
def features():
    """The tokens of two images, as the encoder lays them out."""
    torch.manual_seed(0)
    maps = [torch.randn(2, 16, rows, columns) for rows, columns in SHAPES]
    content = Content(torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(2, 4), 1.6)
    with torch.no_grad():
        return FeatureLevels([16, 16], 2, WIDTH)(maps, content)


def head(queries):
    """A head whose scores depend on the image."""
    torch.manual_seed(1)
    made = ProposalHead(WIDTH, queries)
    with torch.no_grad():
        made.head.classify.weight.normal_()
    return made


def cells():
    """Level, row and column of every cell, in the order of the tokens."""
    for level, (rows, columns) in enumerate(SHAPES):
        for row in range(rows):
            for column in range(columns):
                yield level, row, column


def is_peak(logits):
    """By scipy: where a cell is as good as the best of the 3×3 around it."""
    start, kept = 0, []
    for rows, columns in SHAPES:
        level = logits[start : start + rows * columns].reshape(rows, columns)
        best = maximum_filter(level, size=3, mode="constant", cval=-np.inf)
        kept.append((level == best).ravel())
        start += rows * columns
    return np.concatenate(kept)


def test_first_boxes_sit_on_the_cells_and_are_three_cells_wide(features):
    expected = []
    for level, row, column in cells():
        rows, columns = SHAPES[level]
        size = [min(3 / columns, 0.9), min(3 / rows, 0.9)]  # less than the canvas, on however coarse a level
        expected.append([(column + 0.5) / columns, (row + 0.5) / rows, *size])
    torch.testing.assert_close(first_boxes(features), torch.tensor([expected]))


@torch.no_grad()
def test_an_untrained_head_proposes_the_first_boxes(features):
    found = head(3)(features).boxes
    torch.testing.assert_close(found, first_boxes(features).expand_as(found), atol=1e-5, rtol=0)


def test_only_cells_that_no_neighbour_surpasses_stay_in_the_race():
    torch.manual_seed(0)
    logits = torch.randn(6, 52)
    found = peaks(logits, SHAPES)
    for before, after in zip(logits, found, strict=True):
        expected = torch.from_numpy(is_peak(before.numpy()))
        assert 0 < expected.sum() < 52
        assert torch.equal(after[expected], before[expected])
        assert after[~expected].max() < after[expected].min()


@torch.no_grad()
def test_the_best_peaks_are_chosen_the_best_first(features):
    proposing = head(5)
    found = proposing(features)
    for image in range(2):
        logits = found.logits[image].numpy()
        peaked = np.flatnonzero(is_peak(logits))
        assert len(peaked) > 5
        best = sorted(peaked, key=lambda cell: -logits[cell])[:5]
        assert found.chosen[image].tolist() == best
        tokens = features.tokens[image, best]
        torch.testing.assert_close(found.embeddings[image], proposing.embedding(proposing.tower(tokens)))


def test_with_fewer_peaks_than_queries_the_best_of_the_other_cells_follow():
    ramp = torch.arange(40.0)[None]  # the last cell is the only peak
    assert peaks(ramp, [(8, 5)]).topk(3).indices.tolist() == [[39, 38, 37]]


@pytest.mark.parametrize("coordinate", range(4))
@torch.no_grad()
def test_positions_tell_boxes_apart_that_differ_by_a_64th_of_the_canvas(coordinate):
    torch.manual_seed(0)
    position, codes = BoxPosition(WIDTH), []
    position.layers.register_forward_pre_hook(lambda _, inputs: codes.append(inputs[0]))
    box = torch.tensor([0.3, 0.6, 0.1, 0.2])
    moved = box.clone()
    moved[coordinate] += 1 / 64
    one, other = position(box), position(moved)
    # Two points on a circle at angles 2πfx and 2πf(x + δ) are 2 sin(πfδ) apart; eight circles, 1 ≤ f ≤ 64.
    gaps = [2 * math.sin(math.pi * 2 ** (6 * k / 7) / 64) for k in range(8)]
    distance = (codes[0] - codes[1]).norm().item()
    assert distance == pytest.approx(math.hypot(*gaps), abs=1e-4)
    assert distance > codes[0].norm().item() / 3
    assert (one - other).norm() > 0.05 * one.norm()
