"""Winograd's convolution is `torch.nn.functional.conv2d` by fewer multiplications, in both passes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from clnet.networks.resnet import ResNetBackbone
from clnet.ops import winograd
from clnet.ops.winograd import INPUTS, KERNEL, OUTPUTS, takes_winograd, winograd_convolution


@pytest.mark.parametrize("position", range(3))
def test_in_one_dimension_the_transforms_give_a_shifted_row_for_a_kernel_of_one(position):
    row, kernel = torch.arange(1.0, 7.0), F.one_hot(torch.tensor(position), 3).float()
    inputs, kernels, outputs = (torch.tensor(matrix) for matrix in (INPUTS, KERNEL, OUTPUTS))
    found = outputs.float() @ ((kernels @ kernel) * (inputs.float() @ row))
    torch.testing.assert_close(found, row[position : position + 4])


@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (2, 5, 8, 12), (3, 2, 20, 4)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_output_and_gradients_are_those_of_torch_s_convolution(shape, layout):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64).to(memory_format=layout).requires_grad_()
    kernels = torch.randn(7, shape[1], 3, 3, dtype=torch.float64, requires_grad=True)
    found, expected = winograd_convolution(x, kernels), F.conv2d(x, kernels, padding=1)
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(expected)
    found_grads = torch.autograd.grad((found * weight).sum(), (x, kernels))
    expected_grads = torch.autograd.grad((expected * weight).sum(), (x, kernels))
    for ours, theirs in zip(found_grads, expected_grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_in_single_precision_it_is_as_close_as_it_says():
    torch.manual_seed(0)
    x, kernels = torch.randn(2, 128, 32, 16), torch.randn(128, 128, 3, 3)
    expected = F.conv2d(x.double(), kernels.double(), padding=1)
    apart = (winograd_convolution(x, kernels) - expected).abs().max() / expected.abs().max()
    assert apart < 1e-5


def convolution(**changes):
    return nn.Conv2d(**{"in_channels": 8, "out_channels": 8, "kernel_size": 3, "padding": 1} | changes)


def test_it_is_taken_where_kernels_learn_and_tiles_fit():
    x = torch.zeros(1, 8, 8, 12)
    assert takes_winograd(x, convolution())
    assert not takes_winograd(x[..., :10], convolution())
    assert not takes_winograd(x.bfloat16(), convolution().bfloat16())
    assert not takes_winograd(x[..., :4, :4].repeat(1, 2, 1, 1), convolution(in_channels=16))
    assert not takes_winograd(x, convolution(stride=2))
    assert not takes_winograd(x, convolution(kernel_size=1, padding=0))
    assert not takes_winograd(x, convolution().requires_grad_(False))
    with torch.no_grad():
        assert not takes_winograd(x, convolution())
    with torch.autocast("cpu", torch.bfloat16):
        assert not takes_winograd(x, convolution())


def test_a_resnet_learns_the_same_with_it_and_without(monkeypatch):
    torch.manual_seed(0)
    network, image = ResNetBackbone("resnet50").double(), torch.rand(1, 1, 128, 64, dtype=torch.float64)
    taken = []

    def gradients(answer):
        monkeypatch.setattr(winograd, "takes_winograd", lambda *it: taken.append(answer(*it)) or taken[-1])
        maps = network(image)
        loss = torch.stack([one.square().mean() for one in maps]).sum()
        return maps, torch.autograd.grad(loss, list(network.parameters()))

    ours, ours_grads = gradients(takes_winograd)
    assert any(taken)
    plain, plain_grads = gradients(lambda *_: False)
    torch.testing.assert_close(ours, plain)
    torch.testing.assert_close(ours_grads, plain_grads)
