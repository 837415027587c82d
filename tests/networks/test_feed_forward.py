"""The feed-forward network in pieces computes what its two linear layers would, in both passes."""

import pytest
import torch
from torch.nn import functional as F

from clnet.networks.feed_forward import PIECE, FeedForward, fused_feed_forward
from clnet.ops import dropout

P = 0.1
SEED = torch.tensor(2**40 + 3)


def inputs(tokens, width=8, hidden=12):
    """X, expand with its bias, contract with its bias."""
    torch.manual_seed(0)
    shapes = ((tokens, width), (hidden, width), (hidden,), (width, hidden), (width,))
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("tokens", [0, 1, PIECE - 1, PIECE, 2 * PIECE + 7])
def test_output_and_gradients_are_those_of_the_layers_with_the_same_numbers_dropped(tokens):
    ours = inputs(tokens)
    plain = [tensor.detach().double().requires_grad_() for tensor in ours]
    found, hidden = fused_feed_forward(*ours, P, SEED)
    x, expand, expand_bias, contract, contract_bias = plain
    # What is above zero was neither dropped nor below zero: a mask for the plain layers.
    kept = (hidden > 0).double() / (1 - P)
    expected = F.linear(F.linear(x, expand, expand_bias).relu() * kept, contract, contract_bias)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    weight = torch.randn_like(expected)
    found_grads = torch.autograd.grad((found * weight).sum(), ours)
    expected_grads = torch.autograd.grad((expected * weight).sum(), plain)
    for ours_grad, plain_grad in zip(found_grads, expected_grads, strict=True):
        torch.testing.assert_close(ours_grad.double(), plain_grad, rtol=1e-4, atol=1e-4)


def test_a_tenth_of_what_is_above_zero_is_dropped_in_every_piece_and_not_the_same():
    tokens, width = 2 * PIECE, 4
    x = torch.ones(tokens, width)
    expand, bias = torch.ones(50, width), torch.zeros(50)
    _, hidden = fused_feed_forward(x, expand, bias, torch.ones(width, 50), torch.zeros(width), P, SEED)
    first, second = (hidden == 0).split(PIECE)
    for dropped in (first, second):
        assert abs(dropped.double().mean() - P) < 5 * (P * (1 - P) / dropped.numel()) ** 0.5
    both = (first & second).double().mean()
    assert abs(both - P**2) < 5 * (P**2 / first.numel()) ** 0.5


def test_the_layer_takes_the_pieces_in_training_and_the_linear_layers_else(monkeypatch):
    layer, x = FeedForward(8, 16, P), torch.randn(2, 3, 8)
    torch.manual_seed(1)
    fused = layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), fused)
    monkeypatch.setattr(dropout, "compiled_kernels", lambda: None)
    torch.manual_seed(1)
    plain = layer(x)
    assert plain.shape == fused.shape
    assert not torch.equal(plain, fused)  # other numbers are dropped
    layer.eval()
    expected = layer.contract(layer.expand(x).relu())
    torch.testing.assert_close(layer(x), layer.residual.norm(x + expected))


def test_neither_threads_nor_strides_matter():
    ours = inputs(PIECE + 5, width=32, hidden=256)
    expected, expected_hidden = fused_feed_forward(*ours, P, SEED)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    found, hidden = fused_feed_forward(ours[0].t().contiguous().t(), *ours[1:], P, SEED)
    torch.set_num_threads(before)
    assert torch.equal(hidden == 0, expected_hidden == 0)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)  # sums of 256 numbers around 1


def test_the_operator_keeps_the_rules_of_pytorch():
    torch.library.opcheck(fused_feed_forward, (*inputs(3), P, SEED))
