"""The feed-forward network of a transformer layer."""

import torch

from clnet.networks.feed_forward import FeedForward


def test_a_layer_adds_two_linear_layers_with_relu_to_its_input_and_normalises():
    torch.manual_seed(0)
    layer, x = FeedForward(8, 16, dropout=0.1).eval(), torch.randn(2, 3, 8)
    hidden = (x @ layer.expand.weight.T + layer.expand.bias).clamp(min=0)
    summed = x + hidden @ layer.contract.weight.T + layer.contract.bias
    centred = summed - summed.mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + layer.residual.norm.eps).sqrt()
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)


def test_in_training_hidden_numbers_and_the_update_are_dropped():
    torch.manual_seed(0)
    layer, x = FeedForward(8, 64, dropout=0.5).train(), torch.randn(2, 3, 8)
    seen = {}
    layer.contract.register_forward_pre_hook(lambda _, inputs: seen.update(hidden=inputs[0]))
    layer.residual.norm.register_forward_pre_hook(lambda _, inputs: seen.update(summed=inputs[0]))
    layer(x)
    plain = layer.expand(x).relu()
    dropped = (plain > 0) & (seen["hidden"] == 0)
    assert 0.3 < dropped.sum() / (plain > 0).sum() < 0.7
    torch.testing.assert_close(seen["hidden"][~dropped], 2 * plain[~dropped])
    assert 0.2 < (seen["summed"] == x).float().mean() < 0.8
