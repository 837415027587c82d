"""The deformable attention layer: where heads begin to look, also under autocast."""

import math

import pytest
import torch

from clnet.networks.deformable_attention import DeformableAttention
from clnet.networks.positions import sine_positions

SHAPES = [(3, 4), (2, 2)]


def test_heads_begin_by_looking_in_directions_of_their_own_a_step_further_each_point():
    attention = DeformableAttention(width=32, heads=4, levels=2, points=3)
    offsets = attention.sampling_offsets(torch.rand(32)).view(4, 2, 3, 2)
    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    for point in range(3):
        for level in range(2):
            torch.testing.assert_close(offsets[:, level, point], directions * (point + 1), atol=1e-6, rtol=0)


def test_positions_are_sines_and_cosines_of_y_then_x():
    x, y, width = 0.3, 0.8, 8
    expected = []
    for place in (y, x):
        for pair in range(width // 4):
            angle = 2 * math.pi * place / 10000 ** (2 * pair / (width / 2))
            expected += [math.sin(angle), math.cos(angle)]
    assert sine_positions(torch.tensor([x, y]), width).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("boxes", [False, True], ids=["points", "boxes"])
def test_under_autocast_a_layer_reads_the_same_places_in_both_passes(boxes):
    torch.manual_seed(0)
    attention = DeformableAttention(width=32, heads=4, levels=2, points=3)
    query, references = torch.rand(2, 5, 32), torch.rand(2, 5, 4 if boxes else 2)
    tokens = torch.rand(2, 16, 32)
    expected = attention(query, references, tokens, SHAPES)
    with torch.autocast("cpu", torch.bfloat16):
        found = attention(query, references, tokens, SHAPES)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)  # bfloat16 has 8 bits
    found.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())
